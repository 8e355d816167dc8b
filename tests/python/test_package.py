"""The package itself: what editors read, and what it says where it cannot be built or loaded."""
import ast
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import torch

import sgdph
from conftest import cannot

ROOT = Path(__file__).parents[2]
HOME = Path(sgdph.__file__).parent


def stub():
    path = HOME / "__init__.pyi"
    if not path.exists():
        cannot(f"{HOME} was not built by pip")
    return path.read_text()


def test_the_stubs_are_those_of_the_catalogue():
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "python/stubs.py")
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    assert stub() == stubs.text(sgdph._core.catalogue())
    assert (HOME / "py.typed").exists()


def test_the_stubs_say_what_the_classes_take_and_name_all_that_is_exported():
    tree = ast.parse(stub())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for kind in sgdph.optimizers.values():
        arguments = classes[kind.__name__].body[1].args
        names = [a.arg for a in arguments.args[1:] + arguments.kwonlyargs]
        assert names == list(inspect.signature(kind).parameters)
    named = set(classes) | {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    named |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef)} | {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    assert set(sgdph.__all__) <= named


def test_another_torch_than_it_was_built_with_is_one_sentence():
    sgdph._check_torch("2.13.1+cpu", "2.13.0")
    with pytest.raises(ImportError) as error:
        sgdph._check_torch("2.14.0+cpu", "2.13.0")
    assert str(error.value).startswith("sgdph was built with torch 2.13.0 and finds torch 2.14.0+cpu: ")
    assert "--no-build-isolation" in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(ImportError):
        sgdph._check_torch("3.13.0", "2.13.0")
    assert torch.__version__.startswith(sgdph._built.torch_version)


def configured(tmp_path, torch_source, *words):
    """What CMake, with these words more, says to an interpreter whose torch is this text; None: it has none."""
    if shutil.which("cmake") is None:
        cannot("there is no cmake")
    fake = tmp_path / "fake"
    fake.mkdir()
    text = "raise ImportError('No module named torch')" if torch_source is None else torch_source
    (fake / "torch.py").write_text(text)
    command = ["cmake", "-S", str(ROOT / "python"), "-B", str(tmp_path / "build"), f"-DPython_EXECUTABLE={sys.executable}", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(fake)}, timeout=300)
    assert done.returncode != 0
    return re.sub(r"\s+", " ", done.stderr)


def test_a_build_without_torch_names_the_flag(tmp_path):
    said = configured(tmp_path, None)
    assert "cannot import torch (ImportError: No module named torch), which" in said
    assert "pip install --no-build-isolation ." in said and "Traceback" not in said


def test_debians_own_torch_is_refused_and_the_error_says_so(tmp_path):
    said = configured(tmp_path, "class _C: _GLIBCXX_USE_CXX11_ABI = True\n__version__ = '1.13.1'")
    assert "needs torch 2.6 or newer" in said and "has 1.13.1 (Debian 12's own python3-torch is 1.13)" in said


def test_a_torch_without_pybind11_names_the_package(tmp_path):
    said = configured(tmp_path, "class _C: _GLIBCXX_USE_CXX11_ABI = True\n__version__ = '2.6.0'", "-DCMAKE_IGNORE_PREFIX_PATH=/usr;/usr/local;/")
    assert "comes without the headers of pybind11" in said and "apt-get install pybind11-dev" in said


def test_a_source_distribution_has_all_that_the_build_reads(tmp_path):
    code = f"import os; os.chdir({str(ROOT)!r}); from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "python/CMakeLists.txt", "python/stubs.py"} <= names
    assert {"src/catalogue.cpp", "include/sgdph/version.h", "cmake/SgdphTorch.cmake", "python/sgdph/__init__.py"} <= names
    assert not any(name.startswith(("lab/", "cli/", "tests/", "experiments/", "build/")) for name in names)


def test_the_version_is_the_librarys():
    lines = (ROOT / "include/sgdph/version.h").read_text()
    assert sgdph.__version__ == ".".join(re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", lines))


def test_a_new_optimizer_needs_no_edit_here():
    """The Python sources name no optimizer but in words to the reader."""
    for path in (ROOT / "python/sgdph").glob("*.py"):
        code = ast.unparse(ast.parse(path.read_text()))
        strings = {n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        for text in strings:
            code = code.replace(text, "")
        assert not re.search(r"\b(SGDPH|AdaHessian|AdaBelief|Apollo|Lion)\b", code), path
    assert {info["class_name"] for info in sgdph._core.catalogue()} == {kind.__name__ for kind in sgdph.optimizers.values()}


def test_types_check_where_mypy_is(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        cannot("mypy is not installed")
    (tmp_path / "use.py").write_text(
        "import torch, sgdph\nmodel = torch.nn.Linear(2, 2)\n"
        "o = sgdph.SGDPH(model, lr=0.1, probe='hadamard')\no.backward(model(torch.ones(1, 2)).sum())\nreveal_type(o.partition())\n"
        "kind = sgdph.optimizers['lion']\nkind(model.parameters(), lr=0.1).load_state_dict(o.state_dict())\n"
        "sgdph.SGDPH(model, probe='wrong')\nsgdph.Lion(model.parameters(), betas=(0.9, 0.99))\n"
    )
    env = {**os.environ, "MYPYPATH": str(HOME.parent)}
    itself = subprocess.run([sys.executable, "-m", "mypy", "-p", "sgdph"], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert itself.returncode == 0, itself.stdout
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "use.py"], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert "Partition" in done.stdout and done.stdout.count("error:") == 1 and "use.py:8" in done.stdout, done.stdout

"""The shared library exports what the installed headers mark SGDPH_API, all of it and nothing else, and its name holds the
minor version as long as that may break programs.

  exports_test.py LIBRARY INCLUDE_FOLDER VERSION     VERSION: of the library's name, such as 0.1
"""
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
PREFIXES = re.compile(r"^(typeinfo (name )?for|vtable for|VTT for|(non-virtual|virtual) thunk to|guard variable for) ")
NAMESPACES = {"sgdph", "detail", "nn", "functional"}


def public_names(include):
    """The classes and functions that headers mark, without their namespaces."""
    names = set()
    for header in sorted(include.rglob("*.h")):
        for line in header.read_text().splitlines():
            # A function's name stands before its bracket, a class's after `class`.
            mark = re.match(r"(?:class|struct) SGDPH_API (\w+)|SGDPH_API .*?(operator<<|operator>>|\w+)\(", line.strip())
            if mark:
                names.add(mark.group(1) or mark.group(2))
    return names


def without_templates(name):
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def owner(symbol):
    """The class or function of a namespace that a symbol belongs to; None if it is not in ours."""
    name = PREFIXES.sub("", symbol)
    if not name.startswith("sgdph::"):
        return None
    operator = re.match(r"(?:sgdph::)+(operator<<|operator>>)", name)
    if operator:
        return operator.group(1)
    parts = without_templates(name).split("(")[0].split("::")
    while parts and parts[0] in NAMESPACES:
        parts.pop(0)
    return None if "Impl" in parts else parts[0]


def main(library, include, version):
    if shutil.which("nm") is None or shutil.which("readelf") is None:
        print("needs nm and readelf")
        return SKIPPED
    run = lambda *command: subprocess.run(command, check=True, text=True, capture_output=True).stdout
    symbols = run("nm", "-D", "--defined-only", "-C", library).splitlines()
    exported = [re.sub(r"^[0-9a-f]* +\w ", "", symbol) for symbol in symbols]
    wanted = public_names(pathlib.Path(include))
    problems = [f"not public: {symbol}" for symbol in exported if owner(symbol) not in wanted]
    problems += [f"not exported: {name}" for name in sorted(wanted - {owner(symbol) for symbol in exported})]
    soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", library)).group(1)
    if not soname.endswith(".so." + version):
        problems.append(f"its name is {soname}, not one that ends in .so.{version}")
    print("\n".join(problems) or f"{len(exported)} symbols of {len(wanted)} public names, {soname}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

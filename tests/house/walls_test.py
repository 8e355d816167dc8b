"""The walls of the house: what a compiler cannot refuse. walls_test.py BUILD ROOM..., the rooms that read no LibTorch header."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
TORCH = re.compile(r"/(torch|ATen|c10)/")
CODE = r"(lab|cli)/.*\.(h|cpp)"
OPTIMIZERS = "|".join(re.findall(r'row<.*?>\(\s*"([a-z-]+)"', (ROOT / "src/catalogue.cpp").read_text(), re.S))
# What must not be there: words for the reader, the files looked at, those that may, and the text.
RULES = [
    ("an include that may be missing drops what it brings", r".*(CMakeLists\.txt|\.cmake)", None, r"include\([^)]*OPTIONAL"),
    # Keys of an experiment's file are no settings.
    ("what a setting decides is data of its field", CODE, r"lab/(settings/|reproduce/experiment\.cpp)", r'\bkey [!=]= "'),
    ("optimizers are rows of one list", CODE, r"lab/(optimizers|inspect)/", rf'"({OPTIMIZERS})"'),
    ("versions of LibTorch differ in two headers", r"(include|src|lab|cli)/.*\.(h|cpp)", r"src/detail/compat\.h|lab/train/compat\.h",
     r"TORCH_VERSION_|deleteNode|C10_UTIL_VARIANT|c10::(Warning|get_if|in_place)|c10/util/variant"),
    ("the tree shows no output", r"(experiments/results|docs/figures)/.*", None, r""),
    ("escape codes are written by base alone", CODE, r"lab/base/", r"\\x1b\["),
    ("locks are taken by base alone", CODE, r"lab/base/", r"::flock\b"),
    ("files are put in place by base alone", CODE, r"lab/base/", r"::rename\("),
]


def lines_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def headers_by_object(build):
    """What each object was compiled from, as ninja remembers it."""
    found, current = {}, None
    for line in lines_of("ninja", "-C", str(build), "-t", "deps"):
        if line.startswith("    "):
            found[current].append(line.strip())
        elif ": #deps" in line:
            current = line.split(": #deps")[0]
            found[current] = []
    return found


def libtorch_in(rooms, objects):
    for room in rooms:
        mine = {name: headers for name, headers in objects.items() if f"/sgdph_lab_{room}.dir/" in name}
        if not mine:
            yield f"room {room}: no object of it was built"
        for name, headers in mine.items():
            torch = [header for header in headers if TORCH.search(header)]
            if torch:
                yield f"room {room} reads LibTorch: {name} depends on {torch[0]} and {len(torch) - 1} more"


def broken(rules, files):
    for words, where, allowed, text in rules:
        for name in files:
            if not re.fullmatch(where, name) or (allowed and re.match(allowed, name)):
                continue
            for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
                if re.search(text, line):
                    yield f"{name}:{number}: {words}: {line.strip()}"


def forgotten(build, files):
    """Tests that ctest does not know, and files that are not compiled in."""
    # What ctest reads. Asked for its list, it would begin its log anew, which those may be writing that run this test.
    known = set(re.findall(r"^add_test\((?:\[=*\[)?([\w.]+)", (build / "tests/CTestTestfile.cmake").read_text(), re.M))
    for name in files:
        test = re.fullmatch(r"tests/((?:core|cli|house|lab)(?:/.*)?)/(\w+)_test\.(cpp|py)", name)
        if test and f"{test[1].replace('/', '.')}.{test[2]}" not in known:
            yield f"{name}: ctest does not run it"
    rooms = (ROOT / "lab/CMakeLists.txt").read_text().split()
    for name in files:
        source = re.fullmatch(r"(?:lab/\w+/(\w+)\.cpp|(?:experiments|lab/settings/recipes)/([\w-]+)\.toml)", name)
        if source and not {source[1] or source[2], f"{source[1] or source[2]})"} & set(rooms):
            yield f"{name}: lab/CMakeLists.txt does not name it"


def without_header(files):
    """Debian 12's fmt has join in any of its headers, a newer one in this alone."""
    for name in files:
        if re.fullmatch(r".*\.(h|cpp)", name):
            text = (ROOT / name).read_text()
            if "fmt::join(" in text and "#include <fmt/ranges.h>" not in text:
                yield f"{name}: fmt::join needs <fmt/ranges.h>"


def rooms_named():
    """Of each room those that lab/CMakeLists.txt says it SEES or USES."""
    named = {}
    for body in re.findall(r"^sgdph_room\((.*?)\)", (ROOT / "lab/CMakeLists.txt").read_text(), re.S | re.M):
        room, *words = body.split()
        keys = [i for i, word in enumerate(words) if word in ("SEES", "USES", "SOURCES", "NO_TORCH")] + [len(words)]
        named[room] = {word for at, end in zip(keys, keys[1:]) if words[at] in ("SEES", "USES") for word in words[at + 1:end]}
    return named


def through_the_wall(files):
    """Includes of rooms that the room does not name: what it names may show it their doors, and the compiler lets it."""
    named = rooms_named()
    for name in files:
        source = re.fullmatch(r"lab/(\w+)/\w+\.(h|cpp)", name)
        if not source:
            continue
        for room in sorted(set(re.findall(r'^#include "(\w+)/', (ROOT / name).read_text(), re.M))):
            if room in named and room != source[1] and room not in named[source[1]]:
                yield f"{name}: room {source[1]} includes {room}, which it neither SEES nor USES in lab/CMakeLists.txt"


def astray(files):
    """Sources of a room that open another namespace of the lab than the room's: base is sgdph::lab itself."""
    for name in files:
        source = re.fullmatch(r"lab/(\w+)/\w+\.(h|cpp)", name)
        if not source:
            continue
        own = "sgdph::lab" if source[1] == "base" else f"sgdph::lab::{source[1]}"
        opened = re.findall(r"^namespace (sgdph::lab[\w:]*) \{\n(.*?)^\}", (ROOT / name).read_text(), re.S | re.M)
        # A class of another room may be named before its header is read.
        spaces = {space for space, body in opened if re.sub(r"(class|struct) \w+;\s*", "", body).strip()}
        if not spaces or any(space != own and not space.startswith(own + "::") for space in spaces):
            yield f"{name}: its namespace is {own}, not {', '.join(sorted(spaces)) or 'none'}"


def told_otherwise(files):
    """What README and Makefile say of the tree: its folders, rooms and pages, and the targets there are."""
    readme = (ROOT / "README.md").read_text()
    table = readme[readme.index("## Where things are"):]
    named = {name for name in re.findall(r"`([\w./]+)/`", table) if name.split("/")[0] != "settings"}  # of a room
    there = {name.split("/")[0] for name in files if "/" in name} - {"tests"}
    there |= {"/".join(name.split("/")[:2]) for name in files if re.match(r"tests/.*/", name)}
    shown = named | {name.split("/")[0] for name in named}
    yield from (f"README.md: the table of folders lacks {name}/" for name in sorted(there - shown))
    yield from (f"README.md: there is no folder {name}/" for name in sorted(named) if not (ROOT / name).is_dir())
    rooms = re.search(r"a room each: `([a-z ]+)`", table)
    if not rooms or set(rooms[1].split()) != set(rooms_named()):
        yield f"README.md: the rooms of lab/CMakeLists.txt are {' '.join(rooms_named())}"
    pages = [name for name in files if re.fullmatch(r"docs/[\w-]+\.md", name)]
    yield from (f"README.md: no word of {name}" for name in pages if f"({name})" not in readme)
    lines = len((ROOT / "docs/results.md").read_text().splitlines())
    if lines > 200:
        yield f"docs/results.md: {lines} lines; a page that a person reads has 200 at most"
    make = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)", make, re.M)[1].split())
    helped = set(re.findall(r"^([a-z-]+):.*  ## ", make, re.M))
    yield from (f"Makefile: {name} has no line in make help, or none in .PHONY" for name in sorted(targets ^ helped))


def main():
    build, rooms = Path(sys.argv[1]), sys.argv[2:]
    if not (build / ".ninja_deps").exists() or not (ROOT / ".git").exists():
        print("skipped: needs a build by ninja in a git repository")
        return SKIPPED
    files = [name for name in lines_of("git", "ls-files") if (ROOT / name).is_file()]
    findings = [*libtorch_in(rooms, headers_by_object(build)), *broken(RULES, files), *forgotten(build, files), *astray(files),
                *through_the_wall(files), *without_header(files), *told_otherwise(files)]
    print("\n".join(findings) or f"{len(rooms)} rooms without LibTorch, {len(RULES)} rules, {len(files)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

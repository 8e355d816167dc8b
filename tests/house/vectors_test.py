"""The loops over all parameters are vector code: a pointer that may alias or a constant read anew for each value would turn
them into code that goes value by value, three times as slow and otherwise the same.

  vectors_test.py OBJECT...     the library's object files
"""
import platform
import re
import shutil
import subprocess
import sys

SKIPPED = 77
# By source: what works on several values at once. The portable loop and the one for AVX2 must both be there.
WANTED = {
    "momentum_step.cpp": ["mulps", "mulpd", "vmulps", "vmulpd"],
    "all_finite.cpp": ["paddd", "paddq", "vpaddd", "vpaddq"],
}


def main(objects):
    if platform.machine() not in ("x86_64", "AMD64") or shutil.which("objdump") is None:
        print("needs objdump and an x86-64 processor")
        return SKIPPED
    missing = []
    for source, instructions in WANTED.items():
        found = [path for path in objects if path.endswith(source + ".o")]
        if len(found) != 1:
            missing.append(f"{source}: {len(found)} objects of it, not one")
            continue
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", found[0]], check=True, text=True, capture_output=True)
        used = set(re.findall(r"\t([a-z0-9]+) ", code.stdout))
        missing += [f"{source}: no {name}" for name in instructions if name not in used]
    print("\n".join(missing) or "vector code")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""resources/packages/older-glibc takes from a library the need for newer versions of what has an older one, and says what
it cannot take.

  older_glibc.py SOURCE_DIR"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOL = f"{sys.argv[1]}/resources/packages/older-glibc"
if not shutil.which("cc") or not shutil.which("readelf"):
    print("skipped: no cc or readelf")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    def library(name, text):
        path = f"{folder}/{name}.so"
        with open(f"{folder}/{name}.c", "w") as file:
            file.write(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, f"{folder}/{name}.c", "-lm"], check=True)
        return path

    def needed(path):
        """The versions of glibc that have to be there."""
        text = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True, check=True).stdout
        return [tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_(2\.\d+)\S*  Flags: none", text)]

    math = library("math", "#include <math.h>\ndouble length(double x, double y) { return hypot(x, y); }\n"
                           "double power(double x, double y) { return pow(x, y); }\n")
    if max(needed(math)) <= (2, 34):
        print("skipped: this glibc has no newer hypot")
        sys.exit(77)
    before = os.path.getsize(math)
    for _ in range(2):  # also what has been done before
        done = subprocess.run([TOOL, math], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stdout, done
    assert max(needed(math)) <= (2, 34) and os.path.getsize(math) == before, needed(math)
    loaded = ctypes.CDLL(math)
    loaded.length.restype = loaded.power.restype = ctypes.c_double
    assert loaded.length(ctypes.c_double(3), ctypes.c_double(4)) == 5
    assert loaded.power(ctypes.c_double(3), ctypes.c_double(4)) == 81

    newer = library("newer", "int _dl_find_object(void*, void*);\nint find(void) { return _dl_find_object(0, 0); }\n")
    done = subprocess.run([TOOL, newer], capture_output=True, text=True)
    assert done.returncode == 1 and "_dl_find_object" in done.stdout and max(needed(newer)) == (2, 35), done
    done = subprocess.run([TOOL, __file__], capture_output=True, text=True)
    assert done.returncode != 0
print("ok")

#!/usr/bin/env python3
"""The command line without a window, and programs named partita on PATH: it hands over to one that has a window.

  window.py PARTITA_CLI"""

import os
import shutil
import subprocess
import sys
import tempfile

CLI = os.path.realpath(sys.argv[1])
OTHER = """#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  puts(argc == 2 && !strcmp(argv[1], "--version") ? "partita 9.9+other (release)" : argv[argc - 1]);
  return 0;
}
"""

with tempfile.TemporaryDirectory() as folder:

    def call(*on_path):
        path = ":".join(os.path.join(folder, name) for name in on_path)
        return subprocess.run([CLI, "open", "FILE"], capture_output=True, text=True, timeout=60,
                              env=os.environ | {"PATH": path, "LD_LIBRARY_PATH": os.path.dirname(CLI)})  # fmt: skip

    for name in ("unrelated", "twin", "other"):
        os.mkdir(f"{folder}/{name}")
    shutil.copy("/bin/true", f"{folder}/unrelated/partita")
    shutil.copy(CLI, f"{folder}/twin/partita")  # as a second wheel's
    with open(f"{folder}/other.c", "w") as file:
        file.write(OTHER)
    subprocess.run(["cc", "-o", f"{folder}/other/partita", f"{folder}/other.c"], check=True)

    done = call("unrelated", "twin")
    assert done.returncode == 3 and "needs the program with a window" in done.stderr, done
    done = call("unrelated", "twin", "other")
    assert (done.returncode, done.stdout) == (0, "FILE\n"), done
    assert f"the window is {folder}/other/partita, version 9.9+other; this is " in done.stderr, done

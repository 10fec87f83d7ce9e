"""resources/tidy finds a planted fault in a file that changed, also where a build in batches does not name it.

  tidy.py SOURCE_DIR"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = sys.argv[1]
FAULT = """#include <string>
#include <utility>
std::string::size_type NAME(std::string a) {
  std::string b = std::move(a);
  return a.size() + b.size();
}
"""

if not shutil.which("clang-tidy-19"):
    print("skipped: clang-tidy-19 is not installed")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    folder = os.path.realpath(folder)

    def write(path, text):
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        with open(f"{folder}/{path}", "w") as file:
            file.write(text)

    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=folder, check=True, capture_output=True)

    def tidy(*words):
        done = subprocess.run([f"{folder}/resources/tidy", *words], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    os.makedirs(f"{folder}/resources")
    shutil.copy(f"{SOURCE}/resources/tidy", f"{folder}/resources/tidy")
    shutil.copy(f"{SOURCE}/.clang-tidy", f"{folder}/.clang-tidy")
    for name in ("alone", "first", "second", "old"):
        write(f"core/{name}.cpp", "int unused;\n")
    write("core/old.cpp", FAULT.replace("NAME", "old"))
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "a")
    code, said = tidy()
    assert code == 0 and "has no parent" in said, said
    write("core/alone.cpp", "int alone();\n")
    git("commit", "-q", "-am", "b")
    code, said = tidy()
    assert code == 2 and "is configured" in said, said

    def compiled(file):
        return {"directory": folder, "file": file, "command": f"clang++-19 -std=c++20 -o x.o -c {file}"}

    batch = f"{folder}/build/release/CMakeFiles/t.dir/Unity/unity_0_cxx.cxx"
    write(os.path.relpath(batch, folder), "".join(f'#include "{folder}/core/{n}.cpp"\n' for n in ("first", "second")))
    write("build/release/compile_commands.json", json.dumps([compiled(batch), *(compiled(f"{folder}/core/{n}.cpp") for n in ("alone", "old"))]))
    git("add", "-A")
    code, said = tidy()
    assert code == 0 and said.startswith("1 of 1 .cpp files"), said

    write("core/second.cpp", FAULT.replace("NAME", "second"))
    write("core/new.cpp", "int made;\n")
    code, said = tidy()
    assert code == 1 and "core/second.cpp:5:10" in said and "bugprone-use-after-move" in said, said
    assert "core/old.cpp" not in said and "core/new.cpp: not checked" in said, said
    code, said = tidy("--files", "1")
    assert code == 1 and "leaves them out: core/alone.cpp" in said and "1 of 3 .cpp files" in said, said
    code, said = tidy("nobody")
    assert code == 2 and "nobody is no commit" in said, said

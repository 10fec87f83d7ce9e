"""The program carries what it needs: a copy of it, in a folder with spaces and on a system without fonts, shows the window
and compiles libraries; it says which commit it was built from.

  carried.py PARTITA SOURCE_DIR"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = f"{SOURCE}/resources/samples/mlp/program.pt2"
NO_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/nonexistent</dir></fontconfig>
"""

with tempfile.TemporaryDirectory() as folder:
    place = f"{folder}/a folder"
    os.makedirs(f"{place}/bin")
    shutil.copy(PARTITA, f"{place}/bin/partita")
    with open(f"{folder}/fonts.conf", "w") as file:
        file.write(NO_FONTS)
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env |= {"FONTCONFIG_FILE": f"{folder}/fonts.conf", "QT_QPA_PLATFORM": "offscreen", "PARTITA_STORE": f"{folder}/store",
            "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
    if "RPATH" in (described := subprocess.run(["readelf", "-d", PARTITA], capture_output=True, text=True).stdout):
        assert "[$ORIGIN/../lib]" in described, described  # linked for packages

    def partita(*words):
        return subprocess.run([f"{place}/bin/partita", *words], capture_output=True, text=True, env=env, cwd=folder)

    done = partita("--version")
    [of] = re.findall(r"^partita \d+\.\d+\.\d+(?:\+\d{8}t\d{4}\.g([0-9a-f]{8,}))? \(\w.*\)\n$", done.stdout)
    assert not of or subprocess.run(["git", "-C", SOURCE, "cat-file", "-e", of]).returncode == 0, f"{of} is no commit"

    with open(PARTITA, "rb") as file:
        if "Inter-Regular.otf".encode("utf-16-be") not in file.read():
            print("skipped: fonts-inter was not installed where this was built")
            sys.exit(77)
    done = partita("open", MODEL, "--screenshot", "window.png")
    assert done.returncode == 0, done.stderr
    # With boxes in place of letters it has 28,000 bytes, else 187,000.
    assert os.path.getsize(f"{folder}/window.png") > 100_000, os.path.getsize(f"{folder}/window.png")

    done = partita("compile", MODEL, "-o", "model.so", "--isa", "baseline")
    assert done.returncode == 2 and re.fullmatch("partita: libpartita_runtime.a is not beside .*\n", done.stderr), done
    os.makedirs(f"{place}/lib/partita")
    os.symlink(f"{os.path.dirname(PARTITA)}/libpartita_runtime.a", f"{place}/lib/partita/libpartita_runtime.a")
    done = partita("compile", MODEL, "-o", "model.so", "--isa", "baseline")
    assert done.returncode == 0 and os.path.exists(f"{folder}/model.so"), done
print("ok")

"""`-` is standard input where a verb reads a file, and standard output behind -o; `partita FILE` opens it.

  streams.py PARTITA SOURCE_DIR"""

import json
import os
import subprocess
import sys
import tempfile

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SAMPLE = f"{SOURCE}/resources/samples/mlp"

with tempfile.TemporaryDirectory() as folder:
    os.mkdir(f"{folder}/tmp")
    env = {**os.environ, "PARTITA_STORE": f"{folder}/store.sqlite", "XDG_CONFIG_HOME": folder, "TMPDIR": f"{folder}/tmp"}

    def partita(*words, stdin=b"", code=0):
        done = subprocess.run([PARTITA, *words], input=stdin, capture_output=True, env=env, cwd=folder)
        assert done.returncode == code, f"{words}: {done.returncode} {done.stderr}"
        return done

    program, io = (open(f"{SAMPLE}/{name}", "rb").read() for name in ("program.pt2", "io.safetensors"))
    text = partita("show", f"{SAMPLE}/program.pt2").stdout
    assert partita("show", "-", stdin=program).stdout == text
    assert partita("show", "-", stdin=text).stdout == partita("show", "-", "-o", "-", stdin=text).stdout
    assert b"20" in partita("list", "-", stdin=program).stdout
    words = ["run", f"{SAMPLE}/program.pt2", "--backend", "interp", "-o"]
    partita(*words, "out.safetensors", "--inputs", f"{SAMPLE}/io.safetensors")
    piped = partita(*words, "-", "--inputs", "-", stdin=io)
    assert piped.stdout == open(f"{folder}/out.safetensors", "rb").read() and b"output.0" in piped.stderr
    assert b"read once" in partita("compare", "-", "--inputs", "-", stdin=program, code=2).stderr
    partita("show", "-", stdin=b"", code=2)
    # The store remembers no scratch file, and what the compiler prints does not go between the bytes.
    partita("run", "-", "--inputs", f"{SAMPLE}/io.safetensors", stdin=program)
    history = partita("store", "list").stdout.decode()
    assert "  - exported interp ok" in history and "/stdin" not in history, history
    printed = partita("run", f"{SAMPLE}/program.pt2", "--inputs", f"{SAMPLE}/io.safetensors", "--compiler",
                      "print_compile", "-o", "-")
    assert printed.stdout == piped.stdout and b"def forward" in printed.stderr
    for verb in (["aot"], ["export"], ["minify", "--check", "crash"], ["run", "--compiler", "nop", "--compiler-folder"]):
        refused = partita(*verb, *([] if verb[0] == "run" else ["-o"]), "-", f"{SAMPLE}/program.pt2", code=2)
        assert b"standard output is no folder" in refused.stderr, refused.stderr
    assert not os.path.exists(f"{folder}/-")
    assert os.listdir(f"{folder}/tmp") == [], "scratch is left"

    env["QT_QPA_PLATFORM"] = "offscreen"
    partita(f"{SAMPLE}/program.pt2", "--screenshot", "window.png", "--events", "events")
    assert open(f"{folder}/window.png", "rb").read(8) == b"\x89PNG\r\n\x1a\n"
    painted = [event for event in map(json.loads, open(f"{folder}/events")) if event["event"] == "painted"]
    assert painted and painted[-1]["cards"] > 0, painted

print("ok")

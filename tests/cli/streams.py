"""`-` is standard input where a verb reads a file, and standard output behind -o; `partita FILE` opens it.

  streams.py PARTITA SOURCE_DIR"""

import json
import os
import resource
import stat
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
    picture = subprocess.run([PARTITA, "open", f"{SAMPLE}/program.pt2", "--size", "640x480", "--screenshot", "-"], env={**env,
                             "QT_QPA_PLATFORM": "offscreen", "TMPDIR": folder}, stdin=subprocess.PIPE, capture_output=True)
    assert picture.returncode == 0 and picture.stdout.startswith(b"\x89PNG"), picture
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

    # What is behind -o stays what it is: modes, links, fifos, folders; what cannot be written is refused before any work.
    outputs = {"show": ["show", f"{SAMPLE}/program.pt2", "-o"],
               "json": ["show", f"{SAMPLE}/program.pt2", "--format", "json", "-o"],
               "run": [*words[:-1], "--inputs", f"{SAMPLE}/io.safetensors", "-o"],
               "report": ["report", f"{SAMPLE}/program.pt2", "--inputs", f"{SAMPLE}/io.safetensors", "-o"]}
    for name, verb in outputs.items():
        at = f"{folder}/{name}"
        os.makedirs(f"{at}/folder")
        open(f"{at}/file", "w").write("before")
        os.chmod(f"{at}/file", 0o640)
        os.symlink("file", f"{at}/link")
        os.mkfifo(f"{at}/fifo")
        partita(*verb, f"{at}/link")
        assert os.path.islink(f"{at}/link") and os.stat(f"{at}/file").st_mode & 0o777 == 0o640, name
        written = open(f"{at}/file", "rb").read()
        assert len(written) > 100 and written != b"before", name
        reader = subprocess.Popen(["cat", f"{at}/fifo"], stdout=subprocess.PIPE)
        partita(*verb, f"{at}/fifo")
        assert len(reader.communicate()[0]) > 100 and stat.S_ISFIFO(os.stat(f"{at}/fifo").st_mode), name
        listed = sorted(os.listdir(at))
        for refused in (f"{at}/folder", f"{at}/nowhere/file", f"{at}/file/under"):
            said = partita(*verb, refused, code=2).stderr
            assert said.count(b"\n") == 1 and b"cannot write" in said, said
        assert sorted(os.listdir(at)) == listed and open(f"{at}/file", "rb").read() == written, name
        with open(f"{at}/kept", "w") as kept:
            kept.write("kept ")
            kept.flush()
            subprocess.run([PARTITA, *verb, f"/proc/self/fd/{kept.fileno()}"], pass_fds=[kept.fileno()], env=env,
                           check=True, capture_output=True)
        assert open(f"{at}/kept", "rb").read().startswith(b"kept ") and os.path.getsize(f"{at}/kept") > 100, name

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
        full = subprocess.run([PARTITA, *verb, f"{at}/file"], preexec_fn=small_files, capture_output=True,
                              env={**env, "PARTITA_STORE": "relative"})
        assert full.returncode == 2 and b"file: cannot write: File too large" in full.stderr, full
        assert open(f"{at}/file", "rb").read() == written and sorted(os.listdir(at)) == sorted([*listed, "kept"]), name
    for verb in (["aot", f"{SAMPLE}/program.pt2"], ["export", f"{SAMPLE}/program.pt2"],
                 ["minify", f"{SAMPLE}/program.pt2", "--check", "crash"]):
        said = partita(*verb, "-o", f"{folder}/show/file/under", code=2).stderr
        assert b"is no folder" in said and said.count(b"\n") == 1, said
    assert os.listdir(f"{folder}/tmp") == [], "scratch is left"

    env["QT_QPA_PLATFORM"] = "offscreen"
    partita(f"{SAMPLE}/program.pt2", "--screenshot", "window.png", "--events", "events")
    assert open(f"{folder}/window.png", "rb").read(8) == b"\x89PNG\r\n\x1a\n"
    painted = [event for event in map(json.loads, open(f"{folder}/events")) if event["event"] == "painted"]
    assert painted and painted[-1]["cards"] > 0, painted
    # Nothing is touched for a picture that cannot be written, and lost events are told.
    open(f"{folder}/notes.txt", "w").write("notes")
    for words in (["--screenshot", "notes.txt"], ["--screenshot", "notes.txt", "--events", "events"],
                  ["--screenshot", "nowhere/window.png"], ["--screenshot", "window.png", "--events", "nowhere/events"]):
        before = open(f"{folder}/events").read()
        partita(f"{SAMPLE}/program.pt2", *words, code=2)
        assert open(f"{folder}/notes.txt").read() == "notes" and open(f"{folder}/events").read() == before, words

    os.mkfifo(f"{folder}/events.fifo")
    reader = subprocess.Popen(["head", "-c", "10", f"{folder}/events.fifo"], stdout=subprocess.DEVNULL)
    lost = partita(f"{SAMPLE}/program.pt2", "--screenshot", "window.png", "--events", "events.fifo", code=2).stderr
    assert b"events.fifo: cannot write: Broken pipe" in lost and lost.count(b"\n") == 1, lost
    reader.wait()

print("ok")

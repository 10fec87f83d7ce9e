#!/usr/bin/env python3
"""Long commands show how far they are on a terminal, and only there; what they print stays the same.

  progress.py PARTITA SOURCE_DIR"""
import os, pty, subprocess, sys, tempfile


def main():
    partita, source = sys.argv[1:3]
    sample = f"{source}/resources/samples/mlp"
    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "TMPDIR": work}
        # A hang keeps the command at work for longer than it takes until the line appears.
        words = [partita, "compare", f"{sample}/program.pt2", "--inputs", f"{sample}/io.safetensors", "--train", "--per-node",
                 "--backends", "interp,cpu", "--plant", "aten.gelu.default:hang", "--timeout", "2"]
        shown = b""
        master, slave = pty.openpty()
        run = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        terminal = run.communicate()[0]
        piped = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    failures = []
    if b"\r\x1b[K" not in shown:
        failures.append(f"no progress on a terminal: {shown[-300:]}")
    if not shown.rstrip().endswith(b"\x1b[K") and shown.rstrip().rsplit(b"\r\x1b[K", 1)[-1].startswith(b"["):
        failures.append(f"the line is left behind: {shown[-300:]}")
    if b"\x1b" in piped.stderr or b"\r" in piped.stderr or b"\x1b" in piped.stdout + terminal:
        failures.append(f"progress where there is no terminal: {piped.stderr[-300:]}")
    if run.returncode != piped.returncode or run.returncode != 1:
        failures.append(f"exit codes {run.returncode}, {piped.returncode}")
    for failure in failures:
        print("FAIL", failure)
    return 1 if failures else 0


sys.exit(main())

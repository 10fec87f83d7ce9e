#!/usr/bin/env python3
"""Opening a file starts no program and asks no other machine: strace of `list` and `show` sees neither exec nor connect.

  opens_quietly.py PARTITA SOURCE_DIR          a few files of each kind
  opens_quietly.py PARTITA SOURCE_DIR --all    every file of the corpus
exit 0 if so, 1 if not, 77 where strace or the corpus is missing
"""
import collections, json, os, shutil, subprocess, sys, tempfile

OF_EACH_KIND = 3
SHOWN = 2  # graphs of each file


def main():
    partita, source = sys.argv[1:3]
    corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
    if not shutil.which("strace") or not os.path.isdir(corpus):
        print("skipped: no strace, or no corpus")
        return 77
    with tempfile.TemporaryDirectory() as work:
        log = f"{work}/calls"
        # LeakSanitizer does not work under strace.
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "PARTITA_STORE": f"{work}/store.sqlite"}
        calls = collections.Counter()
        failures = []

        def run(*args):
            calls["runs"] += 1
            done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=execve,execveat,connect", "-o", log, partita, *args],
                                  env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode not in (0, 2, 3):
                failures.append(f"{' '.join(args)}: exit {done.returncode}")
            seen = [line for line in open(log, errors="replace") if "execve" in line or "connect(" in line]
            # The first is the start of the program itself.
            if len(seen) < 1 or f'"{partita}"' not in seen[0]:
                failures.append(f"{' '.join(args)}: strace saw nothing")
            failures.extend(f"{' '.join(args)}: {line.strip()[:200]}" for line in seen[1:])
            return done

        files, kinds = [], collections.Counter()
        for folder, _, names in sorted(os.walk(corpus, followlinks=True)):
            for name in sorted(names):
                kind = os.path.splitext(name)[1]
                kinds[kind] += 1
                if "--all" in sys.argv or kinds[kind] <= OF_EACH_KIND:
                    files.append(os.path.join(folder, name))
        for file in files:
            listed = run("list", file, "--json")
            if listed.returncode != 0:
                calls["refused"] += 1
                continue
            for graph in json.loads(listed.stdout)["graphs"][:SHOWN]:
                if run("show", file, "--graph", graph["id"]).returncode == 0:
                    calls["graphs"] += 1
        print(f"{len(files)} files of {len(kinds)} kinds, {calls['refused']} of them hold no graph; "
              f"{calls['graphs']} graphs shown; {calls['runs']} runs, {len(failures)} calls of exec or connect")
        for failure in failures[:20]:
            print("FAIL", failure)
        if calls["graphs"] < 2 * OF_EACH_KIND:
            print("FAIL: too few graphs were shown")
            return 1
        return 1 if failures else 0


sys.exit(main())

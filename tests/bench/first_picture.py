#!/usr/bin/env python3
"""From the start of the program to the first picture on the screen, in milliseconds, the best of some runs.

  first_picture.py PARTITA FILE... [--warm]     needs a display (DISPLAY, for instance of Xvfb)
As root the page cache is dropped before each run, unless --warm, and the program gets real-time priority, so that other
work on the machine counts less."""
import json, os, subprocess, sys, tempfile, time

RUNS = 5
ROOT = os.geteuid() == 0


def first_picture(partita, file, work, cold):
    log = f"{work}/events"
    if os.path.exists(log):
        os.remove(log)
    if cold:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as caches:
            caches.write("3")
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "XDG_CONFIG_HOME": work}
    begun = time.monotonic() * 1e3
    window = subprocess.Popen([*(["chrt", "-f", "10"] if ROOT else []), partita, "open", file, "--events", log], env=env,
                              stderr=subprocess.DEVNULL)
    events = {}
    while "painted" not in events and window.poll() is None:
        time.sleep(0.02)
        if os.path.exists(log):
            with open(log) as lines:
                for line in lines:
                    if line.endswith("\n"):
                        e = json.loads(line)
                        what = " ".join([e["event"], *e.get("name", "").split()[:1]])
                        events.setdefault(what, e["at"] - begun)
    window.kill()
    window.wait()
    return events


def main():
    words = [word for word in sys.argv[1:] if word != "--warm"]
    if len(words) < 2:
        return __doc__
    partita, *files = words
    with tempfile.TemporaryDirectory() as work:
        for file in files:
            runs = [first_picture(partita, file, work, ROOT and "--warm" not in sys.argv) for _ in range(RUNS)]
            best = min(runs, key=lambda events: events.get("painted", float("inf")))
            steps = ", ".join(f"{name} {ms:.0f}" for name, ms in best.items() if name in ("done Load", "done Draw", "shown"))
            print(f"{file}: {best.get('painted', float('nan')):.0f} ms ({steps})")


sys.exit(main())

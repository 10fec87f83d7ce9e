#!/usr/bin/env python3
"""How long `partita kernels --profile` takes for a large profile, and how much memory: writes one of about 2 GB, as
torch.profiler with shapes and stacks writes it, of a log of the corpus.
profile_size.py PARTITA SOURCE_DIR [GIGABYTES] [gz]"""
import gzip, json, os, resource, subprocess, sys, tempfile, time

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
gigabytes = float(sys.argv[3]) if len(sys.argv) > 3 else 2
packed = "gz" in sys.argv[3:]
corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
folder = f"{corpus}/artefacts/torch-2.13/profiled"
trace = json.load(open(f"{folder}/profile.json"))
events = trace.pop("traceEvents")
first = min(e["ts"] for e in events if e["ph"] == "X" and e["cat"] != "Trace")
length = max(e["ts"] + e.get("dur", 0) for e in events if e.get("ph") == "X" and e["cat"] != "Trace") - first
stack = [{"ph": "X", "cat": "python_function", "name": f"/opt/py/lib/torch/nn/modules/module.py({i}): _call_impl",
          "pid": 12613, "tid": 12613, "ts": first + i, "dur": 500,
          "args": {"Python id": i, "Python parent id": i - 1, "Ev Idx": i}} for i in range(400)]
# Copies later in time: only the number changes, so that writing takes no longer than it must.
times = [e["ts"] for e in events + stack]
pieces = [json.dumps({**e, "ts": "@"}).split('"@"') for e in events + stack if e.get("cat") != "Trace"]
times = [t for e, t in zip(events + stack, times) if e.get("cat") != "Trace"]

with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
    path = f"{work}/profile.json" + (".gz" if packed else "")
    written = count = 0
    with (gzip.open(path, "wt", compresslevel=1) if packed else open(path, "w")) as file:
        file.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        while written < gigabytes * 1e9:
            shift = count * length
            text = ",\n".join(f"{a}{t + shift:.3f}{b}" for (a, b), t in zip(pieces, times))
            file.write((",\n" if count else "") + text)
            written += len(text)
            count += 1
        file.write("\n]}")
    print(f"{written / 1e9:.2f} GB, {count * len(pieces)} events, {os.path.getsize(path) / 1e9:.2f} GB on disk", flush=True)
    start = time.time()
    done = subprocess.run([partita, "kernels", f"{folder}/trace", "--profile", path, "--json"], capture_output=True,
                          text=True)
    taken = time.time() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    print(f"{taken:.1f} s, of which {used.ru_utime + used.ru_stime:.1f} s of a processor, "
          f"{used.ru_maxrss * 1024 / 1e6:.0f} MB; {len(found['steps'])} steps, {found['seconds']['total']:.3f} s compiled, "
          f"{found['seconds']['on_nodes']:.3f} s at nodes, notes: {found['notes']}")

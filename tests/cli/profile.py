#!/usr/bin/env python3
"""Profiles of the user's own run: `kernels`, `query times` and `diff` with --profile, on traces made by hand from the
format of torch.profiler (of a CPU, and of a GPU, which were not taken on a device), on damaged ones, and on those of the
corpus, whose sums are held against the trace's own.
profile.py PARTITA SOURCE_DIR"""
import collections, gzip, hashlib, json, os, subprocess, sys, tempfile

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
LOG = f"{source}/tests/load/inductor.log"
CORPUS = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
KEY = "fhandmade"
# What the code of the log calls, in turn, as a profile names it.
CALLS = ["aten::addmm", "graph_0_cpp_fused_gelu_0", "aten::addmm",
         "graph_0_cpp_fused_add_gelu_native_layer_norm_native_layer_norm_backward_1", "aten::addmm",
         "graph_0_cpp_fused__log_softmax_nll_loss_forward_2"]
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def close(a, b, what, part=0.001):
    check(abs(a - b) <= part * max(abs(a), abs(b), 1e-12), f"{what}: {a} is not {b}")


def event(name, begin, length, cat="cpu_op", tid=7, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": 1000.5 + begin, "dur": length, "args": args}


def annotation(key, begin, length, **kw):
    return event(f"## Call CompiledFxGraph {key} ##", begin, length, "user_annotation", **kw)


def run_of(begin, key=KEY, scale=1, calls=CALLS):
    """100 microseconds and a call each 10; each takes as many as its place, and has an operator within it."""
    events = [annotation(key, begin, 100)]
    for i, name in enumerate(calls):
        events.append(event(name, begin + 10 * i + 1, (i + 1) * scale))
        events.append(event("aten::empty", begin + 10 * i + 1.2, 0.5))
    return events


def steps_of(count, **kw):
    out = []
    for s in range(count):
        out += [event(f"ProfilerStep#{s + 4}", 1000 * s, 900, "user_annotation"),
                event("Torch-Compiled Region: 0/0", 1000 * s + 40, 200)] + run_of(1000 * s + 50, **kw)
    return out


def document(events, **top):
    return {"schemaVersion": 1, **top, "traceEvents": events, "traceName": "by hand"}


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}

    def run(*words, code=0):
        done = subprocess.run([partita, *words], capture_output=True, text=True, env=env)
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def write(name, content):
        path = f"{work}/{name}"
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        with (gzip.open if name.endswith(".gz") else open)(path, "wb") as file:
            file.write(data)
        return path

    # The log of the repo, with the record that tells the key of its code.
    payload = json.dumps({"key": KEY})
    log = f"{work}/keyed.log"
    with open(LOG) as given, open(log, "w") as keyed:
        keyed.write(given.read().rstrip("\n") + "\n")
        keyed.write('V1129 09:36:41.368000 1 torch/_inductor/compile_fx.py:1149] {"artifact": {"name": '
                    '"fx_graph_cache_miss", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, '
                    f'"has_payload": "{hashlib.md5(payload.encode()).hexdigest()}"}}\n\t{payload}\n')

    def kernels(profile, *words, of=log):
        return json.loads(run("kernels", of, "--profile", profile, "--json", *words))

    # Three steps, the second slower: medians and spread, calls in the order of the code, what is left is the wrapper's.
    events = steps_of(3)
    for e in events:
        if e["name"] == CALLS[1] and 1000 < e["ts"] - 1000.5 < 2000:
            e["dur"] = 8
    plain = write("plain.json", document(events))
    found = kernels(plain)
    check(found["steps_by"] == "ProfilerStep" and len(found["steps"]) == 3, f"steps: {found['steps']}")
    check(len(found["graphs"]) == 1 and found["graphs"][0]["key"] == KEY, "the graph of the key")
    calls = found["graphs"][0]["calls"]
    check([c["kind"] for c in calls] == ["library", "kernel"] * 3 + ["wrapper"], f"kinds: {[c['kind'] for c in calls]}")
    check(all(c["match"] == "order" for c in calls[:-1]), "matched in order")
    check(calls[0]["nodes"] == ["addmm"] and calls[2]["nodes"] == ["addmm_1"] and "erf" in calls[1]["nodes"],
          f"nodes: {[c['nodes'] for c in calls]}")
    for i, call in enumerate(calls[:-1]):
        close(call["seconds"]["median"], (i + 1) * 1e-6, f"median of call {i}")
    close(calls[1]["seconds"]["most"], 8e-6, "the slow step")
    close(calls[1]["seconds"]["sum"], 12e-6, "sum of a call")
    close(calls[-1]["seconds"]["median"], 79e-6, "the wrapper's own time")
    close(found["seconds"]["total"], 300e-6, "the time of all runs")
    close(found["seconds"]["on_nodes"], 69e-6, "the time at nodes")
    close(sum(c["seconds"]["sum"] for c in calls), found["seconds"]["total"], "parts make up the whole")
    check(calls[0]["bytes"] > 0 and calls[0]["operations"] > 0 and calls[1]["bytes_per_second"] > 0, "rates")
    # Some steps only.
    close(kernels(plain, "--steps", "2")["graphs"][0]["calls"][1]["seconds"]["median"], 8e-6, "step 2 alone")
    close(kernels(plain, "--steps", "2-3")["seconds"]["total"], 200e-6, "steps 2 and 3")
    for bad in ["0", "4", "3-2", "x", "1-9"]:
        check("steps" in run("kernels", log, "--profile", plain, "--steps", bad, code=2), f"steps {bad}")
    run("kernels", log, "--steps", "1", code=2)  # of no profile
    # Lines of text say the same.
    text = run("kernels", log, "--profile", plain)
    check("3 steps (by ProfilerStep)" in text and "cpp_fused_gelu_0" in text and "of mul, mul_1, erf" in text, text)

    # Compressed, as one list, in any order, and with other events between, it is the same.
    same = ["graphs", "seconds", "steps"]
    others = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 1, "args": {"name": "python"}},
              event("forward", 10, 900, "python_function"), {"ph": "i", "name": "mark", "s": "t", "ts": 5, "pid": 1},
              event("odd \"quotes\" \\ {[", 2000, 1)]
    for name, content in [("plain.json.gz", document(events)), ("list.json", events),
                          ("mixed.json", document(others + events[::-1])),
                          ("header.json", document(events, deviceProperties=[{"id": 0, "name": "GPU \"0\""}], n=1.5))]:
        other = kernels(write(name, content))
        check(all(other[k] == found[k] for k in same), f"{name} gives other numbers")

    # Without marks of steps: the optimizer's end, else the first graph.
    bare = [e for e in events if not e["name"].startswith("ProfilerStep")]
    check(len(kernels(write("bare.json", document(bare)))["steps"]) == 3, "steps by runs")
    optimizer = [event("Optimizer.step#SGD.step", 1000 * s + 600, 100, "user_annotation") for s in range(3)]
    by = kernels(write("optimizer.json", document(bare + optimizer)))
    check(by["steps_by"] == "Optimizer.step" and len(by["steps"]) == 3, f"steps by the optimizer: {by['steps_by']}")

    # A graph that no cache knows is found by its calls; one of another log has a row of its own, without nodes.
    nameless = kernels(write("none.json", document(steps_of(2, key="None"))), of=LOG)
    check(nameless["graphs"][0]["calls"][1]["nodes"] == calls[1]["nodes"], "a graph without a key")
    unknown = kernels(write("unknown.json", document(events + run_of(4000, key="fother"))))
    check([g["name"] for g in unknown["graphs"]][1] == "fother" and unknown["notes"], "a graph of another log")
    check(all(not c["nodes"] for c in unknown["graphs"][1]["calls"]), "nodes of another log")
    close(unknown["seconds"]["total"], 400e-6, "with the other graph")

    # Without profiled C++ kernels these are within the wrapper's time, and that is said.
    silent = kernels(write("silent.json", document(steps_of(2, calls=["aten::addmm"] * 3))))
    check(len(silent["graphs"][0]["not_in_profile"]) == 3, "what was not profiled")
    check(any("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE" in note for note in silent["notes"]), f"{silent['notes']}")
    # A library call of several operators is the one between its neighbours.
    several = CALLS[:4] + ["aten::mul", "aten::add"] + CALLS[5:]
    place = kernels(write("place.json", document(steps_of(1, calls=several))))["graphs"][0]["calls"]
    check(place[4]["match"] == "place" and place[4]["calls"] == 2, f"{place[4]}")
    # A call that is not in the code is named.
    more = kernels(write("more.json", document(steps_of(1, calls=CALLS[:2] + ["aten::foo"] + CALLS[2:]))))
    check([c["kind"] for c in more["graphs"][0]["calls"]].count("other") == 1, "a call of no code")
    close(more["seconds"]["in_other_calls"], 3e-6, "a call of no code")

    # Sizes of inputs are held against the graph's.
    sized = steps_of(1)
    first = next(e for e in sized if e["name"] == "aten::addmm")
    first["args"]["Input Dims"] = [[64], [8, 32], [32, 64], [], [], [8, 64]]
    check(not kernels(write("sized.json", document(sized)))["notes"], "sizes that are the graph's")
    first["args"]["Input Dims"] = [[3], [5, 7], [7, 3]]
    check(any("other sizes" in n for n in kernels(write("sized.json", document(sized)))["notes"]), "other sizes")

    # A GPU: the work of the device counts, by correlation, by the operator around it, by an arrow; what was launched
    # outside of compiled graphs is told.
    def gpu(how):
        out = []
        for s in range(2):
            begin = 1000 * s
            out += [event(f"ProfilerStep#{s}", begin, 900, "user_annotation"), annotation(KEY, begin + 10, 100)]
            for i, name in enumerate(CALLS):
                id = 100 * s + i + 1
                at = begin + 10 + 10 * i + 1
                name = name.replace("graph_0_", "")
                out.append(event(name, at, 5, **({"External id": id})))
                args = {"stream": 7, "device": 0}
                if how == "correlation":
                    out.append(event("cuLaunchKernel", at + 1, 2, "cuda_driver", correlation=id))
                    args["correlation"] = id
                elif how == "external":
                    args["External id"] = id
                else:
                    out.append({"ph": "s", "id": id, "pid": 1, "tid": 7, "ts": 1000.5 + at + 1, "cat": "ac2g",
                                "name": "ac2g"})
                    out.append({"ph": "f", "id": id, "pid": 0, "tid": 7, "ts": 1000.5 + begin + 200 + 20 * i,
                                "cat": "ac2g", "name": "ac2g", "bp": "e"})
                work = event("sgemm" if i % 2 == 0 else name, begin + 200 + 20 * i, 10 + i, "kernel", **args)
                work["pid"] = 0
                out.append(work)
            out.append(event("cudaMemcpyAsync", begin + 300, 2, "cuda_runtime", correlation=9000 + s))
            copy = event("Memcpy HtoD", begin + 400, 50, "gpu_memcpy", correlation=9000 + s)
            copy["pid"] = 0
            out.append(copy)
        return document(out, deviceProperties=[{"id": 0, "name": "NVIDIA H200"}])

    for how in ["correlation", "external", "arrow"]:
        device = kernels(write(f"gpu_{how}.json", gpu(how)))
        check(device["device"] == "NVIDIA H200", f"{how}: the device")
        close(device["seconds"]["total"], 2 * 75e-6, f"{how}: the time of the device")
        close(device["seconds"]["on_nodes"], 2 * 75e-6, f"{how}: at nodes")
        close(device["seconds"]["outside"], 100e-6, f"{how}: outside")
        for i, call in enumerate(device["graphs"][0]["calls"][:-1]):
            close(call["seconds"]["median"], (10 + i) * 1e-6, f"{how}: call {i}")
            check(call["nodes"] == calls[i]["nodes"], f"{how}: nodes of call {i}")
    # A kernel that is launched by no operator goes by its own name.
    raw = gpu("correlation")
    raw["traceEvents"] = [e for e in raw["traceEvents"] if e["name"] != CALLS[1].replace("graph_0_", "")
                          or e["cat"] == "kernel"]
    alone = kernels(write("gpu_alone.json", raw))["graphs"][0]["calls"]
    check(alone[1]["name"] == "cpp_fused_gelu_0" and alone[1]["nodes"] == calls[1]["nodes"], "a kernel alone")
    close(alone[1]["seconds"]["median"], 11e-6, "a kernel alone")

    # `query times` ranks the same, and leads to the nodes.
    asked = json.loads(run("query", log, "times", "--profile", plain, "--json"))
    check(asked["rows"][0]["text"].find("wrapper") > 0 and asked["rows"][1]["node"] in calls[5]["nodes"],
          f"{asked['rows'][:2]}")
    check([r["number"] for r in asked["rows"]] == sorted((r["number"] for r in asked["rows"]), reverse=True), "ranked")
    check(asked["rows"][1]["graph"] == "0_0.inductor_post_grad_graph", "the graph of a row")
    run("query", log, "breaks", "--profile", plain, code=2)

    # Two profiles: what differs by more than steps do.
    slow = write("slow.json", document(steps_of(3, scale=1.5)))
    differs = json.loads(run("diff", log, "--profile", plain, "--profile", slow, "--json"))
    times = [r for r in differs["rows"] if r["aspect"] == "run times"]
    check(any("addmm" in r["what"] for r in times) and not differs["differs"], f"{times}")
    none = json.loads(run("diff", log, log, "--profile", plain, "--profile", plain, "--json"))
    check([r["what"] for r in none["rows"] if r["aspect"] == "run times"] == ["all its runs"], "no difference")
    run("diff", log, log, "--profile", plain, code=2)

    # Damage. What is before it is read, and said.
    whole = json.dumps(document(events)).encode()
    packed = gzip.compress(whole)
    cut = kernels(write("cut.json", whole[:int(len(whole) * 0.8)]))
    check(len(cut["graphs"]) == 1 and any("damaged" in n for n in cut["notes"]), f"a cut file: {cut['notes']}")
    with open(f"{work}/cut.gz", "wb") as file:
        file.write(packed[:len(packed) * 2 // 3])
    check(any("damaged" in n for n in kernels(f"{work}/cut.gz")["notes"]), "a cut compressed file")
    odd = [{"ph": "X"}, {"ph": 3, "cat": []}, event("aten::mm", 0, -5), event("aten::mm", 1e300, 1), event(5, 0, 1),
           {**event("aten::mm", 0, 1), "ts": "now"}, {**event("aten::mm", 0, 1), "args": 4},
           {**event("aten::mm", 0, 1), "pid": {}, "tid": [1]}, {**event("launch", 1, 1, "cuda_runtime"), "args": {
               "correlation": 2**70, "External id": "x"}}, {}]
    hostile = kernels(write("odd.json", document(odd + events)))
    check(all(hostile[k] == found[k] for k in ["seconds", "steps"]), "odd events change the numbers")
    check(any("cannot be read" in n for n in hostile["notes"]), f"{hostile['notes']}")
    nan = whole.replace(b'"dur": 8,', b'"dur": NaN,')
    check(any("1 event cannot be read" in n for n in kernels(write("nan.json", nan))["notes"]), "NaN")
    for name, content, says in [
            ("empty.json", b"", "no list of traceEvents"), ("text.json", b"no profile", "no list of traceEvents"),
            ("other.json", b'{"a": 1}', "no list of traceEvents"), ("none_in.json", b'{"traceEvents": []}', "no event"),
            ("open.json", b'{"traceEvents": [', "no event"), ("deep.json", b'{"traceEvents": ' + b"[" * 100000, "no event"),
            ("string.json", b'{"traceEvents": "' + b"a" * 100000, "no list"), ("object.json", b'{"traceEvents": {}}', "no list"),
            ("eager.json", document([event("aten::mm", 0, 1)]), "no compiled graph"),
            ("bad.gz", gzip.compress(b"x" * 100)[:20] + b"y" * 50, "no list of traceEvents")]:
        path = f"{work}/{name}"
        if name == "bad.gz":
            with open(path, "wb") as file:
                file.write(content)
        else:
            write(name, content)
        said = run("kernels", log, "--profile", path, code=2)
        check(says in said and len(said.strip().splitlines()) == 1, f"{name}: {said}")
    check("no such file" in run("kernels", log, "--profile", f"{work}/missing", code=2), "a missing profile")
    check("folder" in run("kernels", log, "--profile", work, code=2), "a folder as a profile")
    check("no output code" in run("kernels", f"{source}/resources/samples/mlp/program.pt2", "--profile", plain, code=2),
          "a file without code")
    # Opened by itself, a profile says with what it goes.
    for name in ["plain.json", "list.json", "plain.json.gz"]:
        check("open LOG --profile FILE" in run("list", f"{work}/{name}", code=2), f"list {name}")

    # Many bytes of nothing in a small file do not take memory.
    bomb = gzip.compress(b'{"traceEvents": [' + b'{"ph": "X", "cat": "python_function"},' * 2_000_000)
    with open(f"{work}/bomb.gz", "wb") as file:
        file.write(bomb)
    run("kernels", log, "--profile", f"{work}/bomb.gz", code=2)

    # Real profiles: sums equal those of the trace, and nearly all calls are at nodes.
    real = [f"{CORPUS}/artefacts/{version}/profiled" for version in ("torch-2.13", "torch-2.14")]
    if not all(map(os.path.isdir, real)):
        print("skipped: the profiles of the corpus are not there")
        real = []
    for folder in real:
        trace = [e for e in json.load(open(f"{folder}/profile.json"))["traceEvents"] if e["ph"] == "X"]
        length = collections.defaultdict(float)
        inside = collections.defaultdict(float)
        for a in [e for e in trace if e["name"].startswith("## Call CompiledFxGraph")]:
            key = a["name"].split()[3]
            length[key] += a["dur"]
            until = 0
            within = [e for e in trace if e["tid"] == a["tid"] and e is not a and a["ts"] <= e["ts"] < a["ts"] + a["dur"]]
            for e in sorted(within, key=lambda e: (e["ts"], -e["dur"])):
                if e["ts"] >= until:
                    inside[key] += e["dur"]
                    until = e["ts"] + e["dur"]
        found = kernels(f"{folder}/profile.json", of=f"{folder}/trace")
        check({g["key"] for g in found["graphs"]} == set(length), f"{folder}: graphs")
        for graph in found["graphs"]:
            close(graph["seconds"]["sum"], 1e-6 * length[graph["key"]], f"{folder}: {graph['name']}", 0.01)
            in_calls = [c for c in graph["calls"] if c["kind"] != "wrapper"]
            close(sum(c["seconds"]["sum"] for c in in_calls), 1e-6 * inside[graph["key"]], f"{folder}: calls", 0.01)
            at_nodes = sum(c["seconds"]["sum"] for c in in_calls if c["nodes"])
            check(at_nodes >= 0.95e-6 * inside[graph["key"]], f"{folder}: {at_nodes} of {inside[graph['key']]} at nodes")
        check(not found["notes"] and len(found["steps"]) == 3, f"{folder}: {found['notes']}")

print("\n".join(wrong))
sys.exit(1 if wrong else 0)

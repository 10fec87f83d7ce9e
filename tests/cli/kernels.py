#!/usr/bin/env python3
"""`partita kernels`: steps, times, code linked to nodes, memory over time, and inductor's own kernels.
kernels.py PARTITA SOURCE_DIR"""
import json, os, subprocess, sys, tempfile

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
MODEL, IO = f"{source}/resources/samples/mlp/program.pt2", f"{source}/resources/samples/mlp/io.safetensors"
LOG = f"{source}/tests/load/inductor.log"
CORPUS = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}

    def run(*words, code=0):
        done = subprocess.run([partita, "kernels", *words], capture_output=True, text=True, env=env)
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        return done.stdout if code == 0 else done.stderr

    plain = json.loads(run(MODEL, "--train", "--json"))
    timed = json.loads(run(MODEL, "--train", "--inputs", IO, "--json"))
    check([g["graph"] for g in plain["graphs"]] == ["forward", "backward"], "two graphs")
    for without, graph in zip(plain["graphs"], timed["graphs"]):
        check([s["name"] for s in without["steps"]] == [s["name"] for s in graph["steps"]], "the same plan")
        check(all("seconds" not in s for s in without["steps"]), "times without a run")
        check(all(s["seconds"] > 0 for s in graph["steps"]), "a step takes no time")
        check(any(s["kind"] == "kernel" for s in graph["steps"]), "no kernel")
        # What fits into the cache has a limit, too.
        limit = graph["limit"]
        check(limit["cached_bytes_per_second"] >= limit["bytes_per_second"] > 0, "a cache slower than memory")
        for s in graph["steps"]:
            moving = (s["read_bytes"] + s["written_bytes"]) / limit["cached_bytes_per_second"] / s["seconds"]
            check(s["share_of_limit"] >= 0.999 * moving, f"{s['name']}: {s['share_of_limit']}, moved at {moving}")
        temporaries = [b for b in graph["buffers"] if b["kind"] == "temporary" and "first_step" in b]
        for step, live in enumerate(graph["live_bytes"]):
            held = sum(b["bytes"] for b in temporaries if b["first_step"] <= step <= b["last_step"])
            check(held == live, f"{live} bytes live at step {step}, of which {held} are known")
        check(graph["peak"]["bytes"] == max(graph["live_bytes"]), "the peak is not the most")
        check(graph["arena_bytes"] >= graph["peak"]["bytes"], "the arena is smaller than what it holds")
        # Where a step reads what an earlier one made, it says why it is no part of it.
        maker = {}
        for s in graph["steps"]:
            for b in set(s["reads"]) - set(s["writes"]):
                if b in maker:
                    check(any(a["step"] == maker[b] and a["reads"] and a["why"] for a in s["apart"]),
                          f"step {s['step']} does not say why it is apart from {maker[b]}")
            maker.update({b: s["step"] for b in s["writes"]})
    again = json.loads(run(MODEL, "--inputs", IO, "--json"))
    check(all(again["graphs"][0]["limit"][k] >= v for k, v in timed["graphs"][0]["limit"].items()),
          "the limit is the best that was ever measured")

    kernel = next(s for s in plain["graphs"][0]["steps"] if s["kind"] == "kernel" and len(s["nodes"]) > 1)
    for form in ("loops", "llvm", "asm"):
        shown = json.loads(run(MODEL, "--train", "--show", form, "--kernel", kernel["name"], "--json"))
        codes = [s["code"] for s in shown["graphs"][0]["steps"] if "code" in s]
        check(len(codes) == 1, f"{form}: {len(codes)} kernels")
        lines, text = codes[0]["line_nodes"], codes[0]["text"]
        check(len(lines) == text.count("\n"), f"{form}: {len(lines)} links for {text.count(chr(10))} lines")
        met = {node for line in lines for node in line}
        check(met <= set(range(len(kernel["nodes"]))), f"{form}: nodes {met} of {len(kernel['nodes'])}")
        check(len(met) >= len(kernel["nodes"]) / 2, f"{form}: only nodes {met} of {kernel['nodes']}")
        check("!dbg" not in text and ".loc" not in text, f"{form}: marks are left in the text")
    text = run(MODEL, "--show", "asm", "--kernel", kernel["nodes"][0]["name"])
    check("ret" in text and "; " in text, "assembly as text")
    check("there is no kernel" in run(MODEL, "--show", "asm", "--kernel", "nothing", code=2), "an unknown kernel")
    check("no form" in run(MODEL, "--show", "tea", code=2), "an unknown form")
    check("has no kernels" in run(MODEL, "--backend", "interp", code=3), "interpreters have no kernels")

    logs = [LOG]
    for name in ("logs/simple.log", "models/mlp/trace", "models/gpt2/debug"):
        if os.path.exists(f"{CORPUS}/{name}"):
            logs.append(f"{CORPUS}/{name}")
    if len(logs) == 1:
        print("the corpus is not there; only the log of the repo is read")
    for log in logs:
        document = json.loads(run(log, "--backend", "pytorch", "--json"))
        found, missed = (sum(g[key] for g in document["graphs"]) for key in ("found", "missed"))
        print(f"{os.path.relpath(log, source)}: {found} links found, {missed} missed")
        check(found > 0, f"{log}: no link")
        linked = [k for g in document["graphs"] for k in g["kernels"] if k["nodes"] or k["sources"]]
        check(all(k["link"] in ("mapping", "comments", "flow") for k in linked), f"{log}: a link out of nothing")
    if os.path.exists(f"{CORPUS}/models/gpt2/trace"):
        # The comments of a backward name its own nodes among those of the program; kernels in C++ have none.
        backward = json.loads(run(f"{CORPUS}/models/gpt2/trace", "--backend", "pytorch", "--json"))["graphs"][1]
        missed = [name for k in backward["kernels"] for name in k["missed"]]
        unlinked = [k["name"] for k in backward["kernels"] if k["link"] == "none"]
        print(f"the backward of gpt2: {backward['found']} links found, {backward['missed']} missed")
        check(missed == [] and all(name.startswith("cpp_fused") for name in unlinked), f"{missed[:5]} {unlinked[:5]}")
        mm = next(k for k in backward["kernels"] if k["name"] == "extern_kernels.mm")
        check({"mm_2", "div_3", "permute_13"} <= {n["name"] if isinstance(n, dict) else n for n in mm["nodes"]} and
              "shift_labels" in mm["sources"], f"{mm}")
    if len(logs) > 2:
        simple = json.loads(run(logs[1], "--backend", "pytorch", "--json"))["graphs"][0]
        check(simple["kernels"][2]["nodes"][:2] == ["clone", "gt"] or "baz" in simple["kernels"][2]["nodes"],
              f"{simple['kernels'][2]}")
        code = run(logs[1], "--backend", "pytorch", "--show", "code", "--kernel", "triton_poi_fused_native_dropout_0")
        check("tl.rand" in code, "Triton's code")
    check("no output code" in run(MODEL, "--backend", "pytorch", code=2), "an archive has no output code")
if wrong:
    sys.exit("\n".join(wrong))
print("ok")

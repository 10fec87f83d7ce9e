#!/usr/bin/env python3
"""All ranks of a folder run together: each rank's outputs are those that gloo gave, jobs that would hang end with the
ranks named, and folders that are no jobs are refused. ranks.py PARTITA SOURCE_DIR"""
import glob, json, os, shutil, struct, subprocess, sys, tempfile


partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus") + "/ranks"
SKIPPED = 77
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def floats(path):
    """The float tensors of a safetensors file."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    out = {}
    for key, t in header.items():
        if key != "__metadata__" and t["dtype"] == "F32":
            begin, end = (8 + size + at for at in t["data_offsets"])
            out[key] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return out


GRAPH = """class M(torch.nn.Module):
    def forward(self, x: "f32[4, 4][4, 1]cpu"):
        # File: /home/me/model.py:3 in forward, code: y = all_reduce(x)
        all_reduce: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(x, '{op}', '0')
        wait_tensor: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
{more}
        return (wait_tensor,)
"""
MORE = """        # File: /home/me/model.py:9 in forward, code: z = all_reduce(y)
        all_reduce_1: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(wait_tensor, 'sum', '0')
        wait_tensor_1: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce_1)"""

DYNAMO = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu"):
        x = L_x_
        tensor: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce(x, 'sum', '0')
        y: "f32[4][1]cpu" = torch.ops._c10d_functional.wait_tensor(tensor)
        z: "f32[4][1]cpu" = y.sin()
        return (z,)
"""


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}

    def run(verb, *words, code=0):
        done = subprocess.run([partita, verb, *words], capture_output=True, text=True, env=env, timeout=300)
        check(done.returncode == code, f"{verb} {words}: exit {done.returncode}, {done.stderr}")
        return done.stdout if code in (0, 1) else done.stdout + done.stderr

    def job(name, texts, case=None):
        folder = f"{work}/{name}"
        for rank, text in texts.items():
            os.makedirs(f"{folder}/{rank}", exist_ok=True)
            open(f"{folder}/{rank}/inference.py", "w").write(text)
        if case is not None:
            open(f"{folder}/case.json", "w").write(case)
        return folder

    right, odd_op, longer = (GRAPH.format(op=op, more=more) for op, more in (("sum", ""), ("max", ""), ("sum", MORE)))
    random = ["--ranks", "--random-weights", "0"]

    # What runs: two ranks with one graph, on both backends.
    two = job("two", {"rank_0": right, "rank_1": right})
    for backend in ("interp", "cpu"):
        out = json.loads(run("run", two, *random, "--backend", backend, "-o", f"{work}/out", "--json"))
        check(out["ok"] and out["graphs"] == 1 and [r["state"] for r in out["ranks"]] == ["done"] * 2, f"{backend}: {out}")
        files = [floats(f"{work}/out/rank_{r}/inference.safetensors") for r in (0, 1)]
        check(files[0] == files[1] and len(files[0]["output.0"]) == 16, f"{backend}: {files}")
    check("ranks 0, 1: done: output.0 f32[4, 4]" in run("run", two, *random), "equal ranks are one line")
    check("no difference" in run("compare", two, *random), "compare")
    check("no difference" in run("compare", two, *random, "--against", f"file:{work}/out"), "compare with a file")

    # What would hang ends, with the rank and its line.
    for name, text, says in (
            ("op", odd_op, ["the reductions differ", "all_reduce(max, f32[4, 4]) on rank 3", "/home/me/model.py:3 in forward"]),
            ("longer", longer, ["no rank can go on: rank 3 waits for its 2nd collective of group '0'",
                                "which ranks 0-2 do not start (ended after 1 collective of group '0')",
                                "all_reduce_1", "/home/me/model.py:9 in forward"])):
        folder = job(name, {f"rank_{r}": text if r == 3 else right for r in range(4)})
        for backend in ("interp", "cpu"):
            printed = run("run", folder, *random, "--backend", backend, code=2)
            for part in says:
                check(part in printed, f"{name} on {backend} lacks {part}: {printed}")
    failed = subprocess.run([partita, "run", f"{work}/longer", *random, "--json"], capture_output=True, text=True, env=env)
    failed = json.loads(failed.stdout)
    check(not failed["ok"] and failed["failure"]["code"] == "ranks.deadlock" and failed["ranks"][3]["state"] == "waits" and
          failed["failure"]["node"] == "all_reduce_1", failed)

    # Folders that are no jobs.
    for name, texts, case, says in (
            ("gap", {"rank_0": right, "rank_3": right}, None, "ranks 1, 2 are missing"),
            ("twice", {"rank_0": right, "rank_00": right}, None, "rank 0 is there twice, as rank_0 and rank_00"),
            ("none", {"model": right}, None, "no ranks in it"),
            ("many", {"rank_0": right, "rank_9999": right}, None, "a job has at most 1024"),
            ("fewer", {"rank_0": right}, '{"ranks": 2}', "it says 2 ranks, and the folder has 1"),
            ("zero", {"rank_0": right}, '{"ranks": 0}', "0 ranks; a job has from 1 to 1024"),
            ("absent", {"rank_0": right}, '{"groups": {"tp": [0, 1]}}', "group 'tp' names rank 1"),
            ("no_json", {"rank_0": right}, '[', "not JSON"),
            ("no_list", {"rank_0": right}, '{"groups": {"tp": 3}}', "group 'tp' is not a list")):
        printed = run("run", job(name, texts, case), *random, code=2)
        check(says in printed and printed.count("\n") == 1, f"{name}: {printed}")
    check("no graph backward.py; it holds the graphs inference" in run("run", two, *random, "--graph", "backward", code=2),
          "a graph that is not there")
    check("-o takes a folder" in run("run", two, *random, "-o", "-", code=2), "results to standard output")

    # The first rank that fails with what the others send it is minified without its collectives.
    after = [right.replace("return (wait_tensor,)", f'''f: "f32[4, 4][4, 1]cpu" = torch.ops.aten.{op}.default(wait_tensor)
        return (f, wait_tensor)''') for op in ("neg", "tanh")]
    uneven = job("uneven", {"rank_0": after[0], "rank_1": after[1]})
    asked = ["minify", uneven, "--ranks", "--check", "accuracy:cpu", "--plant", "aten.tanh.default:wrong"]
    told = run(*asked, "-o", f"{work}/min")
    repro = open(f"{work}/min/graph.py").read()
    check("rank 1 of 2 fails" in told and "tanh" in repro and "def forward(self, wait_tensor:" in repro, f"minify: {told}{repro}")
    check(json.loads(run(*asked, "--once", "--json", code=1))["node"] == "f", "minify --once")
    none = subprocess.run([partita, *asked[:-1], "aten.sin.default:wrong", "-o", f"{work}/min"], capture_output=True,
                          text=True, env=env)
    check(none.returncode == 1 and "no rank of 2 fails" in none.stderr, f"minify: {none.stdout}{none.stderr}")
    # The collectives of a torch-level graph are cut off, too.
    level = job("level", {"rank_0": DYNAMO, "rank_1": DYNAMO})
    none = subprocess.run([partita, "minify", level, "--ranks", "--check", "crash:interp", "--once"], capture_output=True,
                          text=True, env=env)
    check(none.returncode == 1 and "no rank of 2 fails" in none.stderr, f"minify: {none.stdout}{none.stderr}")

    # Node by node, each rank with what the others send it when all run on the interpreter.
    by_node = ["compare", uneven, "--ranks", "--per-node", *random[1:], "--backends", "interp,cpu"]
    told = run(*by_node, "--plant", "aten.tanh.default:wrong", code=1)
    check("rank 1 differs first, in f (" in told or "rank 1 differs first, in f\n" in told, told)
    check("no difference" in run(*by_node), "per node")
    check("name backends" in run(*by_node[:-1], "interp,stored", code=2), "per node with results")
    fake = run("minify", f"{uneven}/rank_0/inference.py", "--ranks", "fake", "-o", f"{work}/min", code=3)
    check("minify takes all ranks" in fake, fake)

    if not os.path.isdir(corpus):
        print("\n".join(wrong) or "no corpus beside the checkout; the rest is skipped")
        sys.exit(1 if wrong else SKIPPED)

    # What gloo gave, on both backends.
    for case in sorted(os.listdir(corpus)):
        if not os.path.exists(f"{corpus}/{case}/case.json"):
            continue
        for kind in ("inference", "forward", "backward"):
            if not os.path.exists(f"{corpus}/{case}/rank_0/{kind}.py"):
                continue
            for backend in ("interp", "cpu"):
                printed = run("compare", f"{corpus}/{case}", "--ranks", "--graph", kind, "--backends", f"stored,{backend}")
                check("no difference" in printed, f"{case} {kind} {backend}: {printed}")
    run("run", f"{corpus}/reduces", "--ranks", "-o", f"{work}/reduces")
    for rank in (0, 1):
        ours, theirs = (floats(f"{folder}/rank_{rank}/inference.safetensors") for folder in (f"{work}/reduces", f"{corpus}/reduces"))
        check(all(abs(a - b) < 1e-5 for key in ("output.0", "output.1") for a, b in zip(ours[key], theirs[key])), "reduces")

    # A shard that is wrong on rank 1 reaches its results, and those of rank 0 by the sum.
    torn = f"{work}/torn"
    shutil.copytree(f"{corpus}/reduces", torn)
    text = open(f"{torn}/rank_1/inference.py").read()
    open(f"{torn}/rank_1/inference.py", "w").write(text.replace("aten.relu.default(div)", "aten.neg.default(div)"))
    found = json.loads(run("compare", torn, "--ranks", "--backends", "stored,interp", "--json", code=1))["comparisons"][0]
    check(found["first"]["rank"] == 1 and found["first"]["node"] == "relu" and found["ranks"][0]["ok"], found)
    check([t["row"] for t in found["torn"]] == ["output.1"], found["torn"])

    # What the graphs tell without a run: how collectives meet, and what runs while one is under way.
    def query(*words):
        done = subprocess.run([partita, "query", *words], capture_output=True, text=True, env=env)
        check(done.returncode == 0, f"query {words}: {done.stderr}")
        return done.stdout
    for graph in ("aot_forward_graph", "dynamo_output_graph"):
        printed = query(f"{corpus}/logs/odd", "collectives", "--graph", graph)
        check("rank 0 never starts it" in printed and "1 does not match" in printed, printed)
    # The same logs, each in a folder of its rank.
    for rank in range(2):
        os.makedirs(f"{work}/apart/rank_{rank}")
        for log in glob.glob(f"{corpus}/logs/odd/*_rank_{rank}_*.log"):
            shutil.copy(log, f"{work}/apart/rank_{rank}")
    printed = query(f"{work}/apart", "collectives", "--graph", "aot_forward_graph")
    check("rank 0 never starts it" in printed and "1 does not match" in printed, printed)
    printed = query(f"{corpus}/weight_shards", "collectives", "--graph", "forward")
    check("2 ranks" in printed and "all match" in printed and "all_gather" in printed, printed)
    printed = query(f"{corpus}/weight_shards/rank_0/forward.py", "collectives")
    check("all_gather" in printed and "waited for at once" in printed, printed)

    # Logs: the collective that only rank 1 has.
    printed = run("run", f"{corpus}/logs/odd", "--ranks", "--graph", "aot_forward_graph", "--random-weights", "0", code=2)
    check("rank 1" in printed, printed)

print("\n".join(map(str, wrong)))
sys.exit(1 if wrong else 0)

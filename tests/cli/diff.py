#!/usr/bin/env python3
"""`partita diff` tells what was planted, first. diff.py PARTITA SOURCE_DIR"""
import json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from trace_logs import log, records

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
LOG = open(f"{source}/tests/load/data/trace.log").read()
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def planted(*changes, extra=()):
    """The log with (record's name, old, new) replaced in the payloads of that name."""
    found = records(LOG)
    for name, old, new in changes:
        hits = 0
        for record in found:
            if record[1] and f'"{name}"' in record[0].split("]", 1)[1] and old in record[1]:
                record[1] = record[1].replace(old, new)
                hits += 1
        check(hits > 0, f"nothing to plant {new} in")
    return log(found + list(extra))


def record(name, payload, frame=0, compile_id=0, artifact=False):
    entry = {"artifact": {"name": name, "encoding": "string"}} if artifact else {name: {}}
    head = {**entry, "frame_id": frame, "frame_compile_id": compile_id, "attempt": 0, "has_payload": ""}
    return [f"V1121 08:13:51.015000 1 torch/x.py:1] {json.dumps(head)}", payload]


GUARDS = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], type=<class 'torch.Tensor'>
| | +- TYPE_MATCH: ___check_type_id(L['x'], ADDRESS), type=<class 'torch.Tensor'> (HINT: type Tensor)
| | +- ID_MATCH: ___check_obj_id(G['_backward_hook_ADDRESS_c0'], ADDRESS), type=<class 'function'>
| | +- EQUALS_MATCH: L['f'] == <built-in method sin of type object at 0xADDRESS>
| | +- LAMBDA_GUARD: __dtensor_spec_ADDRESS_c0 == x.spec  # x
| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, torch.float32, device=None, requires_grad=False, size=[SIZE, 8], stride=[8, 1])  # x  # model.py:3 in f"""


def guards(address, size):
    return record("dynamo_cpp_guards_str", GUARDS.replace("ADDRESS", address).replace("SIZE", size))


GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 8][8, 1]cpu"):
        l_x_ = L_x_
        # File: /home/me/model.py:9 in resume, code: return x.sin()
        sin: "f32[4, 8][8, 1]cpu" = l_x_.sin();  l_x_ = None
        return (sin,)
"""
BREAK = "Graph break in user code at model.py:7\nGraph Break Reason: a call of print\nCall to print\n"
COLLECTIVES = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4][1]cpu"):
        all_reduce: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce.default(primals_1, 'sum', '0')
        wait_tensor: "f32[4][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        SECOND
        return (second,)
"""
SUM = "second: \"f32[4][1]cpu\" = torch.ops._c10d_functional.all_reduce.default(wait_tensor, 'sum', '0')"
GATHER = "second: \"f32[8][1]cpu\" = torch.ops._c10d_functional.all_gather_into_tensor.default(wait_tensor, 2, '0')"

with tempfile.TemporaryDirectory() as work:

    def written(name, text):
        path = f"{work}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").write(text)
        return path

    def diff(*paths, code=1):
        done = subprocess.run([partita, "diff", *paths, "--json"], capture_output=True, text=True)
        check(done.returncode == code, f"{paths}: exit {done.returncode}, {done.stderr}")
        return json.loads(done.stdout) if done.stdout else done.stderr

    def own(found, aspect):
        return [row for row in found["rows"] if row["aspect"] == aspect and not row["follows"]]

    base = written("base.log", LOG)
    same = diff(base, written("again/base.log", LOG), code=0)
    check(same["rows"] == [] and same["matched_graphs"] == 10, f"a log is like itself: {same['rows'][:2]}")

    # An operator: one change of a node, the line that counts it, and nothing else of its own.
    act = diff(base, written("act.log", planted(("dynamo_output_graph", "functional.relu", "functional.gelu"))))
    nodes = own(act, "nodes")
    check([n["what"] for n in nodes] == ["operator"], f"an operator: {nodes}")
    check(["relu" in nodes[0]["cells"][0]["text"], "gelu" in nodes[0]["cells"][1]["text"]] == [True, True], f"{nodes}")
    check(nodes[0]["cells"][0]["graph"] == "0_0.dynamo_output_graph" and nodes[0]["cells"][0]["node"] == "input_2", f"{nodes}")
    check(len(own(act, "operators")) == 2 and set(act["counts"]) == {"nodes", "operators"}, f"counts {act['counts']}")

    # A size: the input comes first, and what is computed from it follows.
    size = diff(base, written("size.log", planted(("dynamo_output_graph", "[4, ", "[6, "))))
    inputs = own(size, "inputs")
    check([c["text"] for c in inputs[0]["cells"]] == ["f32[4, 8][8, 1]cpu", "f32[6, 8][8, 1]cpu"], f"a size: {inputs}")
    check(size["rows"][0]["aspect"] == "inputs", f"a size is told first: {size['rows'][0]}")
    check(any(row["follows"] for row in size["rows"]), "what follows from a size")

    # Options hold, however often a log says so: with a cold cache once more than with a warm one.
    options = record("torch._functorch.config", '{"debug_assert": false}', artifact=True)
    diff(*(written(f"options{n}.log", log(records(LOG) + [options] * n)) for n in (1, 2)), code=0)

    # A cache that has the code: the graph that is not made follows from it.
    caches = [log(records(LOG) + [record(f"fx_graph_cache_{answer}", "{}", artifact=True)] + more)
              for answer, more in (("miss", [record("inductor_post_grad_graph", GRAPH)]), ("hit", []))]
    rows = diff(*(written(f"cache{n}.log", text) for n, text in enumerate(caches)))["rows"]
    check([(r["aspect"], r["follows"]) for r in rows] == [("compilations", True), ("caches", False)], f"a cache: {rows}")

    # A guard, whose address is another in each process.
    one, two, other = (written(f"guard{i}.log", planted(extra=[guards(*of)]))
                       for i, of in enumerate([("139694803641216", "4"), ("139694803641999", "4"), ("139694803641216", "6")]))
    diff(one, two, code=0)
    rows = diff(one, other)["rows"]
    check([(r["aspect"], r["what"]) for r in rows] == [("guards", "TENSOR_MATCH check_tensor(L['x']")], f"a guard: {rows}")
    check([c["text"] for c in rows[0]["cells"]] == ["size=[4, 8]", "size=[6, 8]"], f"a guard: {rows}")

    # A graph break, with the graph that it made.
    broken = diff(base, written("broken.log", planted(extra=[record("dynamo_graph_break_reason", BREAK, artifact=True),
                                                             record("dynamo_output_graph", GRAPH, 1)])))
    check([r["aspect"] for r in broken["rows"]] == ["compilations", "graph breaks"], f"a graph break: {broken['rows']}")
    check("a call of print" in broken["rows"][1]["cells"][1]["text"], f"{broken['rows'][1]}")
    check(broken["rows"][0]["cells"][0]["text"] == "" and "graph" in broken["rows"][0]["cells"][1], f"{broken['rows'][0]}")

    # Ranks of one folder: the first collective that is another one on a rank, with its node.
    for rank in range(4):
        text = COLLECTIVES.replace("SECOND", GATHER if rank == 2 else SUM)
        written(f"ranks/dedicated_log_torch_trace_rank_{rank}_abc.log", log([record("aot_forward_graph", text)]))
    ranks = diff(f"{work}/ranks")
    check([r["name"] for r in ranks["runs"]] == [f"rank {i} abc" for i in range(4)], f"{ranks['runs']}")
    first = ranks["rows"][0]
    check(first["aspect"] == "collectives" and first["what"] == "first divergence: number 2 of 2", f"{first}")
    check(["all_gather" in c["text"] for c in first["cells"]] == [False, False, True, False], f"{first}")
    check(first["cells"][2]["node"] == "second" and "rank_2" in first["cells"][2]["graph"], f"{first}")
    text = subprocess.run([partita, "diff", f"{work}/ranks"], capture_output=True, text=True).stdout
    check(re.search(r"A B D: .*all_reduce", text) and re.search(r"C: .*all_gather", text), text)

    # Frames that another number has in the other run are matched by their function.
    def metrics(name, frame):
        head = {"compilation_metrics": {"co_name": name, "co_filename": "model.py", "co_firstlineno": 3},
                "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
        return [f"V1121 08:13:51.015000 1 torch/x.py:1] {json.dumps(head)}", None]

    moved = [written(f"moved{n}.log", log([r for name, frame in frames for r in
                                           (record("dynamo_output_graph", GRAPH.replace("sin", name), frame), metrics(name, frame))]))
             for n, frames in enumerate([[("sin", 0), ("cos", 1)], [("cos", 0)]])]
    rows = diff(*moved)["rows"]
    check([(r["aspect"], r["compilation"], r["cells"][1]["text"]) for r in rows] == [("compilations", "0/0", "")], f"moved: {rows}")

    # One model compiled with other options: the option that differs comes before what it led to.
    sample = f"{source}/resources/samples/mlp"
    for name, option in ("as_is", "fuse=true"), ("apart", "fuse=false"):
        subprocess.run([partita, "run", f"{sample}/program.pt2", "--inputs", f"{sample}/io.safetensors", "--backend", "cpu",
                        "--config", option, "--trace", f"{work}/{name}"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"})
    rows = [r for r in diff(f"{work}/as_is", f"{work}/apart")["rows"] if not r["follows"]]
    check(rows[0]["aspect"] == "options" and rows[0]["what"] == "partita.fuse" and
          [c["text"] for c in rows[0]["cells"]] == ["", "false"], f"{rows[0]}")
    kernels = [r for r in rows if r["aspect"] == "kernels" and r["what"] == "all calls"]
    check(len(kernels) == 1 and int(kernels[0]["cells"][0]["text"]) < int(kernels[0]["cells"][1]["text"]), f"{kernels}")

    # Ranks with a real log each, of which one has another operator.
    corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
    if os.path.isfile(f"{corpus}/logs/simple.log"):
        found = records(open(f"{corpus}/logs/simple.log").read())
        other = [[line, payload and payload.replace("torch.ops.aten.add.Tensor", "torch.ops.aten.sub.Tensor")]
                 for line, payload in found]
        check(other != found, "nothing to plant in simple.log")
        for rank in range(3):
            written(f"real/dedicated_log_torch_trace_rank_{rank}_abc.log", log(other if rank == 1 else found))
        rows = [r for r in diff(f"{work}/real")["rows"] if not r["follows"]]
        first = rows[0]
        check(first["aspect"] == "operators" and {first["what"] for first in rows if first["aspect"] == "operators"} ==
              {"aten.add.Tensor", "aten.sub.Tensor"}, f"{rows[:3]}")
        check(first["cells"][0]["text"] == first["cells"][2]["text"] != first["cells"][1]["text"], f"{first}")

    check("only one run" in diff(base, code=2), "one log")
if wrong:
    sys.exit("\n".join(wrong))
print("ok")

#!/usr/bin/env python3
"""`partita compare --against` holds any number of columns against one reference, and `partita passes` shows rewrites and
tries without passes and in another order. compare.py PARTITA SOURCE_DIR"""
import json, os, subprocess, sys, tempfile

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
MODEL, IO = f"{source}/resources/samples/mlp/program.pt2", f"{source}/resources/samples/mlp/io.safetensors"
PLANTED = "cpu+plant=aten.gelu.default:wrong"
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8][1]cpu"):
        # File: net.py:3 in forward, code: a = x * 1
        a: "f32[8][1]cpu" = torch.ops.aten.mul.Tensor(x, 1)
        b: "f32[8][1]cpu" = torch.ops.aten.neg.default(a)
        # File: net.py:5 in forward, code: c = -b
        c: "f32[8][1]cpu" = torch.ops.aten.neg.default(b)
        d: "f32[8][1]cpu" = torch.ops.aten.sin.default(c)
        return (d,)
"""
NAMED = """class inner_f(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[4][1]cpu"; tangents_1: "f32[4][1]cpu"; 

        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        sin: "f32[4][1]cpu" = torch.ops.aten.sin.default(primals_1)
        sin_1: "f32[4][1]cpu" = torch.ops.aten.sin.default(primals_1)
        add: "f32[4][1]cpu" = torch.ops.aten.add.Tensor(sin, sin_1)
        sin_2: "f32[4][1]cpu" = torch.ops.aten.sin.default(add)
        cos: "f32[4][1]cpu" = torch.ops.aten.cos.default(add)
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(tangents_1, cos)
        return pytree.tree_unflatten([sin_2, mul], self._out_spec)
"""
HALF = """class GraphModule(torch.nn.Module):
    def forward(self, x: "bf16[64, 64][64, 1]cpu", w: "bf16[64, 64][64, 1]cpu"):
        mm: "bf16[64, 64][64, 1]cpu" = torch.ops.aten.mm.default(x, w)
        exp: "bf16[64, 64][64, 1]cpu" = torch.ops.aten.exp.default(mm)
        sum_1: "bf16[64][1]cpu" = torch.ops.aten.sum.dim_IntList(exp, [1])
        return (exp, sum_1)
"""
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "XDG_CONFIG_HOME": work}

    def run(*words, code=0):
        done = subprocess.run([partita, *words], capture_output=True, text=True, env=env)
        check(done.returncode == code, f"{words}: exit {done.returncode}, not {code}: {done.stderr}{done.stdout[-500:]}")
        return done.stdout if code < 2 else done.stderr

    def compare(*words, code=0):
        """The reports by graph and column."""
        done = json.loads(run("compare", MODEL, "--inputs", IO, *words, "--json", code=code))
        return {(r["graph"], r["found"]): r for r in done["reports"]}

    def against(*columns):
        return [word for column in columns for word in ("--against", column)]

    reports = compare("--train", "--per-node", *against("f64", "cpu+fuse=false", PLANTED, "stored"), code=1)
    check(set(reports) == {(g, c) for g in ("forward", "backward") for c in ("f64", "cpu+fuse=false", PLANTED)} |
          {("results", "stored")}, f"the reports are {sorted(reports)}")
    check(all(r["ok"] for (g, c), r in reports.items() if c != PLANTED), "a sound column differs")
    bad = reports["forward", PLANTED]
    rows = {r["name"]: r for r in bad["rows"]}
    check(bad["first_that_differs"] == "gelu", f"the first divergence is {bad['first_that_differs']}")
    check(not rows["gelu"]["own"]["ok"] and rows["gelu"]["own"]["max_abs"] > 1e-3, f"gelu: {rows['gelu']}")
    later = [r for r in bad["rows"] if r.get("inherited_from") == "gelu"]
    check(later and all(r["own"]["ok"] for r in later if "own" in r), f"inherited errors are taken for own ones: {later}")
    stats = rows["gelu"]["statistics"]
    check(abs(stats["found"]["norm"] / stats["expected"]["norm"] - 1.01) < 1e-4, f"norms {stats}")
    check(stats["expected"]["nan"] == stats["expected"]["inf"] == 0, "NaNs")
    text = run("compare", MODEL, "--inputs", IO, "--per-node", *against("f64", PLANTED), "--statistics", code=1)
    check("first divergence: gelu (an error of its own: alone" in text and "more agree in all columns" in text and
          "norm" in text and "cosine" in text, text)

    # What the store keeps of that is a column of a later comparison, also of both graphs at once.
    kept = [r["id"].split("/")[1] for r in json.loads(run("store", "list", "--json")) if r["id"].startswith("checks/")]
    graphs = {}
    for number in kept:
        report = json.loads("{" + run("store", "show", f"checks/{number}").split("{", 1)[1])
        graphs.setdefault((report["graph"], report["found"]), number)
    good = f"past:{graphs['forward', 'cpu+fuse=false']}+{graphs['backward', 'cpu+fuse=false']}"
    past_wrong = f"past:{graphs['forward', PLANTED]}"
    reports = compare("--train", "--per-node", *against(good, past_wrong, f"past:{graphs['results', 'stored']}"), code=1)
    check(reports["forward", good]["ok"] and reports["backward", good]["ok"], "a sound run of the past differs")
    check(len(reports["forward", good]["rows"]) == len(bad["rows"]), "rows of the past are missing")
    check(reports["forward", past_wrong]["first_that_differs"] == "gelu" and
          all(r["by_statistics"] for r in reports["forward", past_wrong]["rows"]), "a wrong run of the past")
    check(any(g == "results" for g, c in reports), "results of the past")

    # A column that makes other graphs is compared by results only.
    reports = compare("--per-node", *against("cpu+freezing=true", "cpu+disable_passes=all"))
    check(set(reports) == {("results", "cpu+freezing=true"), ("forward", "cpu+disable_passes=all")}, sorted(reports))
    run("run", MODEL, "--inputs", IO, "-o", f"{work}/out.safetensors")
    check(compare(*against(f"file:{work}/out.safetensors", "stored"), "--reference", "cpu"), "files")

    # The values of one row in all columns, what differs most first.
    values = json.loads(run("compare", MODEL, "--inputs", IO, "--train", "--per-node", *against("f64", PLANTED, "stored", past_wrong),
                            "--values", "gelu", "--elements", "3", "--json", code=1))["values"]
    names = [c["name"] for c in values["columns"]]
    check(names == ["interp", "f64", PLANTED, "stored", past_wrong], f"columns of values: {names}")
    check(abs(values["columns"][2]["statistics"]["norm"] / values["columns"][0]["statistics"]["norm"] - 1.01) < 1e-4 and
          values["columns"][2]["statistics"]["norm"] == values["columns"][4]["statistics"]["norm"] and
          "why_no_value" in values["columns"][4] and "why_no_value" in values["columns"][3], f"{values['columns']}")
    far = [abs(e["values"][2] - e["values"][0]) for e in values["elements"]]
    check(len(far) == 3 and min(far) > 1e-3 and all(len(e["index"]) == 2 for e in values["elements"]) and
          all(abs(e["values"][1] - e["values"][0]) < 1e-6 and e["values"][3] is None for e in values["elements"]),
          f"{values['elements']}")
    text = run("compare", MODEL, "--inputs", IO, "--train", "--per-node", *against("cpu", "f64"), "--values",
               "backward:output.0")
    check("values of backward:output.0" in text and "  cpu: norm" in text and "  f64: norm" in text, text[-600:])
    text = run("compare", MODEL, "--inputs", IO, *against("cpu", "stored"), "--values", "output.0")
    check("  stored: norm" in text and "no graph" not in text, text[-600:])
    for row in ("no_such_node", "backward:gelu", "elsewhere:gelu"):
        check("nothing of that name" in run("compare", MODEL, "--inputs", IO, "--train", "--per-node", *against("f64"),
                                            "--values", row, code=2), f"--values {row}")

    # Two comparisons of the past beside one another: what broke comes first, what only followed after it.
    was, now = graphs["forward", "cpu+fuse=false"], graphs["forward", PLANTED]
    told = json.loads(run("store", "explain", f"checks/{was}", f"checks/{now}", "--json"))
    broken = {r["name"] for r in told["rows"] if r["change"].startswith("broken")}
    check([r["name"] for r in told["rows"] if r["change"] == "broken"] == ["gelu", "gelu_1"],
          f"{told}")
    check("broken after gelu" in [r["change"] for r in told["rows"]] and told["same"] > 0, f"{told}")
    back = json.loads(run("store", "explain", f"checks/{now}", f"checks/{was}", "--json"))
    check({r["name"] for r in back["rows"] if r["change"] == "fixed"} == broken, "what broke one way is fixed the other")
    check("broken" in run("store", "explain", f"checks/{was}", f"checks/{now}"), "as text")
    for other in ("checks/x", "checks/", "checks/9999", "runs/1"):
        run("store", "explain", f"checks/{was}", other, code=2)

    check("takes two names" in run("compare", MODEL, "--inputs", IO, "--backends", "interp,cpu,f64", code=2), "three backends")
    for words in (["--against", "nothing"], ["--against", "cpu+fuse"], ["--against", "cpu+nonsense=1"],
                  ["--against", "cpu+fuse=perhaps"], ["--against", "past:999"], ["--against", "past:x"],
                  ["--against", "cpu+plant=tanh"], ["--against", "cpu+pass_order=none_such"],
                  ["--against", "cpu", "--reference", f"past:{kept[0]}"], ["--against", "cpu", "--backends", "interp,f64"],
                  ["--against", "cpu", "--reference", "stored", "--per-node"], ["--reference", "cpu"]):
        run("compare", MODEL, "--inputs", IO, *words, code=2)

    # A fault that is planted nowhere is told, or a comparison that agrees would say something.
    for words in (["--plant", "aten.tan.default:wrong"], ["--plant", "aten.no_such.default:wrong"],
                  ["--against", "cpu+plant=aten.tan.default:wrong"],
                  ["--per-node", "--against", "cpu+plant=aten.tan.default:crash"]):
        check("tan" in run("compare", MODEL, "--inputs", IO, *words, code=2) or "no_such" in words[1], words)
    run("run", MODEL, "--inputs", IO, "--compiler", "partita", "--plant", "aten.tan.default:wrong", code=2)

    # Rows go by the names of the file, though the flow numbers its nodes anew.
    named = f"{work}/named.py"
    open(named, "w").write(NAMED)
    for train in ([], ["--train"]):
        done = json.loads(run("compare", named, "--random-weights", "1", "--per-node", *train, "--json"))
        rows = [r["name"] for report in done["reports"] for r in report["rows"]]
        check("sin_2" in rows and "sin_1" not in rows, f"rows of {train}: {rows}")

    # Values in bfloat16 are held against the run in double, and a wrong rule is found all the same.
    half = f"{work}/half.py"
    open(half, "w").write(HALF)
    run("compare", half, "--random-weights", "1")
    run("compare", half, "--random-weights", "1", "--plant", "aten.exp.default:wrong", code=1)
    run("compare", half, "--random-weights", "1", "--per-node", "--plant", "aten.mm.default:wrong", code=1)

    # Stored results of another graph are not excused because the run in double agrees with the found side; a file's
    # results that rounding explains are.
    inputs = f"{work}/inputs.safetensors"
    half_graph = ["compare", half, "--random-weights", "1", "--inputs", inputs]
    for made_by, agree in (("torch.ops.aten.exp.default(mm)", True), ("torch.ops.aten.relu.default(mm)", False),
                           ("torch.ops.aten.mm.default(x, mm)", False)):
        maker = f"{work}/maker.py"
        open(maker, "w").write(HALF.replace("torch.ops.aten.exp.default(mm)", made_by))
        open(inputs, "wb").write(b"")
        run("run", maker, "--random-weights", "1", "-o", inputs)
        for words in (["--backends", "stored,interp"], ["--backends", "cpu,interp"],
                      ["--reference", "stored", "--against", "cpu"], ["--reference", "interp", "--against", "stored"]):
            done = run(*half_graph, *words, "--json", code=0 if agree else 1)
            rows = [row for report in json.loads(done)["reports"] for row in report["rows"]]
            off = any(row.get("baseline", {}).get("expected_is_off") for row in rows)
            check(off == (not agree and "interp" != words[1]), f"{made_by}, {words}: {rows}")

    graph = f"{work}/graph.py"
    open(graph, "w").write(GRAPH)

    def passes(*words, code=0):
        return run("passes", graph, "--stage", "post_grad", *words, code=code)

    rewritten = next(p for p in json.loads(passes("--print", "rewrites", "--json"))["passes"]
                     if p["pass"] == "rewrite_post_grad")
    check([(r["rule"], r["node"], r["origin"]) for r in rewritten["rewrites"]] ==
          [("mul_one", "a", "net.py:3 in forward"), ("neg_neg", "c", "net.py:5 in forward")], rewritten)
    check("-" in rewritten["rewrites"][0]["changes"] and "mul.Tensor" in rewritten["rewrites"][0]["changes"] and
          "mul.Tensor" not in rewritten["rewrites"][1]["changes"], rewritten)
    check("    2 neg_neg at c, net.py:5 in forward\n" in passes("--print", "rewrites"), "rewrites as text")
    checked = passes("--check")
    check("agree after every pass" in checked and "changed, numbers equal" in checked, "--check")
    moved = [p.get("numbers_off_by") for p in json.loads(passes("--check", "--json"))["passes"] if p["changed"]]
    check(moved and all(m == 0 for m in moved), f"numbers {moved}")
    off = json.loads(passes("--skip", "all", "--json"))["passes"]
    check(all(p["disabled"] != (p["pass"] == "decompose_composites") for p in off), f"--skip all: {off}")
    order = [p["pass"] for p in json.loads(passes("--order", "share_common,rewrite_post_grad", "--json"))["passes"]]
    check(order.index("share_common") < order.index("rewrite_post_grad") and len(order) == len(off), order)
    passes("--order", "none_such", code=2)

print("\n".join(map(str, wrong)) or "as it should")
sys.exit(1 if wrong else 0)

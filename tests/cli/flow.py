#!/usr/bin/env python3
"""`aot` and `passes` show the flow that `run` takes: its stages, the passes of each graph, guards.
flow.py PARTITA SOURCE_DIR"""
import json, os, subprocess, sys, tempfile

partita, source = sys.argv[1:3]
MODEL, IO = f"{source}/resources/samples/mlp/program.pt2", f"{source}/resources/samples/mlp/io.safetensors"
SYMBOLIC = f"{source}/../shared/corpus/extra/symbolic/program.pt2"
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def run(*arguments):
    done = subprocess.run([partita, *arguments], capture_output=True, text=True)
    check(done.returncode == 0, f"{arguments}: exit {done.returncode}, {done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as work:
    facts = {}
    for name, more in (("plain", []), ("run", ["--as-run"]), ("table", ["--decompositions", "default"])):
        facts[name] = json.loads(run("aot", MODEL, "-o", f"{work}/{name}", "--json", *more))
    stages = {name: [stage["stage"] for stage in f["stages"]] for name, f in facts.items()}
    check(stages["plain"] == ["functional", "joint", "effect_tokens", "partition"], f"plain: {stages['plain']}")
    check(stages["run"] == ["pre_grad_passes", "functional", "functional_passes", "joint", "joint_passes", "partition"], f"{stages['run']}")
    check(stages["table"] == ["functional", "joint", "effect_tokens", "decompositions", "partition"],
          f"table: {stages['table']}")
    joint = {name: open(f"{work}/{name}/joint.py").read() for name in facts}
    check("aten.detach" in joint["plain"], "AOTAutograd's graph has detach")
    check("aten.detach" not in joint["table"], "default decompositions left detach")
    check("aten.detach" not in joint["run"], "the joint passes left detach")
    check("aten.detach" in open(f"{work}/run/joint_before_passes.py").read(), "the graph before its passes")
    check(not os.path.exists(f"{work}/plain/joint_before_passes.py"), "there are no passes before which it could be")

# A backend may ask for other graphs.
LAYERS = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[64, 16][16, 1]cpu", w: "f32[8, 16][16, 1]cpu", v: "f32[8, 16][16, 1]cpu"):
        a: "f32[64, 8][8, 1]cpu" = torch.ops.aten.linear.default(x, w)
        b: "f32[64, 8][8, 1]cpu" = torch.ops.aten.linear.default(x, v)
        return (a, b)
"""
with tempfile.TemporaryDirectory() as work:
    open(f"{work}/layers.py", "w").write(LAYERS)
    for backend, packs in (("cpu", False), ("cuda-emulate", True)):
        rows = json.loads(run("passes", f"{work}/layers.py", "--stage", "pre_grad", "--backend", backend, "--json"))
        row = next(row for row in rows["passes"] if row["pass"] == "pack_linears")
        check(row["changed"] == packs, f"passes --backend {backend}: {row}")
        run("aot", f"{work}/layers.py", "--inference", "--backend", backend, "-o", f"{work}/{backend}")
        forward = open(f"{work}/{backend}/forward.py").read()
        check(("aten.cat" in forward) == packs, f"aot --backend {backend}: {forward}")

    refused = subprocess.run([partita, "passes", f"{work}/layers.py", "--backend", "interp"], capture_output=True, text=True)
    check(refused.returncode == 2 and "name one that compiles" in refused.stderr, f"passes --backend interp: {refused}")

bench = json.loads(run("bench", MODEL, "--train", "--random-weights", "0", "--seconds", "0"))
times, warm = bench["stages_ms"], bench["warm_stages_ms"]
compiler = ["post_grad_passes", "plan", "llvm_emit", "llvm_optimise", "llvm_generate", "link", "program",
            "prepare_calls"]
check(list(times) == stages["run"] + compiler and all(ms > 0 for ms in times.values()), f"bench: {times}")
check("plan" not in warm and "llvm_emit" not in warm and warm["prepare_calls"] > 0, f"bench, warm: {warm}")
check(0 < bench["warm_compile_ms"] < bench["compile_ms"] and bench["first_step_ms"] > 0, f"bench: {bench}")
rows = json.loads(run("passes", MODEL, "--train", "--json"))["passes"]
graphs = list(dict.fromkeys((row["stage"], row["graph"]) for row in rows))
check(graphs == [("pre_grad", "given"), ("functional", "functional"), ("joint", "joint"), ("post_grad", "forward"), ("post_grad", "backward")],
      f"passes --train: {graphs}")
rows = json.loads(run("passes", MODEL, "--stage", "post_grad", "--json"))["passes"]
check(("joint", "functional") in {(row["stage"], row["graph"]) for row in rows}, "passes of inference")
rows = json.loads(run("passes", MODEL, "--stage", "joint", "--disable", "remove_noops", "--json"))["passes"]
check(any(row["pass"] == "remove_noops" and row["disabled"] for row in rows), "--disable reaches the joint graph")
# Every pass that changed a graph is checked, those on the way to the last stage too, with random inputs or given ones.
for words in (["--train"], ["--train", "--inputs", IO], ["--stage", "post_grad", "--inputs", IO], ["--stage", "joint"]):
    done = json.loads(run("passes", MODEL, *words, "--check", "--json"))
    changed = [row for row in done["passes"] if row["changed"]]
    check(done["numbers"] == "unchanged" and changed and all("numbers_off_by" in row for row in changed),
          f"passes {words} --check: {changed}")

if os.path.exists(SYMBOLIC):
    with tempfile.TemporaryDirectory() as work:
        for words in (["aot", SYMBOLIC, "--inference", "--json", "-o", work], ["show", SYMBOLIC, "--format", "json"]):
            shown = json.loads(run(*words))
            check(shown["symbols"]["s17"] == {"hint": 5, "low": 2, "high": 64}, f"{words[0]}: {shown['symbols']}")
            check(any(g["reason"] == "a slice's bounds" for g in shown["guards"]), f"{words[0]}: {shown['guards']}")

for line in wrong:
    print(line)
sys.exit(bool(wrong))

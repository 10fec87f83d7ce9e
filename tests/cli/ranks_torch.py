#!/usr/bin/env python3
"""The ranks of a job in PyTorch's processes, which meet by gloo: eager and inductor give what the interpreter gives, a
job that would hang ends with the rank named, and FakeProcessGroup stands in for the others of one rank.

  ranks_torch.py PARTITA; $PARTITA_TEST_PYTHON names a Python with PyTorch, without which this is skipped."""
import json, os, subprocess, sys, tempfile

partita = os.path.abspath(sys.argv[1])
python = os.environ.get("PARTITA_TEST_PYTHON")
if not python:
    print("$PARTITA_TEST_PYTHON names no Python with PyTorch")
    sys.exit(77)
# Three ranks; two of them also have a group of their own. The mesh is only handed on, and nobody waits for the last sum.
GRAPH = """class M(torch.nn.Module):
    def forward(self, x: "f32[4, 4][4, 1]cpu", mesh, unread):
        all_reduce: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(x, '{op}', '0')
        wait_tensor: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        sin: "f32[4, 4][4, 1]cpu" = torch.ops.aten.sin.default(wait_tensor)
{more}
        all_gather: "f32[12, 4][4, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default({last}, 3, '0')
        return ({last}, mesh, all_gather)
"""
PAIR = """        sum_1: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(sin, 'sum', 'pair')
        both: "f32[4, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(sum_1)"""
SIDES = ["--backends", "interp,torch:eager", "--random-weights", "1"]
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "XDG_CONFIG_HOME": work}

    def run(verb, *words, code=0):
        done = subprocess.run([partita, "--python", python, verb, *words], capture_output=True, text=True, env=env)
        check(done.returncode == code, f"{verb} {words}: exit {done.returncode}, {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def job(name, texts):
        for rank, text in enumerate(texts):
            os.makedirs(f"{work}/{name}/rank_{rank}")
            open(f"{work}/{name}/rank_{rank}/inference.py", "w").write(text)
        open(f"{work}/{name}/case.json", "w").write(json.dumps({"ranks": len(texts), "groups": {"pair": [0, 2]}}))
        return f"{work}/{name}"

    alone, paired = GRAPH.format(op="sum", more="", last="sin"), GRAPH.format(op="sum", more=PAIR, last="both")
    ranks = job("ranks", [paired, alone, paired])
    for side in ("torch:eager", "torch:inductor"):
        told = run("compare", ranks, "--ranks", "--random-weights", "1", "--backends", f"interp,{side}")
        check("3 ranks, 2 graphs: no difference" in told, f"{side}: {told}")

    # A wrong one is found, and by its rank.
    fault = "torch:inductor+cpp.inject_relu_bug_TESTING_ONLY=accuracy"
    other = job("other", [alone, alone, alone.replace("aten.sin", "aten.relu")])
    told = run("compare", other, "--ranks", "--random-weights", "1", "--backends", f"interp,{fault}", code=1)
    check("rank 2 differs first" in told and "which sin computes" in told, told)

    told = run("run", job("hangs", [paired, alone, alone]), "--ranks", "--random-weights", "1", "--backend", "torch:eager",
               code=2)
    check("node sum_1: rank 0 starts all_reduce(sum, f32[4, 4])" in told and "rank 2 never starts it" in told, told)

    one = f"{ranks}/rank_1/inference.py"
    told = run("compare", one, "--ranks", "fake:3", *SIDES)
    check("0 differ" in told and "FakeProcessGroup" in told, told)
    told = run("compare", one, "--ranks", "fake", *SIDES, code=2)
    check("--ranks fake:N" in told, told)

print("\n".join(wrong) or "as it should")
sys.exit(1 if wrong else 0)

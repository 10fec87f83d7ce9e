#!/usr/bin/env python3
"""One rank's graph with a stand-in for the others: --ranks fake. ranks_alone.py PARTITA"""
import json, os, subprocess, sys, tempfile

partita = os.path.abspath(sys.argv[1])
wrong = []
# As dynamo prints it: a sum in the forward, and in the backward one of the gradient.
DYNAMO = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 3][3, 1]cpu", L_self_parameters_w_: "f32[3, 3][3, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_self_parameters_w_
        y: "f32[4, 3][3, 1]cpu" = torch.matmul(l_x_, l_w_)
        tensor: "f32[4, 3][3, 1]cpu" = torch.ops._c10d_functional.all_reduce(y, 'sum', '0')
        z: "f32[4, 3][3, 1]cpu" = torch.ops._c10d_functional.wait_tensor(tensor)
        tensor_1: "f32[8, 3][3, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor(z, 2, '0')
        res: "f32[8, 3][3, 1]cpu" = torch.ops._c10d_functional.wait_tensor(tensor_1)
        s: "f32[8, 3][3, 1]cpu" = res.sin()
        return (s,)
"""
HANDS_ON = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu", mesh):
        sin: "f32[4][1]cpu" = torch.ops.aten.sin.default(x)
        return (sin, mesh)
"""
RANDOM = ["--random-weights", "1"]


def check(holds, what):
    if not holds:
        wrong.append(what)


def run(*words, code=0):
    done = subprocess.run([partita, *words], capture_output=True, text=True)
    check(done.returncode == code, f"{words}: {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "dynamo.py")
    open(path, "w").write(DYNAMO)
    for backend in ("interp", "cpu", "f64"):
        for train in ([], ["--train"]):
            words = ["run", path, *RANDOM, "--backend", backend, *train]
            text = run(*words, code=3)
            check("all_reduce" in text and "--ranks fake" in text, f"{words}: {text}")
            text = run(*words, "--ranks", "fake")
            check("no other rank ran" in text, f"{words}: {text}")
            found = json.loads(run(*words, "--ranks", "fake:2", "--json"))
            check(found.get("ranks") == "fake:2", f"{words}: {found}")
            check(found["output.0"]["sizes"] == [8, 3], f"{words}: {found}")
            check(("grad.input.1" in found) == bool(train), f"{words}: {list(found)}")
    for options in ([], ["--train"], ["--against", "cpu", "--per-node"]):
        sides = [] if "--against" in options else ["--backends", "interp,cpu"]
        text = run("compare", path, *RANDOM, *sides, "--ranks", "fake", *options)
        check("no other rank ran" in text, f"{options}: {text}")
        found = json.loads(run("compare", path, *RANDOM, *sides, "--ranks", "fake", "--json", *options))
        check(found["ok"] and found.get("ranks") == "fake", f"{options}: {found}")
    # A job of four ranks whose world has two; what --ranks does not take.
    text = run("run", path, *RANDOM, "--ranks", "fake:4", code=2)
    check("group 0 has 2 ranks, but the job is said to have 4" in text, text)
    for given in ("fake:0", "fake:x", "real"):
        text = run("run", path, *RANDOM, f"--ranks={given}", code=2)
        check("fake:N" in text, text)
    check("folder" in run("run", path, *RANDOM, "--ranks", code=2), "all ranks of one graph")
    # A library stands alone, too.
    check("a library has no other ranks" in run("compile", path, "-o", f"{path}.so", code=3), "compile")
    open(path, "w").write(HANDS_ON)
    check("which is no tensor" in run("compile", path, "-o", f"{path}.so", code=3), "compile with a device mesh")
    run("compare", path, *RANDOM, "--backends", "interp,cpu")

check("starts" in run("ops", "all_reduce"), "ops all_reduce")
for line in wrong:
    print(line)
sys.exit(bool(wrong))

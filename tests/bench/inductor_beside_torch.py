#!/usr/bin/env python3
"""Partita's minifier on inductor beside PyTorch's, with a fault that inductor has for tests. Ratios hold on a busy
machine, seconds do not. Run it with a Python that has PyTorch.

  inductor_beside_torch.py PARTITA SOURCE [ours|no-isolate|isolate|gpt12]...   all when nothing is named; the first three
                                               have a graph of 158 calls, gpt12 (the corpus's forward) a tanh 1 % too large
"""
import json, os, subprocess, sys, tempfile, time

from warm_python import WarmPython

KNOB, VALUE = "cpp.inject_log1p_bug_TESTING_ONLY", "accuracy"
FOLDER_OF_CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TMPDIR": "tmp"}


def calls():
    """158 calls in four kernels and four products: (name, operator, other arguments). Each reads the one before."""
    cycle = [("sin.default", ""), ("mul.Tensor", ", 1.5"), ("add.Tensor", ", 0.1"), ("cos.default", ""), ("mul.Tensor", ", 1.7")]
    out = []
    for block in range(4):
        out.append((f"mm_{block}", "mm.default", ", w"))
        out += [(f"v{block}_{i}", *cycle[(i + block) % 5]) for i in range(37)]
    out += [(f"neg_{i}", "neg.default", "") for i in range(2)]
    return out + [("abs_1", "abs.default", ""), ("log1p", "log1p.default", ""), ("exp", "exp.default", "")]


def body():
    lines, before = [], "x"
    for name, op, more in calls():
        lines.append(f"        {name} = torch.ops.aten.{op}({before}{more})")
        before = name
    lines.append(f"        sum_1 = torch.ops.aten.sum.dim_IntList({before}, [1])")
    return "\n".join(lines + [f"        return (sum_1, {before})", ""])


def ours(partita, source, work):
    path = f"{work}/graph.py"
    with open(path, "w") as file:
        file.write('class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[64, 64][64, 1]cpu", '
                   f'w: "f32[64, 64][64, 1]cpu"):\n{body()}')  # fmt: skip
    return minified("158 calls", partita, path, f"torch:inductor+{KNOB}={VALUE}", WarmPython(sys.executable, source, work), work)


def gpt12(partita, source, work):
    path = os.path.join(os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus"), "big/gpt12/forward.py")
    fault = json.dumps({"op": "tanh", "kind": "value", "factor": 1.01})
    env = {**os.environ, "PARTITA_PLANT": fault, "PYTHONPATH": f"{source}/tests/bench/locate"}
    python = WarmPython(sys.executable, source, work, ["plant_by_environment"], env)
    return minified("gpt12 forward", partita, path, "torch:inductor", python, work)


def minified(name, partita, path, backend, python, work):
    command = [partita, "minify", path, "--check", f"accuracy:{backend}", "--json", "-o", f"{work}/out"]
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}
    begun = time.perf_counter()
    done = subprocess.run(command + python.words, env=env, check=True, stdout=subprocess.PIPE, pass_fds=python.pass_fds)
    whole = time.perf_counter() - begun
    python.close()
    found = json.loads(done.stdout)
    print(f"{name}: Partita, warm worker, empty cache: {whole:.2f} s, {found['tries']} tries, {found['calls']['after']} calls left")
    for s in found["strategies"]:
        print(f"  {s['name']}: {s['tries']} tries, {s['seconds']:.2f} s")
    return whole


def write_launcher(work):
    """PyTorch's own minifier launcher for the graph, and the inputs beside it."""
    import torch
    import torch._inductor.config
    from torch._dynamo.repro.after_aot import save_graph_repro
    from torch.fx.experimental.proxy_tensor import make_fx

    scope = {"torch": torch}
    exec(f"class G(torch.nn.Module):\n    def forward(self, x, w):\n{body()}", scope)
    torch.manual_seed(0)
    inputs = [torch.randn(64, 64), torch.randn(64, 64)]
    torch._inductor.config.cpp.inject_log1p_bug_TESTING_ONLY = VALUE
    with open(f"{work}/launcher.py", "w") as file:
        save_graph_repro(file, make_fx(scope["G"]())(*inputs), inputs, "inductor_accuracy", save_dir=work,
                         command="minify", accuracy=True)  # fmt: skip


def theirs(work, *options):
    env = {**os.environ, "PYTHONPATH": work, **{k: f"{work}/{f}" for k, f in FOLDER_OF_CACHES.items()}}
    for name in FOLDER_OF_CACHES:
        os.makedirs(env[name], exist_ok=True)
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "launcher.py", "minify", *options], env=env, cwd=work, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    text = done.stdout + done.stderr
    tries = text.count("Trying granularity") + text.count("SUCCESS") + text.count("FAIL")
    left = [l for l in text.splitlines() if "nodes" in l and "->" in l]
    print(f"PyTorch's minifier {' '.join(options) or 'as it is'}: {seconds:.1f} s, exit {done.returncode}, about {tries} tries; "
          f"{left[-1].strip() if left else text.strip().splitlines()[-1:]}")
    return seconds


def main():
    partita, source = sys.argv[1:3]
    named = sys.argv[3:] or ["ours", "no-isolate", "isolate", "gpt12"]
    with tempfile.TemporaryDirectory() as work:
        mine = ours(partita, source, work) if "ours" in named else None
        for options in ("no-isolate", "isolate"):
            if options in named:
                write_launcher(work)
                seconds = theirs(work, f"--{options}")
                print(f"  {seconds / mine:.1f} times ours" if mine else "")
        if "gpt12" in named:
            gpt12(partita, source, work)


main()

#!/usr/bin/env python3
"""PyTorch runs what `partita minify` writes: with the fault planted as a backend there it fails, without it does not;
.input files of ours are read by torch._functorch's get_inputs.

  runs_repro.py PARTITA SOURCE_DIR      exit 0 if so, 1 if not, 77 PyTorch or the corpus is not there
"""
import os, subprocess, sys, tempfile

try:
    import torch
    from torch._functorch.compilers import get_inputs
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

# A backend with the fault of --plant OP:wrong: the operator's value is off by one percent.
BACKEND = '''
import torch

class Wrong(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        value = super().call_function(target, args, kwargs)
        return value * 1.01 if str(target) == "{op}" else value

def compile(gm, example_inputs):
    return Wrong(gm).run
'''
CASES = [("gpt2", "aten.tanh.default"), ("resnet", "aten.threshold_backward.default"), ("t5", "aten.rsqrt.default")]


def main():
    partita, source = map(os.path.abspath, sys.argv[1:3])
    corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
    cases = [(f"{corpus}/models/{model}/graphs/joint.py", op) for model, op in CASES]
    if not all(os.path.exists(path) for path, op in cases):
        print("skipped: no corpus")
        return 77
    for path, op in cases:
        with tempfile.TemporaryDirectory() as work:
            env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}
            check = ["--check", "accuracy:interp", "--plant", f"{op}:wrong"]
            subprocess.run([partita, "minify", path, *check, "-o", f"{work}/out"], env=env, check=True)
            again = subprocess.run([partita, "minify", "graph.py", "--inputs", "inputs.safetensors", *check, "--once"],
                                   cwd=f"{work}/out", env=env)
            if again.returncode != 1:
                print(f"FAIL: {path}: what was written does not fail again")
                return 1
            open(f"{work}/wrong.py", "w").write(BACKEND.format(op=op))
            for backend, code in ((f"{work}/wrong.py:compile", 1), ("aot_eager", 0)):
                run = subprocess.run([sys.executable, f"{work}/out/repro.py", "--backend", backend], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                if run.returncode != code or (code == 1 and "FAILS: eager and compiled differ" not in run.stdout):
                    print(f"FAIL: {path} with {backend}: exit {run.returncode}\n{run.stdout}")
                    return 1
            inputs = get_inputs(f"{work}/out/graph.input")
            print(f"{path}: fails again, in PyTorch too; .input has {[tuple(t.shape) for t in inputs]}")
    return 0


sys.exit(main())

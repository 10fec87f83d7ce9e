"""Minifies what inductor, which has faults of its own for tests, does wrong: what is left fails alike, also in the script
for PyTorch that is written, with its symbols; operators of a user's module; a Python that another program started.

  minify_torch.py PARTITA SOURCE_DIR; $PARTITA_TEST_PYTHON names a Python with PyTorch, without which this is skipped."""

import json
import os
import subprocess
import sys
import tempfile

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PYTHON = os.environ.get("PARTITA_TEST_PYTHON")
if not PYTHON:
    print("$PARTITA_TEST_PYTHON names no Python with PyTorch")
    sys.exit(77)
sys.path.insert(0, f"{SOURCE}/tests/bench")
from warm_python import WarmPython  # noqa: E402

HEAD = "class GraphModule(torch.nn.Module):\n    def forward(self, {}):\n"
STATIC = HEAD.format('x: "f32[40, 24][24, 1]cpu", w: "f32[24, 24][24, 1]cpu"') + """\
        mm = torch.ops.aten.mm.default(x, w)
        abs_1 = torch.ops.aten.abs.default(mm)
        log1p = torch.ops.aten.log1p.default(abs_1)
        mm_1 = torch.ops.aten.mm.default(log1p, w)
        return (mm_1,)
"""
DYNAMIC = HEAD.format('n: "Sym(s0)", x: "f32[s0, 24][24, 1]cpu"') + """\
        sin: "f32[s0, 24][24, 1]cpu" = torch.ops.aten.sin.default(x)
        abs_1: "f32[s0, 24][24, 1]cpu" = torch.ops.aten.abs.default(sin)
        log1p: "f32[s0, 24][24, 1]cpu" = torch.ops.aten.log1p.default(abs_1)
        mul: "f32[s0, 24][24, 1]cpu" = torch.ops.aten.mul.Tensor(log1p, n)
        return (mul,)
"""
CUSTOM = HEAD.format('x: "f32[40, 24][24, 1]cpu"') + """\
        sin = torch.ops.aten.sin.default(x)
        twice = torch.ops.partita_test.twice.default(sin)
        abs_1 = torch.ops.aten.abs.default(twice)
        log1p = torch.ops.aten.log1p.default(abs_1)
        thrice = torch.ops.partita_test.thrice.default(log1p)
        return (thrice,)
"""
FAULT = "torch:inductor+cpp.inject_log1p_bug_TESTING_ONLY=accuracy"
MODULE = ["--python-import", "partita_test_operators"]

with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "XDG_CONFIG_HOME": folder, "PYTHONPATH": f"{SOURCE}/tests/codegen/python"}

    def graph(name, text):
        with open(f"{folder}/{name}.py", "w") as file:
            file.write(text)
        return f"{folder}/{name}.py"

    def partita(*words, code, python=PYTHON, **more):
        done = subprocess.run([PARTITA, "--python", python, *words, "--json"], capture_output=True, text=True, env=env, **more)
        assert done.returncode == code, f"{words}: {done.returncode} {done.stderr} {done.stdout}"
        return json.loads(done.stdout)

    def minify(name, text, *more):
        """The text that is left of a graph, and of the script for PyTorch, which fails."""
        out = f"{folder}/{name}"
        found = partita("minify", graph(name, text), "--check", f"accuracy:{FAULT}", "-o", out, *more, code=0)
        assert found["failure"]["what"] == "values", found
        repro = subprocess.run([PYTHON, "repro.py"], cwd=out, capture_output=True, text=True, env=env)
        assert repro.returncode == 1 and "FAILS: eager and compiled differ" in repro.stdout, repro.stdout + repro.stderr
        return found, open(f"{out}/graph.py").read(), open(f"{out}/repro.py").read()

    found, left, repro = minify("static", STATIC)
    assert found["calls"]["after"] == 1 and "aten.log1p" in left, left
    assert "IS_INFERENCE = True" in repro and '"accuracy"' in repro, repro
    found, left, repro = minify("train", STATIC, "--train")
    assert "IS_INFERENCE = False" in repro, repro
    found, left, repro = minify("dynamic", DYNAMIC)
    assert found["calls"]["after"] == 1 and "s0" in left and '"s0"' in repro, left + repro
    found, left, repro = minify("custom", CUSTOM, *MODULE)
    assert found["calls"]["after"] == 1 and "aten.log1p" in left, left

    # An operator of the user's is compared; without its module it is refused, in a line that says what to do.
    compare = ["compare", f"{folder}/custom.py", "--random-weights", "0", "--reference", "torch:eager", "--against"]
    report = partita(*compare, "torch:inductor", "--against", "interp", "--per-node", *MODULE, code=0)
    assert len(report["reports"]) == 2 and all(r["ok"] for r in report["reports"]), report
    assert not any("not_deterministic" in r for r in report["reports"]), report
    refused = subprocess.run([PARTITA, "run", f"{folder}/custom.py", "--random-weights", "0", "--backend", "interp", "-o",
                              f"{folder}/out.safetensors"], capture_output=True, text=True, env=env)  # fmt: skip
    assert refused.returncode == 3 and refused.stderr.count("\n") == 1, refused.stderr
    assert "--python-import" in refused.stderr, refused.stderr

    # A program that was given a Python process starts none.
    python = WarmPython(PYTHON, SOURCE, f"{folder}/cache")
    once = ["minify", f"{folder}/static.py", "--check", f"accuracy:{FAULT}", "--once", "--python-process"]
    shared = partita(*once, str(python.pass_fds[0]), code=1, python="/nonexistent/python", pass_fds=python.pass_fds)
    assert shared["what"] == "values", shared
    evil = graph("evil", HEAD.format('x: "f32[4][1]cpu"') + "        a = os.system('true')\n        return (a,)\n")
    once[1] = evil
    answer = partita(*once, str(python.pass_fds[0]), code=3, python="/nonexistent/python", pass_fds=python.pass_fds)
    assert answer["no verdict"] == "torch.refused", answer
    python.close()
    refused = subprocess.run([PARTITA, "--python", PYTHON, *once[:-1]], capture_output=True, text=True, env=env)
    assert refused.returncode == 3 and refused.stderr.count("\n") == 1 and "os.system" in refused.stderr, refused.stderr
    for number in ("0", "77"):
        none = subprocess.run([PARTITA, *once, number], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
        assert none.returncode == 2 and none.stderr.count("\n") == 1, none.stderr
print("ok")

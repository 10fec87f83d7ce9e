#!/usr/bin/env python3
"""Plants 50 faults of 7 kinds in inductor, minifies a graph that each makes wrong, and counts slips: minified graphs that
do not fail as the start did, that fail without the fault, or that have lost the guilty operator.

  minify_faults.py PARTITA SOURCE [PART_OF_LABEL]     with a Python that has PyTorch
"""
import json, os, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "locate"))
import plant
from warm_python import WarmPython

POSITIVE = ("log", "sqrt", "rsqrt")
# dtype: of results; the others as plant.py has them
KINDS = {
    "value": "tanh exp sigmoid rsqrt erf log sqrt neg abs sin cos expm1 log1p relu",
    "tail": "tanh exp sin cos sigmoid log abs neg",
    "fused": "tanh exp sin cos sigmoid erf expm1 relu",
    "nan": "tanh exp sigmoid rsqrt cos sin",
    "dtype": "tanh exp sin cos sigmoid",
    "crash": "tanh exp log sin relu",
    "exception": "tanh cos sqrt log1p",
}


def text(op, dtype):
    """A network in odd sizes, with one use of the operator."""
    before = {"log1p": ["abs"]}.get(op, ["abs"] if op in POSITIVE else [])
    lines, last = [], "add"
    for i, name in enumerate(before):
        lines.append(f"        pre_{i} = torch.ops.aten.{name}.default({last})")
        last = f"pre_{i}"
    if op in POSITIVE:
        lines.append(f"        positive = torch.ops.aten.add.Tensor({last}, 0.5)")
        last = "positive"
    middle = "\n".join(lines + [f"        guilty = torch.ops.aten.{op}.default({last})"])
    return f"""class GraphModule(torch.nn.Module):
    def forward(self, a: "{dtype}[37, 29][29, 1]cpu", b: "{dtype}[29, 53][53, 1]cpu", c: "{dtype}[53][1]cpu"):
        mm = torch.ops.aten.mm.default(a, b)
        mul = torch.ops.aten.mul.Tensor(mm, 0.3)
        add = torch.ops.aten.add.Tensor(mul, c)
{middle}
        shifted = torch.ops.aten.add.Tensor(guilty, 0.25)
        permute = torch.ops.aten.permute.default(b, [1, 0])
        mm_1 = torch.ops.aten.mm.default(shifted, permute)
        sub = torch.ops.aten.sub.Tensor(mm_1, a)
        amax = torch.ops.aten.amax.default(sub, [1])
        atan = torch.ops.aten.atan.default(mm_1)
        return (amax, shifted, atan)
"""


class Fault:
    """Inductor with a fault, in a Python process of its own, and Partita's minifier on it."""

    def __init__(self, partita, source, work, op, kind):
        fault = json.dumps({"op": op, "kind": kind, "factor": 1.05}) if op else ""
        self.env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "PARTITA_PLANT": fault,
                    "PYTHONPATH": os.path.dirname(os.path.abspath(plant.__file__))}  # fmt: skip
        self.python = WarmPython(sys.executable, source, f"{work}/cache", ["plant_by_environment"], self.env)
        self.words = [partita, "minify", *self.python.words]

    def minify(self, *words):
        done = subprocess.run([*self.words, *words, "--json"], env=self.env, capture_output=True, text=True,
                              pass_fds=self.python.pass_fds)  # fmt: skip
        assert done.returncode < 2 and done.stdout, f"{words}: {done.returncode} {done.stdout} {done.stderr}"
        return json.loads(done.stdout)


def one(faulty, right, work, op, kind, dtype):
    """(slip or "", what was found)"""
    check = ("--check", ("crash" if kind in ("crash", "exception") else "accuracy") + ":torch:inductor")
    path, out = f"{work}/{op}-{kind}.py", f"{work}/{op}-{kind}-{dtype}"
    with open(path, "w") as file:
        file.write(text(op, dtype))
    start = faulty.minify(path, "--once", *check)
    if start is None:
        return "", "the fault does not show"
    found = faulty.minify(path, "-o", out, *check)
    small = (f"{out}/graph.py", "--inputs", f"{out}/inputs.safetensors", "--once", *check)
    said = f"{start['what']} | {found['calls']['after']} calls, {found['tries']} tries, {found['seconds']:.1f} s"
    again = faulty.minify(*small)
    if not again or (again["what"], again["op"]) != (start["what"], start["op"]):
        return f"fails with {again}", said
    if without := right.minify(*small):
        return f"fails without the fault: {without}", said
    if not any(f"aten.{name}." in open(f"{out}/graph.py").read() for name in plant.names_of(op)):
        return "the guilty operator is gone", said
    return "", said


def main():
    partita, source, *part = sys.argv[1:]
    counts = {"faults": 0, "do not show": 0, "slips": 0}
    with tempfile.TemporaryDirectory() as work:
        right = Fault(partita, source, work, None, None)
        for kind, ops in KINDS.items():
            for i, op in enumerate(ops.split()):
                dtype = "bf16" if i % 2 and kind != "dtype" else "f32"
                label = f"{op} {kind} {dtype}"
                if part and part[0] not in label:
                    continue
                begun = time.perf_counter()
                faulty = Fault(partita, source, work, op, kind)
                slip, said = one(faulty, right, work, op, kind, dtype)
                faulty.python.close()
                counts["faults"] += 1
                counts["slips"] += bool(slip)
                counts["do not show"] += "does not show" in said
                print(f"{label}: {said}{' SLIP: ' + slip if slip else ''} ({time.perf_counter() - begun:.0f} s)", flush=True)
        right.python.close()
    print(counts)
    return counts["slips"] > 0


sys.exit(main())

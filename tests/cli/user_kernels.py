#!/usr/bin/env python3
"""Kernels of the user's own in graphs: run by the interpreter and torch:eager through PyTorch's kernel_side_table, which a
module of --python-import fills; what cannot run them says so. The module's kernel is a stand-in for a Triton kernel with
the interface that PyTorch uses, so that no Triton is needed. Skips without PyTorch.

  user_kernels.py PARTITA"""
import json, os, struct, subprocess, sys, tempfile

partita = os.path.abspath(sys.argv[1])
python = os.environ.get("PARTITA_TEST_PYTHON")
if not python:
    print("PARTITA_TEST_PYTHON names no Python with PyTorch")
    sys.exit(77)
MODULE = """import types
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

class Kernel:
    '''out[:n] = x + scale * y in blocks; a launch of too few blocks leaves the rest.'''
    arg_names = ["x", "y", "out", "n", "scale", "BLOCK"]
    fn = types.SimpleNamespace(__name__="add")

    def __getitem__(self, grid):
        def launch(x, y, out, n, scale, BLOCK):
            to = min(int(n), int(grid[0]) * BLOCK)
            out[:to] = x[:to] + scale * y[:to]
        return launch

kernel_side_table.reset_table()
kernel_side_table.add_kernel(Kernel())
kernel_side_table.constant_args = {0: {"n": 6, "scale": 2.0, "BLOCK": 4}, 1: {"scale": 2.0, "BLOCK": 4}}
"""
CALL = "kernel_idx = {k}, constant_args_idx = {c}, grid = {grid}, tma_descriptor_metadata = {{}}, kwargs = {kwargs}"
WRITES = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[6]", y: "f32[6]"):
        sin = x.sin()
        out = torch.empty_like(sin)
        kernel = torch.ops.higher_order.triton_kernel_wrapper_mutation({call})
        relu = torch.relu(out)
        return (relu,)
"""
GIVES = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[6]", y: "f32[6]"):
        sin = torch.ops.aten.sin.default(x)
        out = torch.ops.aten.empty.memory_format([6], dtype = torch.float32, device = device(type='cpu'))
        kernel = torch.ops.higher_order.triton_kernel_wrapper_functional({call}, tensors_to_clone = ['x', 'out'])
        given = kernel['out']
        relu = torch.ops.aten.relu.default(given)
        return (relu, given)
"""
SYMBOLIC = """class GraphModule(torch.nn.Module):
    def forward(self, s0: "Sym(s0)", x: "f32[s0]", y: "f32[s0]"):
        sin = x.sin()
        out = torch.empty_like(sin)
        add = s0 + 3
        blocks = add // 4
        kernel = torch.ops.higher_order.triton_kernel_wrapper_mutation({call})
        relu = torch.relu(out)
        return (relu,)
"""
PLAIN = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[6]", y: "f32[6]"):
        sin = x.sin()
        twice = y * 2
        out = sin + twice
        relu = torch.relu(out)
        return (relu,)
"""
# Its backward reads what the forward saved. BODY: what a sub graph computes of two values `a` and `b` into `out`.
TRAINS = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[6]", y: "f32[6]"):
        arg: "f32[6]" = x * y
        fwd_body_0 = self.fwd_body_0
        bwd_body_0 = self.bwd_body_0
        apply = torch.ops.higher_order.autograd_function_apply(fwd_body_0, bwd_body_0, arg, non_differentiable_idx = [], saved_for_backward_idx = [0])
        result: "f32[6]" = apply[0]
        sin = result.sin()
        total = sin.sum()
        return (total,)

    class fwd_body_0(torch.nn.Module):
        def forward(self, a: "f32[6]"):
            b = a.cos()
            BODY
            return ((out,), (a,))

    class bwd_body_0(torch.nn.Module):
        def forward(self, a: "f32[6]", b: "f32[6]"):
            BODY
            return (out,)
"""
KERNEL_BODY = """out = torch.empty_like(a)
            kernel = torch.ops.higher_order.triton_kernel_wrapper_mutation({call})"""
PLAIN_BODY = """twice = b * 2.0
            out = a + twice"""
TENSORS = "{'x': sin, 'y': y, 'out': out}"
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "XDG_DATA_HOME": f"{work}/data", "XDG_CONFIG_HOME": f"{work}/config"}

    def run(*words):
        done = subprocess.run([partita, *words], capture_output=True, text=True, cwd=work, env=env)
        return done.returncode, done.stdout + done.stderr

    def graph(name, text, k=0, c=0, grid="[(2, 1, 1)]", kwargs=TENSORS):
        with open(f"{work}/{name}.py", "w") as file:
            file.write(text.format(call=CALL.format(k=k, c=c, grid=grid, kwargs=kwargs)))
        return f"{name}.py"

    with open(f"{work}/table.py", "w") as file:
        file.write(MODULE)
    how = ["--python", python, "--python-import", "table", "--random-weights", "1"]
    plain = graph("plain", PLAIN)
    code, said = run("run", plain, "--random-weights", "1", "-o", "right.safetensors")
    check(code == 0, f"plain: {said}")
    graphs = {
        "writes": graph("writes", WRITES),
        "gives": graph("gives", GIVES),
        "symbolic": graph("symbolic", SYMBOLIC, c=1, grid="[(blocks, 1, 1)]", kwargs="{'x': sin, 'y': y, 'out': out, 'n': s0}"),
    }
    for name, file in graphs.items():
        code, said = run("compare", file, *how, "--backends", "interp,torch:eager", "--per-node")
        check(code == 0 and " 0 differ" in said, f"{name}: {code} {said}")
    for name in ("writes", "gives"):
        code, said = run("run", graphs[name], *how, "-o", f"{name}.safetensors")
        check(code == 0, f"{name}: {said}")
        with open(f"{work}/{name}.safetensors", "rb") as found, open(f"{work}/right.safetensors", "rb") as right:
            check(found.read()[-24:] == right.read()[-24:], f"{name}: other values than without the kernel")
    trained = {}
    with open(f"{work}/io.safetensors", "wb") as file:
        values = struct.pack("<12f", *[0.1 * (i + 1) for i in range(12)])
        head = json.dumps({"__metadata__": {"requires_grad": '["input.0", "input.1"]'}} | {
            f"input.{i}": {"dtype": "F32", "shape": [6], "data_offsets": [24 * i, 24 * i + 24]} for i in range(2)}).encode()
        file.write(struct.pack("<Q", len(head)) + head + values)
    for name, body in (("kernel_trains", KERNEL_BODY), ("plain_trains", PLAIN_BODY)):
        file = graph(name, TRAINS.replace("BODY", body), kwargs="{'x': a, 'y': b, 'out': out}")
        code, said = run("run", file, *how[:4], "--inputs", "io.safetensors", "--train", "-o", f"{name}.safetensors")
        check(code == 0, f"{name}: {said}")
        with open(f"{work}/{name}.safetensors", "rb") as file:
            trained[name] = file.read()[-52:]
    check(trained["kernel_trains"] == trained["plain_trains"], "training: other gradients than without the kernel")
    code, said = run("compare", graphs["writes"], *how, "--backends", "interp,cpu")
    check(code == 3 and "kernel_side_table" in said, f"cpu: {code} {said}")
    code, said = run("compare", graphs["writes"], *how, "--backends", "interp,torch:inductor")
    check(code == 3 and "torch:eager runs them" in said, f"inductor: {code} {said}")
    code, said = run("run", graph("absent", WRITES, k=3), *how)
    check(code == 3 and "has no kernel_idx 3" in said, f"absent kernel: {code} {said}")
    code, said = run("run", graph("constants", WRITES, c=7), *how)
    check(code == 3 and "has no constant_args_idx 7" in said, f"absent constants: {code} {said}")
    # PyTorch makes Python text of several grids and runs it.
    code, said = run("run", graph("text", WRITES, grid="[('__import__(\"os\").system(\"touch ran\")', 1, 1), (1, 1, 1)]"), *how)
    check(code == 3 and "tuples of numbers" in said and not os.path.exists(f"{work}/ran"), f"text in a grid: {code} {said}")
    code, said = run("run", graphs["writes"], "--random-weights", "1")
    check(code == 3 and "--python-import" in said, f"without a module: {code} {said}")
    code, said = run("ops", "--missing", graphs["writes"])
    check("kernel_side_table" in said, f"ops: {code} {said}")
print("\n".join(wrong))
sys.exit(bool(wrong))

#!/usr/bin/env python3
"""`partita run --compiler NAME` prints and writes what PyTorch 2.13's compilers do for f(x, w) = sin(x @ w).sum(0); with
PyTorch installed, the dumped folders are imported and run there.     compilers.py PARTITA SOURCE_DIR"""
import json, os, struct, subprocess, sys, tempfile

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2, 3][3, 1]cpu", w: "f32[3, 2][2, 1]cpu"):
        mm: "f32[2, 2][2, 1]cpu" = torch.ops.aten.mm.default(x, w);  x = w = None
        sin: "f32[2, 2][2, 1]cpu" = torch.ops.aten.sin.default(mm);  mm = None
        sum_1: "f32[2][1]cpu" = torch.ops.aten.sum.dim_IntList(sin, [0]);  sin = None
        return (sum_1,)
"""
# As torch._functorch.compilers.print_compile printed them.
FORWARD = """


def forward(self, primals_1, primals_2):
    mm = torch.ops.aten.mm.default(primals_1, primals_2);  primals_1 = None
    sin = torch.ops.aten.sin.default(mm)
    sum_1 = torch.ops.aten.sum.dim_IntList(sin, [0]);  sin = None
    return (sum_1, primals_2, mm)
    
"""
BACKWARD = """


def forward(self, primals_2, mm, tangents_1):
    unsqueeze = torch.ops.aten.unsqueeze.default(tangents_1, 0);  tangents_1 = None
    expand = torch.ops.aten.expand.default(unsqueeze, [2, 2]);  unsqueeze = None
    cos = torch.ops.aten.cos.default(mm);  mm = None
    mul = torch.ops.aten.mul.Tensor(expand, cos);  expand = cos = None
    t = torch.ops.aten.t.default(primals_2);  primals_2 = None
    mm_1 = torch.ops.aten.mm.default(mul, t);  mul = t = None
    return (mm_1, None)
    
"""
# Lines of draw_graph's file for make_fx graphs (pydot 4).
DOT = [
    'digraph fx_graph {', 'rankdir=TB;',
    'primals_2 [label="{name=%primals_2|op_code=placeholder\\n|target=primals_2\\n|num_users=1\\n}", shape=record, '
    'fillcolor="AliceBlue", style="filled,rounded", fontcolor="#000000"];',
    'mm_1 [label="{name=%mm_1|op_code=call_function\\n|target=torch.ops.aten.mm.default\\n|num_users=1\\n}", shape=record, '
    'fillcolor=PeachPuff1, style="filled,rounded", fontcolor="#000000"];',
    'unsqueeze [label="{name=%unsqueeze|op_code=call_function\\n|target=torch.ops.aten.unsqueeze.default\\n|args=(0,)'
    '|num_users=1\\n}", shape=record, fillcolor=',
    'output [label="{name=%output|op_code=output\\n|target=output\\n|num_users=0\\n}", shape=record, '
    'fillcolor=PowderBlue, style="filled,rounded", fontcolor="#000000"];',
    'unsqueeze -> expand;', 'mul -> mm_1;', '}']
SAME_NUMBERS = ["partita", "nop", "debug_nop", "ts_compile", "simple_ts_compile", "nnc_jit", "memory_efficient_fusion"]


def write_safetensors(path, tensors, said):
    header, data = {"__metadata__": {k: json.dumps(v) for k, v in said.items()}}, b""
    for key, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def floats(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    entries = json.loads(raw[8:8 + size])
    entries.pop("__metadata__", None)
    return {k: struct.unpack(f"<{(e['data_offsets'][1] - e['data_offsets'][0]) // 4}f",
                             raw[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]])
            for k, e in sorted(entries.items())}


def main():
    partita = sys.argv[1]
    failures = []

    def check(ok, what):
        if not ok:
            failures.append(what)

    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}
        open(f"{work}/f.py", "w").write(GRAPH)
        write_safetensors(f"{work}/io.safetensors",
                          {"input.0": ([2, 3], [.1, .2, .3, .4, .5, .6]), "input.1": ([3, 2], [1, 2, 3, 4, 5, 6]),
                           "tangent.0": ([2], [1, 2])}, {"requires_grad": ["input.0"]})

        def run(name, *options):
            args = [partita, "run", f"{work}/f.py", "--inputs", f"{work}/io.safetensors", "--train", "--compiler", name,
                    "-o", f"{work}/{name}.safetensors", "--json", "--compiler-folder", work, *options]
            done = subprocess.run(args, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(done.returncode == 0, f"{name}: exit {done.returncode}: {done.stderr}")
            return done.stderr  # with --json what a compiler prints goes there

        for name in SAME_NUMBERS:
            check(run(name) == "", f"{name} prints something")
            got, want = floats(f"{work}/{name}.safetensors"), floats(f"{work}/partita.safetensors")
            check(got.keys() == want.keys(), f"{name}: {list(got)}")
            check(all(abs(a - b) < 1e-5 for k in want for a, b in zip(got[k], want[k])), f"{name}: other numbers")
        check(run("print_compile") == FORWARD + BACKWARD, "print_compile prints something else")
        check(run("draw_graph_compile", "--compiler-name", "g.dot") == FORWARD + BACKWARD, "draw_graph_compile prints")
        drawn = open(f"{work}/g.dot").read()
        for line in DOT:
            check(line in drawn, f"the drawing has no {line}:\n{drawn}")
        # More nodes than Graphviz draws in time: our own layout draws them, in the formats that it knows.
        lines = [f'        a{i + 1}: "f32[2][1]cpu" = torch.ops.aten.sin.default(a{i})' for i in range(600)]
        open(f"{work}/big.py", "w").write("class GraphModule(torch.nn.Module):\n    def forward(self, a0: \"f32[2][1]cpu\"):\n"
                                          + "\n".join(lines) + "\n        return (a600,)\n")
        write_safetensors(f"{work}/big.safetensors", {"input.0": ([2], [1, 2]), "tangent.0": ([2], [1, 2])},
                          {"requires_grad": ["input.0"]})
        for name, ok in (("big.svg", True), ("big.dot", True), ("big.jpg", False)):
            done = subprocess.run([partita, "run", f"{work}/big.py", "--inputs", f"{work}/big.safetensors", "--train",
                                   "--compiler", "draw_graph_compile", "--compiler-folder", work, "--compiler-name", name],
                                  env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
            check((done.returncode == 0) == ok, f"{name}: exit {done.returncode}: {done.stderr}")
            check(ok or "unknown picture format 'jpg'" in done.stderr, f"{name}: {done.stderr}")
            check(os.path.exists(f"{work}/{name}") == ok, f"{name}: {os.listdir(work)}")
        picture = subprocess.run([partita, "show", f"{work}/big.py", "--format", "svg"], env=env, text=True,
                                 stdout=subprocess.PIPE).stdout
        check("<svg" in picture, picture[:100])
        said = run("debug_compile")
        check("# To minimize FX graph, copy and paste the below and run it  #" in said, f"debug_compile says {said}")
        check("inps = [(torch.Size([2, 3]), torch.float32), (torch.Size([3, 2]), torch.float32)]" in said, said)
        check(os.path.exists(f"{work}/foo/module.py"), "debug_compile wrote no foo")
        run("graph_dumper_aot", "--compiler-name", "net", "--dump-example-inputs")
        for kind in ("joint", "forward", "backward"):
            for name in ("__init__.py", "module.py", "state_dict.pt", f"net_{kind}_0.input", f"net_{kind}_0.pt"):
                check(os.path.exists(f"{work}/net/net_{kind}_0/{name}"), f"graph_dumper_aot wrote no {kind}/{name}")
        listed = subprocess.run([partita, "list", f"{work}/net"], text=True, env=env, stdout=subprocess.PIPE).stdout
        check(all(f"net_{k}_0" in listed for k in ("joint", "forward", "backward")), f"list shows {listed}")
        unknown = subprocess.run([partita, "run", f"{work}/f.py", "--compiler", "none"], env=env, text=True,
                                 stderr=subprocess.PIPE)
        check(unknown.returncode == 2 and "no compiler none; there are partita, nop" in unknown.stderr, unknown.stderr)
        try:
            import torch
        except ImportError:
            torch = None
        if torch:
            from torch._functorch.compilers import get_inputs
            sys.path.insert(0, f"{work}/net")
            for kind in ("joint", "forward", "backward"):
                module = __import__(f"net_{kind}_0").FxModule()
                inputs = torch.load(f"{work}/net/net_{kind}_0/net_{kind}_0.pt")
                made = get_inputs(f"{work}/net/net_{kind}_0/net_{kind}_0.input")
                check([t.shape for t in made] == [t.shape for t in inputs], f"{kind}: other inputs")
                results = module(*inputs)
                want = floats(f"{work}/nop.safetensors")
                if kind == "forward":
                    check(torch.allclose(results[0], torch.tensor(want["output.0"])), "PyTorch's forward differs")
                else:
                    gradient = results[0 if kind == "backward" else 1]
                    check(torch.allclose(gradient.flatten(), torch.tensor(want["grad.input.0"])), f"PyTorch's {kind} differs")
    print("\n".join(failures) or "as PyTorch's")
    return 1 if failures else 0


sys.exit(main())

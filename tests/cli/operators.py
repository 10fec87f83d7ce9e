#!/usr/bin/env python3
"""Operators of the user's own, whose meaning is a text (--operators): drawn, run, compared, trained, cut and minified;
what is wrong with a folder is one line; `ops --missing` says what a file needs.

  operators.py PARTITA"""
import json, os, random, struct, subprocess, sys, tempfile

partita = os.path.abspath(sys.argv[1])
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 8]", w: "f32[8]"):
        # File: /home/u/model.py:12 in forward, code: y = torch.ops.mylib.scale_add(x, w, 3.0)
        y = torch.ops.mylib.scale_add(x, w, 3.0)
        z = torch.tanh(y)
        # File: /home/u/model.py:14 in forward, code: torch.ops.mylib.bump(z)
        bump = torch.ops.mylib.bump.default(z);  bump = None
        two = torch.ops.mylib.two.default(z, 4)
        first = two[0]
        second = two[1]
        r = torch.relu(first)
        s = r.sum()
        t = second.sum()
        u = s + t
        return (u,)
"""
# The same without the user's operators; the gradient of scale_add is its text's.
PLAIN = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 8]", w: "f32[8]"):
        a = torch.sigmoid(x)
        b = a * 3.0
        y = b + w
        z = torch.tanh(y)
        c = z + 1
        d = torch.sigmoid(c)
        e = d * 2.0
        first = e + c
        f = c.reshape(8, 4)
        second = f.sum(1)
        r = torch.relu(first)
        s = r.sum()
        t = second.sum()
        u = s + t
        return (u,)
"""
SCALE_ADD = """def forward(self, x: "f32[2]", w, scale = 2.0):
    y = torch.sigmoid(x) * scale
    return y + w
"""
# Twice the gradient of w, so that it shows which one is taken.
BACKWARD = """def forward(self, grad, x, w, scale):
    s = torch.sigmoid(x)
    g = grad * 2
    return (grad * scale * s * (1 - s), g.sum(0), None)
"""
BUMP = """def forward(self, x):
    copy = torch.ops.aten.copy_.default(x, x + 1)
    return ()
"""
TWO = """def forward(self, x, n):
    a = torch.ops.mylib.scale_add(x, x)
    b = x.reshape(x.size(0) * x.size(1) // n, n)
    return (a, b.sum(1))
"""
MODULE = """import torch

@torch.library.custom_op("mylib::scale_add", mutates_args=())
def scale_add(x: torch.Tensor, w: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    return torch.sigmoid(x) * scale + w

@scale_add.register_fake
def _(x, w, scale=2.0):
    return torch.empty_like(x)
"""
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return out


def write_inputs(path):
    """Values for x and w, which require grad."""
    random.seed(1)
    values = [random.uniform(-1, 1) for _ in range(40)]
    header = {"input.0": {"dtype": "F32", "shape": [4, 8], "data_offsets": [0, 128]},
              "input.1": {"dtype": "F32", "shape": [8], "data_offsets": [128, 160]},
              "__metadata__": {"requires_grad": json.dumps(["input.0", "input.1"])}}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack("<40f", *values))


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-4 + 1e-4 * abs(y) for x, y in zip(a, b))


with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "XDG_CONFIG_HOME": f"{work}/config", "PARTITA_STORE": f"{work}/store.sqlite"}

    def run(*words, code=0):
        done = subprocess.run([partita, *words], capture_output=True, text=True, env=env, cwd=work)
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        if code:
            check(done.stderr.count("\n") == 1, f"one line: {done.stderr}")
        return done.stderr if code else done.stdout

    def write(path, text):
        os.makedirs(os.path.dirname(f"{work}/{path}"), exist_ok=True)
        with open(f"{work}/{path}", "w") as file:
            file.write(text)

    def folder(name, **texts):
        for operator, text in texts.items():
            write(f"{name}/mylib.{operator.replace('__', '.')}.py", text)
        return ["--operators", f"{work}/{name}"]

    write("graph.py", GRAPH)
    write("plain.py", PLAIN)
    ops = folder("ops", scale_add__default=SCALE_ADD, bump__default=BUMP, two__default=TWO)
    write_inputs(f"{work}/io.safetensors")
    given = ["--inputs", "io.safetensors"]

    # What is missing, and what would give it.
    text = run("ops", "--missing", "graph.py")
    check("mylib.scale_add  no record, 1 call in 1 graph" in text, text)
    check("mylib.scale_add.default.py (and mylib.scale_add.default.backward.py" in text, text)
    check("/home/u/model.py:12 in forward" in text and "3 operators of 1 graph are missing" in text, text)
    found = json.loads(run("ops", "--missing", "graph.py", "--json"))
    rows = {row["name"]: row for row in found["missing"]}
    check(set(rows) == {"mylib.scale_add", "mylib.bump.default", "mylib.two.default"}, rows)
    check([way["way"] for way in rows["mylib.bump.default"]["ways"]] == ["operators", "python_import"], rows)
    check(rows["mylib.bump.default"]["lines"] == ["/home/u/model.py:14 in forward"], rows)
    found = json.loads(run(*ops, "ops", "--missing", "graph.py", "--json"))
    check(found["missing"] == [] and len(found["given"]) == 3, found)
    check("--operators FOLDER" in run("run", "graph.py", *given, "-o", "none.safetensors", code=3), "a way out")

    # Drawn as it is, run and compared.
    check("mylib.scale_add" in run(*ops, "show", "graph.py"), "drawn as one call")
    for backend in ("interp", "f64", "cpu"):
        run(*ops, "run", "graph.py", *given, "--backend", backend, "-o", f"{backend}.safetensors")
        run("run", "plain.py", *given, "--backend", backend, "-o", f"plain_{backend}.safetensors")
        a, b = (tensors(f"{work}/{n}.safetensors")["output.0"] for n in (backend, f"plain_{backend}"))
        check(near(a, b), f"{backend}: {a} {b}")
    run(*ops, "compare", "graph.py", *given, "--backends", "interp,cpu", "--per-node")

    # Trained: through the text, and by a backward of its own.
    run(*ops, "run", "graph.py", *given, "--train", "--backend", "cpu", "-o", "train.safetensors")
    run("run", "plain.py", *given, "--train", "--backend", "cpu", "-o", "plain_train.safetensors")
    through, plain = tensors(f"{work}/train.safetensors"), tensors(f"{work}/plain_train.safetensors")
    check(set(through) == set(plain) and all(near(through[k], plain[k]) for k in plain), (through, plain))
    own = folder("own", scale_add__default=SCALE_ADD, scale_add__default__backward=BACKWARD)
    write("one.py", GRAPH.split("        z =")[0] + "        return (y.sum(),)\n")
    for backend in ("interp", "cpu"):
        run(*own, "run", "one.py", *given, "--train", "--backend", backend, "-o", "own.safetensors")
        run(*ops, "run", "one.py", *given, "--train", "--backend", backend, "-o", "text.safetensors")
        mine, theirs = tensors(f"{work}/own.safetensors"), tensors(f"{work}/text.safetensors")
        grads = sorted(k for k in mine if k.startswith("grad."))
        check(len(grads) == 2, mine.keys())
        check(near(mine[grads[0]], theirs[grads[0]]), (backend, mine, theirs))
        check(near(mine[grads[1]], [2 * v for v in theirs[grads[1]]]), (backend, mine, theirs))

    # Cut: with a gradient of its own it stays one call of the forward.
    run(*own, "aot", "one.py", "-o", "own_cut")
    run(*ops, "aot", "one.py", "-o", "text_cut")
    check("mylib.scale_add.default" in open(f"{work}/own_cut/forward.py").read(), "one call in the forward")
    check("mylib.scale_add.default" not in open(f"{work}/own_cut/backward.py").read(), "not computed again")
    check("mylib.scale_add.default" not in open(f"{work}/text_cut/joint.py").read(), "differentiated through the text")

    # A changed text is another key of stored code.
    again = folder("changed", scale_add__default=SCALE_ADD)
    run(*again, "run", "one.py", *given, "--backend", "cpu", "-o", "before.safetensors")
    folder("changed", scale_add__default=SCALE_ADD.replace("y + w", "y - w"))
    run(*again, "run", "one.py", *given, "--backend", "cpu", "-o", "after.safetensors")
    before, after = (tensors(f"{work}/{n}.safetensors")["output.0"] for n in ("before", "after"))
    check(not near(before, after), "the new text counts")

    # Minified.
    run(*ops, "minify", "graph.py", *given, "--check", "accuracy:cpu", "--plant", "aten.tanh.default:wrong", "-o", "small")
    check("tanh" in open(f"{work}/small/graph.py").read(), "the fault is kept")

    # PyTorch runs the text's calls, or the operator itself, which the text must agree with.
    if python := os.environ.get("PARTITA_TEST_PYTHON"):
        write("own_module.py", MODULE)
        env["PYTHONPATH"] = work
        torch = ["--python", python]
        between = ["compare", "one.py", *given, "--backends", "interp,torch:eager"]
        run(*torch, *ops, *between)
        run(*torch, "--python-import", "own_module", *ops, *between)
        other = folder("other", scale_add__default=SCALE_ADD.replace("y + w", "y + 2 * w"))
        run(*torch, *other, *between)
        done = subprocess.run([partita, *torch, "--python-import", "own_module", *other, *between],
                              capture_output=True, text=True, env=env, cwd=work)
        check(done.returncode == 1, f"a wrong text: {done.stdout} {done.stderr}")

    # One line each for what is wrong with a folder.
    def refused(says, graph="one.py", **texts):
        name = f"bad{len(os.listdir(work))}"
        error = run(*folder(name, **texts), "run", graph, *given, "-o", "no.safetensors", code=2)
        check(says in error, f"{says!r}: {error}")

    refused("is no operator's", scale_add=SCALE_ADD)
    refused("there is no mylib.scale_add.default.py", scale_add__default__backward=BACKWARD)
    refused("circle of texts", scale_add__default=SCALE_ADD.replace("torch.sigmoid", "torch.ops.mylib.b"),
            b__default="def forward(self, x):\n    return torch.ops.mylib.scale_add(x, x)\n")
    refused("missing", scale_add__default=SCALE_ADD.replace("scale = 2.0", "scale = 2.0, more"))
    refused("at most 2", scale_add__default="def forward(self, x, w):\n    return x + w\n")
    refused("expected", scale_add__default="def forward(self, x, w, scale):\n    return x +\n")
    refused("returns its argument", scale_add__default="def forward(self, x, w, scale):\n    return x\n")
    refused("returns a view", scale_add__default="def forward(self, x, w, scale):\n    return x.t()\n")
    refused("only by copy_", scale_add__default="def forward(self, x, w, scale):\n    return x.sigmoid() + w.add_(1)\n")
    refused("self.weight", scale_add__default="def forward(self, x, w, scale):\n    return x + self.weight\n")
    refused("neither an argument nor a result", scale_add__default=SCALE_ADD,
            scale_add__default__backward=BACKWARD.replace("grad, x, w, scale)", "grad, x, w, scale, z)"))
    refused("2 values, and there are 3", scale_add__default=SCALE_ADD,
            scale_add__default__backward="def forward(self, grad, x):\n    return (grad, grad)\n")
    write("known/aten.add.Tensor.py", "def forward(self, a, b):\n    return a * b\n")
    check("knows aten.add.Tensor already" in
          run("--operators", f"{work}/known", "show", "one.py", code=2), "an operator of Partita's")
    check("cannot be read" in run("--operators", f"{work}/nowhere", "show", "one.py", code=2), "no folder")
    os.makedirs(f"{work}/links")
    os.symlink(f"{work}/ops/mylib.scale_add.default.py", f"{work}/links/mylib.scale_add.default.py")
    check("no file of this folder" in run("--operators", f"{work}/links", "show", "one.py", code=2), "a link")

assert not wrong, "\n".join(map(str, wrong))

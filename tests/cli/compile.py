#!/usr/bin/env python3
"""Libraries of `partita compile` run from C and from Python: results, gradients, guards, refusals.
compile.py PARTITA SOURCE_DIR"""
import json, os, random, re, shutil, struct, subprocess, sys, tempfile, threading

partita, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
try:
    import numpy
except ImportError:
    print("skipped: there is no numpy")
    sys.exit(77)
for tool in ("cc", "c++"):
    if not shutil.which(tool):
        print(f"skipped: there is no {tool}")
        sys.exit(77)
sys.dont_write_bytecode = True
sys.path.insert(0, f"{source}/resources/library")
from partita_model import Model, PartitaError, read_safetensors

MLP, IO = f"{source}/resources/samples/mlp/program.pt2", f"{source}/resources/samples/mlp/io.safetensors"
# Rows of two tensors are joined, so that the guard of the example says nothing of other sizes.
DYNAMIC = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 6][6, 1]cpu", y: "f32[s1, 6][6, 1]cpu"):
        cat: "f32[s0 + s1, 6][6, 1]cpu" = torch.ops.aten.cat.default([x, y])
        sigmoid: "f32[s0 + s1, 6][6, 1]cpu" = torch.ops.aten.sigmoid.default(cat)
        sum_1: "f32[6][1]cpu" = torch.ops.aten.sum.dim_IntList(sigmoid, [0])
        return (sigmoid, sum_1)
'''
EQUAL = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 6][6, 1]cpu", y: "f32[s1, 6][6, 1]cpu"):
        add: "f32[s0, 6][6, 1]cpu" = torch.ops.aten.add.Tensor(x, y)
        return (add,)
'''
# The range of a size begins at 0, as that of torch.export's Dim(max=16).
RANGES = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, s1][s1, 1]cpu", y: "f32[s0, 1][1, 1]cpu"):
        add: "f32[s0, s1][s1, 1]cpu" = torch.ops.aten.add.Tensor(x, y)
        return (add,)

Range constraints: {s0: VR[0, 16], s1: VR[1, int_oo]}
'''
DIVIDED = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 6][6, 1]cpu"):
        view: "f32[4, (s0//4), 6][6*((s0//4)), 6, 1]cpu" = torch.ops.aten.view.default(x, [4, -1, 6])
        relu: "f32[4, (s0//4), 6][6*((s0//4)), 6, 1]cpu" = torch.ops.aten.relu.default(view)
        return (relu,)
'''
NUMBERS = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 4][4, 1]cpu"):
        sin: "f32[s0, 4][4, 1]cpu" = torch.ops.aten.sin.default(x)
        sym_size_int: "Sym(s0)" = torch.ops.aten.sym_size.int(x, 0)
        return (sin, 3, 2.5, True, None, sym_size_int)
'''
# As torch.export writes a Dim 2*n.
MULTIPLE = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2*s0, 6][6, 1]cpu"):
        view: "f32[2, s0, 6][6*s0, 6, 1]cpu" = torch.ops.aten.view.default(x, [2, -1, 6])
        sum_1: "f32[s0, 6][6, 1]cpu" = torch.ops.aten.sum.dim_IntList(view, [0])
        return (sum_1,)
'''
# With two rows a part of the roll has one.
ROLLED = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 6][6, 1]cpu"):
        roll: "f32[s0, 6][6, 1]cpu" = torch.ops.aten.roll.default(x, [1], [0])
        sin: "f32[s0, 6][6, 1]cpu" = torch.ops.aten.sin.default(roll)
        return (sin,)
'''
BUFFER = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu"):
        add_: "f32[4][1]cpu" = torch.ops.aten.add_.Tensor(x, 1)
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(x, 2)
        return (mul,)
'''
EVALUATED = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[5, 5][5, 1]cpu"):
        linalg_det: "f32[][]cpu" = torch.ops.aten.linalg_det.default(x)
        return (linalg_det,)
'''
REGION = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu", p: "b8[][]cpu"):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,))
        getitem: "f32[4][1]cpu" = cond[0]
        return (getitem,)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[4][1]cpu"):
            sin: "f32[4][1]cpu" = torch.ops.aten.sin.default(arg0_1)
            return (sin,)

    class false_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[4][1]cpu"):
            cos: "f32[4][1]cpu" = torch.ops.aten.cos.default(arg0_1)
            return (cos,)
'''
# What depends on a weight only is computed when the library is loaded, and for the weights that are loaded.
FOLDED = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 4][4, 1]cpu", p_w: "f32[4, 3][3, 1]cpu"):
        exp: "f32[4, 3][3, 1]cpu" = torch.ops.aten.exp.default(p_w)
        sum_1: "f32[1, 3][3, 1]cpu" = torch.ops.aten.sum.dim_IntList(exp, [0], True)
        div: "f32[4, 3][3, 1]cpu" = torch.ops.aten.div.Tensor(exp, sum_1)
        mm: "f32[s0, 3][3, 1]cpu" = torch.ops.aten.mm.default(x, div)
        return (mm, sum_1)
'''
# Two sizes that values decide, and what is computed of them.
BY_VALUES = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 6][6, 1]cpu", p_w: "f32[6][1]cpu"):
        mul: "f32[s0, 6][6, 1]cpu" = torch.ops.aten.mul.Tensor(x, p_w)
        gt: "b8[s0, 6][6, 1]cpu" = torch.ops.aten.gt.Scalar(mul, 0)
        masked_select: "f32[u0][1]cpu" = torch.ops.aten.masked_select.default(mul, gt)
        exp: "f32[u0][1]cpu" = torch.ops.aten.exp.default(masked_select)
        le: "b8[u0][1]cpu" = torch.ops.aten.le.Scalar(exp, 1.5)
        nonzero: "i64[u1, 1][1, u1]cpu" = torch.ops.aten.nonzero.default(le)
        view: "i64[u1][1]cpu" = torch.ops.aten.view.default(nonzero, [-1])
        index: "f32[u1][1]cpu" = torch.ops.aten.index.Tensor(exp, [view])
        mul_1: "f32[u1][1]cpu" = torch.ops.aten.mul.Tensor(index, 2)
        sum_1: "f32[6][1]cpu" = torch.ops.aten.sum.dim_IntList(mul, [0])
        return (exp, mul_1, sum_1)
'''
# The window that the code after the call needs is not in all sizes.
WINDOW = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[64][1]cpu"):
        nonzero: "i64[u0, 1][1, u0]cpu" = torch.ops.aten.nonzero.default(x)
        add: "i64[u0, 1][1, u0]cpu" = torch.ops.aten.add.Tensor(nonzero, 1)
        roll: "i64[u0, 1][1, 1]cpu" = torch.ops.aten.roll.default(add, [1], [0])
        return (roll,)
'''
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def near(a, b, what, bound=1e-5):
    check(a.shape == b.shape and numpy.allclose(a, b, bound, bound), f"{what}: {a} and {b}")


def compiled(*words, codes=(0,), env=None):
    done = subprocess.run([partita, "compile", *words], capture_output=True, text=True, env={**os.environ, **(env or {})})
    check(done.returncode in codes, f"compile {words}: exit {done.returncode}, {done.stderr}")
    return done.stdout + done.stderr


def refused(call, *parts):
    try:
        call()
        check(False, f"nothing was refused that should name {parts}")
    except PartitaError as error:
        check(all(part in str(error) for part in parts), f"{error} does not name {parts}")


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": t.shape, "data_offsets": [len(data), len(data) + t.nbytes]}
        data += t.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def with_text(name, text):
    open(f"{name}.py", "w").write(text)
    return f"{name}.py"


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    os.environ["PARTITA_STORE"] = f"{work}/store.sqlite"
    io = read_safetensors(IO)
    told = compiled(MLP, "-o", "mlp.so")
    check("avx512" in told or "baseline" in told, told)
    if wrong:
        sys.exit("\n".join(wrong))
    model = Model("mlp.so")
    inputs = [io[f"input.{i}"] for i in range(len(model.inputs))]
    for i, result in enumerate(model.run(*inputs)):
        near(result, io[f"output.{i}"], f"output {i} of mlp")
    check([v.name for v in model.outputs] == ["output.0", "output.1"], f"{model.outputs}")
    x, target = inputs
    name = model.inputs[0].name
    refused(lambda: model.run(x.astype("f8"), target), name, "float64", "float32")
    refused(lambda: model.run(x[0], target), name, "1 dimensions")
    refused(lambda: model.run(x[:, :-1], target), name, f"size {x.shape[1] - 1} in dimension 1")
    refused(lambda: model.run(x), "1 inputs", "2")
    refused(lambda: model.run(x, target * 0 + 1000), "1000", "out of bounds")
    near(model.run(numpy.asfortranarray(x), target)[1], io["output.1"], "other strides")
    refused(lambda: model.forward(x, target), "--train")
    refused(lambda: model.weight(0), "--train")

    # Every instruction set that this processor has.
    for isa in ("baseline", "avx2", "avx512"):
        script = f"import sys; sys.path.insert(0, '{source}/resources/library'); sys.dont_write_bytecode = True\n" \
                 "from partita_model import *\n" \
                 f"m = Model('mlp.so'); io = read_safetensors('{IO}')\n" \
                 "print(m.isa, numpy.abs(m.run(io['input.0'], io['input.1'])[1] - io['output.1']).max() < 1e-5)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              env={**os.environ, "PARTITA_ISA": isa})
        if os.uname().machine == "x86_64":
            check(done.stdout.split()[1:] == ["True"], f"PARTITA_ISA={isa}: {done.stdout}{done.stderr}")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "PARTITA_ISA": "mmx"})
    check("mmx" in done.stderr, f"PARTITA_ISA=mmx: {done.stderr}")

    # Nothing but the interface is exported.
    names = subprocess.run(["nm", "-D", "--defined-only", "mlp.so"], capture_output=True, text=True).stdout
    exported = re.findall(r" [TDBRVW] (\S+)", names)
    check(exported and all(n.startswith("partita_") and "Error" not in n for n in exported), f"exports {exported}")

    # From C.
    subprocess.run(["cc", "-Wall", "-Werror", "-I.", f"{source}/resources/library/run.c", "-o", "run", "./mlp.so"], check=True)
    printed = subprocess.run(["./run"], capture_output=True, text=True)
    ones = model.run(numpy.ones_like(x), numpy.ones_like(target))[0]
    check(printed.returncode == 0 and "output.0 [" in printed.stdout, f"run: {printed.stdout}{printed.stderr}")
    found = re.search(r"output\.0 \[.*\] (\S+)", printed.stdout)
    check(found and abs(float(found[1]) - float(ones)) < 1e-4, f"run: {printed.stdout}, and in Python {ones}")

    # Threads that use one model wait for one another.
    found = [None] * 4

    def many(k):
        for _ in range(20):
            found[k] = model.run(x + k, target)[1]

    model.c.partita_set_threads(model.handle, 2)
    threads = [threading.Thread(target=many, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        near(found[k], model.run(x + k, target)[1], f"thread {k}")
    model.close()

    # Damaged bytes in what a library says of its model, and in its programs: an error, or what was there.
    good, chance = open("mlp.so", "rb").read(), random.Random(1)
    places = [m.start() for m in re.finditer(rb"PT[LP]\d", good) if m.start() % 64 == 0]
    os.mkdir("damaged")
    check(len(places) >= 2, f"there is a description and a program: {places}")
    for _ in range(40):
        bad = bytearray(good)
        for _ in range(chance.choice((1, 2, 8))):
            bad[chance.choice(places) + chance.randrange(700)] = chance.randrange(256)
        open("damaged/mlp.so", "wb").write(bad)
        done = subprocess.run(["../run"], cwd="damaged", capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        check(done.returncode in (0, 1), f"damaged: {done.returncode} {done.stderr}")

    # Gradients, and a step of training.
    compiled(MLP, "-o", "train.so", "--train", "--isa", "avx2,baseline")
    model = Model("train.so")
    results, saved = model.forward(*inputs)
    near(results[0], io["output.0"], "the forward of training")
    gradients = model.backward(saved)
    expected = {n: t for n, t in io.items() if n.startswith("grad.")}
    check(expected and all(n in gradients for n in expected if not n.startswith("grad.input")),
          f"gradients {list(gradients)}, expected {list(expected)}")
    for n, t in expected.items():
        if n in gradients:
            near(gradients[n], t, n, 1e-4)
    which = next(i for i, v in enumerate(model.weights) if f"grad.{v.name}" in gradients)
    model.weight(which)[...] -= numpy.float32(0.1) * gradients[f"grad.{model.weights[which].name}"]
    check(not numpy.array_equal(model.run(*inputs)[0], results[0]), "a step of training changes nothing")
    model.close()

    # Sizes that may change, and those that may not.
    compiled(with_text("dynamic", DYNAMIC), "-o", "dynamic.so", "--isa", "avx2,baseline")
    model = Model("dynamic.so")
    check(model.inputs[0].sizes == ["s0", 6] and model.outputs[0].sizes == ["s0 + s1", 6], f"{model.inputs}")
    for rows, more in ((2, 2), (3, 70), (70, 3), (33, 33), (1000, 2)):
        x, y = numpy.random.rand(rows, 6).astype("f4"), numpy.random.rand(more, 6).astype("f4")
        both = 1 / (1 + numpy.exp(-numpy.concatenate([x, y])))
        found = model.run(x, y)
        near(found[0], both, f"{rows} and {more} rows")
        near(found[1], both.sum(0), f"sums of {rows} and {more} rows", 1e-4)
    for rows, more in ((1, 33), (33, 1), (1, 1), (0, 7), (7, 0), (1, 0), (0, 0), (5, 5), (0, 1)):
        x, y = numpy.random.rand(rows, 6).astype("f4"), numpy.random.rand(more, 6).astype("f4")
        both = 1 / (1 + numpy.exp(-numpy.concatenate([x, y])))
        found = model.run(x, y)
        near(found[0], both, f"{rows} and {more} rows")
        near(found[1], both.sum(0), f"sums of {rows} and {more} rows", 1e-4)
    refused(lambda: model.run(x[:, :5], y), "x", "dimension 1")
    model.close()

    # What inference decides by sizes is a guard.
    compiled(with_text("equal", EQUAL), "-o", "equal.so", "--isa", "baseline")
    model = Model("equal.so")
    x, y = numpy.random.rand(5, 6).astype("f4"), numpy.random.rand(4, 6).astype("f4")
    for rows in (5, 1, 0):
        near(model.run(x[:rows], x[:rows])[0], x[:rows] + x[:rows], f"{rows} and {rows} rows")
    refused(lambda: model.run(x[:1], y), "Eq(s0, s1)", "s0 = 1", "s1 = 4")
    refused(lambda: model.run(x, y), "Eq(s0, s1)", "s0 = 5", "s1 = 4")
    model.close()
    compiled(with_text("ranges", RANGES), "-o", "ranges.so", "--isa", "baseline")
    model = Model("ranges.so")
    wide, column = numpy.random.rand(17, 7).astype("f4"), numpy.random.rand(17, 1).astype("f4")
    for rows, columns in ((0, 1), (1, 1), (0, 7), (1, 7), (16, 1), (16, 7)):
        near(model.run(wide[:rows, :columns], column[:rows])[0], wide[:rows, :columns] + column[:rows], f"{rows} by {columns} in ranges")
    refused(lambda: model.run(wide, column), "s0, size 0 of input x, is 17", "takes 0 to 16")
    refused(lambda: model.run(wide[:2, :0], column[:2]), "s1, size 1 of input x, is 0", "takes 1 and more")
    model.close()
    compiled(with_text("divided", DIVIDED), "-o", "divided.so", "--isa", "baseline")
    model = Model("divided.so")
    for rows in (8, 24, 100):
        x = numpy.random.rand(rows, 6).astype("f4")
        near(model.run(x)[0], x.reshape(4, -1, 6), f"{rows} rows in four parts")
    refused(lambda: model.run(y), "s0 = 4")
    refused(lambda: model.run(x[:9]), "Mod(s0, 4)", "s0 = 9")
    model.close()

    compiled(with_text("rolled", ROLLED), "-o", "rolled.so", "--isa", "avx2,baseline")
    model = Model("rolled.so")
    x = numpy.random.rand(9, 6).astype("f4")
    for rows in (9, 2, 1, 0, 3, 2):
        near(model.run(x[:rows])[0], numpy.sin(numpy.roll(x[:rows], 1, 0)), f"{rows} rows, rolled")
    model.close()

    compiled(with_text("multiple", MULTIPLE), "-o", "multiple.so", "--isa", "baseline")
    model = Model("multiple.so")
    for rows in (8, 2, 0, 4, 6):
        near(model.run(x[:rows])[0], x[:rows].reshape(2, rows // 2, 6).sum(0), f"the halves of {rows} rows")
    refused(lambda: model.run(x), "size 9 in dimension 0", "2*s0")
    model.close()

    # Results that are no tensors.
    compiled(with_text("numbers", NUMBERS), "-o", "numbers.so", "--isa", "baseline")
    model = Model("numbers.so")
    found = model.run(numpy.ones((5, 4), "f4"))
    check([str(v) for v in model.outputs[1:]] ==
          ["output.1: i8[]", "output.2: f8[]", "output.3: bool[]", "output.4: None[]", "output.5: i8[]"], f"{model.outputs}")
    check([v if v is None else (v.dtype.str[1:], v.item()) for v in found[1:]] ==
          [("i8", 3), ("f8", 2.5), ("b1", True), None, ("i8", 5)], f"{found}")
    model.close()

    # An input that the model writes.
    compiled(with_text("buffer", BUFFER), "-o", "buffer.so", "--isa", "baseline")
    model = Model("buffer.so")
    x = numpy.arange(4, dtype="f4")
    near(model.run(x)[0], numpy.arange(1, 5) * numpy.float32(2), "what is made of a written input")
    near(x, numpy.arange(1, 5, dtype="f4"), "a written input")
    model.close()

    # Calls that only an evaluation does come with the operators.
    told = compiled(with_text("evaluated", EVALUATED), "-o", "evaluated.so", "--isa", "baseline")
    check("evaluated" in told, told)
    model = Model("evaluated.so")
    x = numpy.random.rand(5, 5).astype("f4")
    near(model.run(x)[0], numpy.float32(numpy.linalg.det(x)), "an evaluation", 1e-4)
    model.close()

    # Sub graphs are interpreted.
    told = compiled(with_text("region", REGION), "-o", "region.so", "--isa", "baseline")
    check("cond" in told, told)
    model = Model("region.so")
    x = numpy.random.rand(4).astype("f4")
    for p, f in ((True, numpy.sin), (False, numpy.cos)):
        near(model.run(x, numpy.array(p))[0], f(x), f"a branch for {p}")
    model.close()

    # Sizes that values decide: such a call is interpreted, and what follows has code of its own.
    weights = numpy.array([1, -2, 3, -4, 5, -6], "f4")
    write_safetensors("weights.safetensors", {"param.w": weights})
    told = compiled(with_text("by_values", BY_VALUES), "--inputs", "weights.safetensors", "-o", "by_values.so", "--isa",
                    "avx2,baseline", "--json")
    told = json.loads(told)
    check([line.split()[0] for line in told["evaluated"][:2]] == ["masked_select", "nonzero"] and told["kernels"] >= 3, f"{told}")
    model = Model("by_values.so")
    for rows in (5, 2, 40, 1, 0, 300):
        x = numpy.random.rand(rows, 6).astype("f4") - numpy.float32(0.5)
        x[:1] = 0
        found, product = model.run(x), x * weights
        exp = numpy.exp(product[product > 0])
        near(found[0], exp, f"what is positive of {rows} rows")
        near(found[1], exp[exp <= 1.5] * 2, f"what is small of {rows} rows")
        near(found[2], product.sum(0), f"the sum of {rows} rows", 1e-4)
    model.close()
    compiled(with_text("window", WINDOW), "-o", "window.so", "--isa", "baseline")
    model = Model("window.so")
    for count in (64, 7, 2, 1, 0):
        x = numpy.zeros(64, "f4")
        x[:count] = 1
        near(model.run(x)[0], numpy.roll(numpy.arange(1, count + 1).reshape(count, 1), 1, 0), f"{count} positions")
    model.close()
    told = compiled(with_text("by_values", BY_VALUES), "--inputs", "weights.safetensors", "-o", "trained.so", "--train",
                    "--isa", "baseline", codes=(3,))
    check("size" in told and not os.path.exists("trained.so"), told)

    # Weights beside the library.
    compiled(MLP, "-o", "beside.so", "--weights", "beside", "--isa", "baseline")
    check(os.path.getsize("beside.so") < os.path.getsize("mlp.so"), "the weights are still inside")
    model = Model("beside.so")
    near(model.run(*inputs)[0], io["output.0"], "weights beside")
    model.close()
    os.rename("beside.safetensors", "elsewhere.safetensors")
    refused(lambda: Model("beside.so"), "beside.safetensors")
    model = Model("beside.so", "elsewhere.safetensors")
    near(model.run(*inputs)[0], io["output.0"], "weights elsewhere")
    model.close()
    refused(lambda: Model("mlp.so", IO), "there is no")

    weights = numpy.arange(12, dtype="f4").reshape(4, 3) / 10
    write_safetensors("weights.safetensors", {"param.w": weights})
    write_safetensors("others.safetensors", {"w": weights[::-1].copy() * 2})
    counts = {}
    for folding in ("true", "false"):
        told = compiled(with_text("folded", FOLDED), "--inputs", "weights.safetensors", "-o", "folded.so", "--isa",
                        "baseline", "--config", f"use_runtime_constant_folding={folding}", "--json")
        counts[folding] = json.loads(told)["folded"]
        for file, w in ((None, weights), ("others.safetensors", weights[::-1] * 2)):
            model = Model("folded.so", file)
            check([v.name for v in model.inputs] == ["x"], f"{model.inputs}")
            for rows in (3, 1, 0, 9, 3):
                x = numpy.random.rand(rows, 4).astype("f4")
                found = model.run(x)
                near(found[0], x @ (numpy.exp(w) / numpy.exp(w).sum(0)), f"folding {folding}, {file}, {rows} rows")
                near(found[1], numpy.exp(w).sum(0, keepdims=True), f"folding {folding}, {file}, the sum")
            model.close()
    check(counts["true"] > 0 and counts["false"] == 0, f"folded: {counts}")

    # A machine without oneDNN.
    open("without.so", "wb").write(open("mlp.so", "rb").read().replace(b"libdnnl.so", b"libnone.so"))
    refused(lambda: Model("without.so"), "libnone.so", "install the package libdnnl2")

    # What a library cannot have is named.
    told = compiled(MLP, "-o", "no/such/folder/x.so", codes=(2,))
    check("no/such/folder" in told, told)

    told = compiled(MLP, "-o", "-", codes=(2,))
    check("standard output" in told and not os.path.exists("-"), told)

    # A linker that is missing.
    told = compiled(MLP, "-o", "none.so", "--isa", "baseline", codes=(2,), env={"CXX": "no-such-compiler"})
    check("no-such-compiler" in told and not os.path.exists("none.so"), told)

if wrong:
    sys.exit("\n".join(wrong))

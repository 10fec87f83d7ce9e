#!/usr/bin/env python3
"""Graphs of DTensors run on all ranks together: a tensor-parallel step gives what the whole matrices give, and that of a
log what PyTorch's own joint graph in the same log gives. dtensor.py PARTITA SOURCE_DIR"""
import json, os, random, struct, subprocess, sys, tempfile

partita, source = os.path.abspath(sys.argv[1]), sys.argv[2]
corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus") + "/ranks/logs/tp"
SKIPPED = 77
wrong = []
random.seed(1)


def check(holds, what):
    if not holds:
        wrong.append(what)


def write(path, tensors, metadata):
    """Tensors as (sizes, numbers)."""
    header, data = {"__metadata__": metadata}, b""
    for key, (sizes, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}f", *numbers)
        header[key] = {"dtype": "F32", "shape": sizes, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for key, t in json.loads(data[8:8 + size]).items():
        if key != "__metadata__":
            begin, end = (8 + size + at for at in t["data_offsets"])
            out[key] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return out


def some(rows, columns):
    return [[random.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(column) for column in zip(*a)]


def flat(a):
    return ([len(a), len(a[0])], [x for row in a for x in row])


PLACEMENT = "torch.distributed.tensor.placement_types"
GRAPH = f"""class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 2][2, 1]cpu", L_mesh_ : torch.distributed.device_mesh.DeviceMesh, L_w_: "DTensor(f32[3, 2][2, 1]cpu, S(0))", L_v_: "DTensor(f32[2, 3][3, 1]cpu, S(1))"):
        l_x_ = L_x_
        l_mesh_ = L_mesh_
        l_w_ = L_w_
        l_v_ = L_v_
        # File: /home/me/model.py:3 in forward, code: d = DTensor.from_local(x, mesh)
        d: "DTensor(f32[4, 2][2, 1]cpu, R)" = torch.distributed.tensor._api.from_local(l_x_, l_mesh_, ({PLACEMENT}.Replicate(),), run_check = False)
        # File: /home/me/model.py:4 in forward, code: h = linear(d, w)
        h: "DTensor(f32[4, 3][3, 1]cpu, S(1))" = torch._C._nn.linear(d, l_w_, None)
        # File: /home/me/model.py:5 in forward, code: o = linear(h, v)
        o: "DTensor(f32[4, 2][2, 1]cpu, P(sum))" = torch._C._nn.linear(h, l_v_, None)
        p: "DTensor(f32[4, 2][2, 1]cpu, R)" = o.redistribute(placements = ({PLACEMENT}.Replicate(),), async_op = True)
        y: "f32[4, 2][2, 1]cpu" = p.to_local()
        return (y,)
"""

with tempfile.TemporaryDirectory() as work:
    env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite"}

    def run(*words, code=0):
        done = subprocess.run([partita, *words], capture_output=True, text=True, env=env, timeout=300)
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        return done.stdout + done.stderr

    def near(path, key, expected, what):
        found = read(path).get(key)
        same = found and len(found) == len(expected) and all(abs(a - b) < 1e-4 for a, b in zip(found, expected))
        check(same, f"{what}: {key} is {found}, not {expected}")

    # Three columns on two ranks: two and one.
    x, w, v, tangent = some(4, 2), some(3, 2), some(2, 3), some(4, 2)
    hidden = product(x, turned(w))
    back = product(tangent, v)
    of_x, of_w, of_v = product(back, w), product(turned(back), x), product(turned(tangent), hidden)
    for rank, own in enumerate((slice(0, 2), slice(2, 3))):
        os.makedirs(f"{work}/job/rank_{rank}")
        open(f"{work}/job/rank_{rank}/dynamo.py", "w").write(GRAPH)
        inputs = {"input.0": flat(x), "input.2": flat(w[own]), "input.3": flat([row[own] for row in v]),
                  "tangent.0": flat(tangent)}
        write(f"{work}/job/rank_{rank}/dynamo.safetensors", inputs,
              {"requires_grad": json.dumps([k for k in inputs if k != "tangent.0"])})
    for words in ([], ["--train"], ["--backend", "cpu"], ["--backend", "cpu", "--train"]):
        run("run", f"{work}/job", "--ranks", "-o", f"{work}/out", *words)
        for rank, own in enumerate((slice(0, 2), slice(2, 3))):
            path, what = f"{work}/out/rank_{rank}/dynamo.safetensors", f"rank {rank} {words}"
            near(path, "output.0", flat(product(hidden, turned(v)))[1], what)
            if "--train" in words:
                near(path, "grad.input.0", flat(of_x)[1], what)
                near(path, "grad.input.2", flat(of_w[own])[1], what)
                near(path, "grad.input.3", flat([row[own] for row in of_v])[1], what)
    run("compare", f"{work}/job", "--ranks", "--train", "--backends", "interp,cpu")
    check("1 collective, all match" in run("query", f"{work}/job", "collectives"), "the collectives of the job")

    # The rank is the one in the file's name: of a mesh of two, the last has the last columns.
    part = GRAPH.replace("Replicate(),), async_op", "Shard(dim=1),), async_op").replace("4, 2][2, 1]cpu, R)\" = o.", "4, 2][2, 1]cpu, S(1))\" = o.")
    part = part.replace('y: "f32[4, 2][2, 1]cpu"', 'y: "f32[4, 1][1, 1]cpu"').replace('L_x_: "f32[4, 2]', 'L_x_: "f32[4, 2]')
    open(f"{work}/part_rank_1.py", "w").write(part)
    says = run("query", f"{work}/part_rank_1.py", "collectives")
    check("reduce_scatter" in says, f"the collectives of one rank: {says}")
    run("export", f"{work}/part_rank_1.py", "-o", f"{work}/part.pt2")

    # One text alone does not say how many ranks its mesh has.
    text = f"{work}/job/rank_1/dynamo.py"
    check("--ranks fake:N" in run("aot", text, "-o", f"{work}/aot", code=2), "what to do without the mesh")
    check("grad.input.2" in run("run", text, "--ranks", "fake:2", "--train", "--inputs",
                                f"{work}/job/rank_1/dynamo.safetensors"), "a rank alone")

    # Placements that the text prints otherwise.
    open(f"{work}/moved.py", "w").write(GRAPH.replace("P(sum))\" = torch._C", "R)\" = torch._C"))
    says = run("run", f"{work}/moved.py", "--ranks", "fake:2", "--random-weights", "1", code=3)
    check("P(sum) here, and is R in PyTorch" in says, says)
    check("model.py:5" in says, f"the line of {says}")

    if not os.path.isdir(corpus):
        print("\n".join(wrong) or "no corpus: the log was not run")
        sys.exit(1 if wrong else SKIPPED)

    # The log of a real job: the same as the joint graph that PyTorch made of it, to the bit.
    sizes = {0: (4, 32), 2: (64, 32), 3: (64, 1), 4: (32, 64), 5: (32, 1), 6: (64, 32), 7: (64, 1), 8: (32, 64), 9: (32, 1)}
    values = {i: [random.uniform(-.3, .3) for _ in range(r * c)] for i, (r, c) in sizes.items()}
    shape = {i: [r] if c == 1 else [r, c] for i, (r, c) in sizes.items()}
    own = {f"input.{i}": (shape[i], values[i]) for i in sizes}
    goal = ([4, 32], [random.uniform(-1, 1) for _ in range(128)])
    write(f"{work}/dynamo.st", {**own, "tangent.0": goal},
          {"requires_grad": json.dumps([k for k in own if k != "input.0"])})
    # Behind each DTensor, PyTorch's inputs have its mesh.
    joint = {"input.0": own["input.0"], **{f"input.{2 * i - 2}": own[f"input.{i}"] for i in sizes if i}}
    write(f"{work}/joint.st", {**joint, "input.18": goal}, {"other": "{}"})
    run("run", corpus, "--ranks", "--graph", "dynamo", "--train", "--inputs", f"{work}/dynamo.st", "-o", f"{work}/ours")
    run("run", corpus, "--ranks", "--graph", "joint", "--inputs", f"{work}/joint.st", "-o", f"{work}/theirs")
    for rank in (0, 1):
        ours = read(f"{work}/ours/rank_{rank}/dynamo.safetensors")
        theirs = read(f"{work}/theirs/rank_{rank}/joint.safetensors")
        check(ours["output.0"] == theirs["output.0"], f"rank {rank}: the output")
        for i in sizes:
            if i:
                check(ours[f"grad.input.{i}"] == theirs[f"output.{2 * i - 1}"], f"rank {rank}: the gradient of input.{i}")
    check("2 collectives, all match" in run("query", corpus, "collectives", "--graph", "dynamo"), "the log's collectives")

print("\n".join(wrong))
sys.exit(1 if wrong else 0)

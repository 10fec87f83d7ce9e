#!/usr/bin/env python3
"""Random programs on DTensors, compiled by dynamo and run by gloo: each rank's results and gradients are those that
`partita run --ranks --train` finds from dynamo's graph, or the program is refused by name.
dtensors_as_gloo.py PARTITA SOURCE_DIR [PROGRAMS]"""
import json, os, random, struct, subprocess, sys, tempfile

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
except ImportError:
    print("no torch")
    sys.exit(77)

N = 8
UNARY = [torch.tanh, torch.relu, torch.sigmoid, F.gelu, F.silu, torch.exp, torch.neg, torch.abs, lambda v: v * v,
         lambda v: v.clamp(-1, 1)]
BINARY = [torch.add, torch.mul, torch.sub, torch.maximum]


def step(v, o, kind, a, b):
    """One operator on a matrix of N by N, with another one; a and b choose."""
    dim = int(b * 2)
    return {
        "unary": lambda: UNARY[int(a * len(UNARY))](v),
        "binary": lambda: BINARY[int(a * len(BINARY))](v, o),
        "mm": lambda: (v @ o) / 4,
        "transposed mm": lambda: (v.t() @ o) / 4,
        "linear": lambda: F.linear(v, o, o[0]) / 4,
        "sum": lambda: v + v.sum(dim, keepdim=True) / N,
        "mean": lambda: v - v.mean(dim, keepdim=True),
        "softmax": lambda: torch.softmax(v, dim),
        "layer_norm": lambda: F.layer_norm(v, (N,)),
        "transpose": lambda: v.transpose(0, 1),
        "cat": lambda: torch.cat([v, o], dim)[:N, :N],
        "reshape": lambda: v.reshape(N, 2, N // 2).transpose(1, 2).reshape(N, N),
    }[kind]()


KINDS = ["unary", "binary", "mm", "transposed mm", "linear", "sum", "mean", "softmax", "layer_norm", "transpose", "cat",
         "reshape", "redistribute"]


def program(seed, mesh):
    """A function of this rank's tensors, and these. Ranks that hold the same of a tensor have the same numbers."""
    rng, dims, inputs, placements = random.Random(seed), mesh.ndim, [], []
    for i in range(rng.choice([2, 3])):
        own = [rng.choice([Replicate(), Replicate(), Partial(), Shard(0), Shard(1)]) for _ in range(dims)]
        if dims > 1 and own[0] == own[1] and own[0].is_shard():
            own[1] = Replicate()
        sizes = [N, N]
        for d, p in enumerate(own):
            if p.is_shard():
                sizes[p.dim] //= mesh.size(d)
        differs = sum((c + 1) * 10**d for d, (c, p) in enumerate(zip(mesh.get_coordinate(), own)) if not p.is_replicate())
        torch.manual_seed(seed * 100 + i * 31 + differs)
        inputs.append(torch.randn(*sizes).requires_grad_())
        placements.append(own)
    steps = [(rng.choice(KINDS), rng.random(), rng.random()) for _ in range(rng.choice([2, 3, 4]))]

    def function(*xs):
        ds = [DTensor.from_local(x, mesh, p, run_check=False) for x, p in zip(xs, placements)]
        v = ds[0]
        for kind, a, b in steps:
            if kind == "redistribute":
                to = [Replicate() if q < .4 else Shard(0) if q < .7 else Shard(1) for q in (a, b)][:dims]
                if dims > 1 and to[0] == to[1]:
                    to[1] = Replicate()
                v = v.redistribute(placements=to)
            else:
                v = step(v, ds[1 + int(a * (len(ds) - 1))], kind, a, b)
        return v.to_local()

    return function, inputs


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for key, t in tensors.items():
        t = t.detach().contiguous()
        header[key] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [len(data), len(data) + 4 * t.numel()]}
        data += t.numpy().tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def compiled(seed, mesh):
    """Dynamo's text, and the values of a step."""
    from torch._dynamo.backends.common import aot_autograd
    torch._dynamo.reset()
    function, xs = program(seed, mesh)
    seen = {}
    inner = aot_autograd(fw_compiler=lambda gm, _: gm)

    def backend(gm, example):
        seen["text"] = gm.print_readable(print_output=False, include_stride=True, include_device=True)
        made = inner(gm, example)

        def run(*args):
            seen["args"] = args
            return made(*args)
        return run

    y = torch.compile(function, backend=backend, fullgraph=True)(*xs)
    given = {i: v for i, v in enumerate(seen["args"]) if isinstance(v, torch.Tensor)}
    torch.manual_seed(seed)
    tangent = torch.randn(y.shape)
    gradients = torch.autograd.grad([y], list(given.values()), [tangent], allow_unused=True)
    values = {f"input.{i}": v for i, v in given.items()} | {"tangent.0": tangent, "output.0": y}
    values |= {f"grad.input.{i}": g for i, g in zip(given, gradients) if g is not None}
    return seen["text"], values, json.dumps([f"input.{i}" for i in given])


def work(rank, shape, programs, out):
    torch.set_num_threads(1)
    world = torch.Size(shape).numel()
    dist.init_process_group("gloo", rank=rank, world_size=world, init_method=f"file://{out}/meet{len(shape)}")
    mesh = init_device_mesh("cpu", shape)
    for seed in range(programs):
        try:
            made = compiled(seed, mesh)
        except Exception:
            made = None  # PyTorch refuses some programs
        all_made = [None] * world
        dist.all_gather_object(all_made, made is not None)
        if not all(all_made):
            continue
        folder = f"{out}/{len(shape)}_{seed}/rank_{rank}"
        os.makedirs(folder)
        open(f"{folder}/dynamo.py", "w").write(made[0])
        write(f"{folder}/dynamo.safetensors", made[1], {"requires_grad": made[2]})
        if rank == 0:
            json.dump({"ranks": world, "mesh": list(shape)}, open(f"{out}/{len(shape)}_{seed}/case.json", "w"))
    dist.destroy_process_group()


def main():
    partita, programs = os.path.abspath(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 12
    right, refused, wrong = 0, 0, []
    with tempfile.TemporaryDirectory() as out:
        env = {**os.environ, "PARTITA_STORE": f"{out}/store.sqlite"}
        for shape in ((2,), (2, 2)):
            mp.start_processes(work, args=(shape, programs, out), nprocs=torch.Size(shape).numel(), start_method="fork")
        for case in sorted(name for name in os.listdir(out) if os.path.isdir(f"{out}/{name}")):
            done = subprocess.run([partita, "compare", f"{out}/{case}", "--ranks", "--train", "--backends", "stored,interp"],
                                  capture_output=True, text=True, env=env, timeout=120)
            right += done.returncode == 0
            refused += done.returncode == 3
            if done.returncode not in (0, 3):
                wrong.append(f"{case}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print("\n".join(wrong) or f"{right} programs right, {refused} refused")
    sys.exit(1 if wrong or right < programs else 0)


if __name__ == "__main__":
    main()

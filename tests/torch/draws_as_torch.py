#!/usr/bin/env python3
"""`partita run --seed N` draws, bit for bit, the numbers that eager PyTorch draws on the CPU after torch.manual_seed(N).

  draws_as_torch.py PARTITA SOURCE_DIR [NAME]      exit 0 same numbers, 1 not, 77 PyTorch is not installed
"""
import os, subprocess, sys, tempfile, warnings

try:
    import torch
    from safetensors.torch import load_file, save_file
    from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
    from torch.fx.experimental.proxy_tensor import make_fx
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)

torch.set_num_threads(1)
warnings.simplefilter("ignore")  # about ranges that a half type cannot hold
aten = torch.ops.aten
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SIZES = ((), (0,), (1,), (7,), (15,), (16,), (17,), (3, 5), (33, 31))


def uniform():
    return [torch.rand(s, dtype=t) for s in SIZES for t in (*FLOATS, torch.complex64, torch.complex128)]


def normal():
    return [torch.randn(s, dtype=t) for s in SIZES for t in (*FLOATS, torch.complex64, torch.complex128)]


def odd_normals():
    """Normal numbers are made in pairs: the second one is kept for the next draw."""
    return [torch.randn(n, dtype=t) for n in (1, 3, 16, 2, 5) for t in FLOATS] + [torch.randn(5)]


def integers():
    out = [torch.randint(a, b, (19,), dtype=t) for a, b in ((0, 10), (-5, 6), (3, 100))
           for t in (torch.int64, torch.int32, torch.int16, torch.int8, *FLOATS)]
    out += [torch.randint(0, 2**n, (9,)) for n in (27, 28, 29, 32, 40, 62)]
    out += [torch.randint(-(2**63), 2**63 - 1, (9,)), torch.randint(0, 256, (9,), dtype=torch.uint8)]
    out += [torch.randint(0, 2, (9,), dtype=torch.bool), torch.randint(65000, 65504, (40,), dtype=torch.float16)]
    return out


def permutations():
    return [torch.randperm(n, dtype=t) for n in (0, 1, 2, 9, 1000) for t in (torch.int64, torch.int32, torch.float32)]


def like(x):
    """x has the strides of each layout in turn: numbers are drawn in the order of memory."""
    out = []
    for y in (x, x.t(), x.view(2, 5, 4, 6).permute(0, 3, 1, 2), x.view(2, 5, 4, 6).permute(3, 0, 2, 1)):
        out += [torch.rand_like(y), torch.randn_like(y), torch.randint_like(y, 7), torch.randint_like(y, 2, 9)]
        out += [torch.rand_like(y, dtype=torch.float64), torch.randn_like(y, memory_format=torch.contiguous_format)]
    return out


def filled(y):
    out = [y.uniform_(0.1, 0.7).clone(), y.normal_(1.3, 2.7).clone(), y.log_normal_(0.3, 0.7).clone()]
    out += [y.cauchy_(1.3, 2.7).clone(), y.exponential_(1.3).clone(), y.geometric_(0.3).clone()]
    out += [y.random_().clone(), y.random_(100).clone(), y.bernoulli_(0.3).clone()]
    return out + [y.bernoulli_(torch.full((y.shape[1],), 0.4)).clone()]


def fills(x):
    out = [z for t in FLOATS for z in filled(x.to(t).clone())]
    for t in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        y = torch.zeros(5, 4, dtype=t)
        out += [y.random_().clone(), y.bernoulli_(0.3).clone()]
    return out


def fills_of_views(x):
    """A compiler gets bernoulli and normal_functional instead, whose results have memory of their own;
    PyTorch's also draw in another order then."""
    return [z for t in FLOATS for y in (x.to(t).clone().t(), x.to(t).clone()[:, ::2]) for z in filled(y)]


def functional(x):
    out = []
    for t in FLOATS:
        for y in (x.to(t), x.to(t).t()):
            out += [aten.uniform(y, 0.1, 0.7), aten.normal_functional(y, 1.3, 2.7), aten.log_normal(y, 0.3, 0.7)]
            out += [aten.cauchy(y, 1.3, 2.7), aten.exponential(y, 1.3), aten.geometric(y, 0.3), aten.random(y)]
            out += [aten.bernoulli.p(y, 0.3), aten.bernoulli(y), aten.bernoulli.Tensor(y, y)]
    return out


def normals_by_tensors(x):
    y = x[:4]
    return [torch.normal(y, 0.5), torch.normal(0.5, y), torch.normal(y, y.double()), torch.normal(y[:1], y[:, :1]),
            torch.normal(1.0, 2.0, (5, 5)), torch.normal(y.double(), 2.0)]


def dropouts(x):
    out = []
    for t in FLOATS:
        y = x.to(t)
        for z in (y, y.t()):
            out += [*aten.native_dropout(z, 0.3, True), *aten.native_dropout(z, 0.3, False)]
        out += [torch.nn.functional.dropout2d(y.view(5, 8, 2, 3), 0.3, True)]
        out += [torch.nn.functional.alpha_dropout(y, 0.3, True)]
        out += [torch.nn.functional.feature_alpha_dropout(y, 0.5, True)]
    return out


def samples(x):
    out = []
    for t in (torch.float32, torch.float64, torch.bfloat16):
        p = x.to(t)
        out += [torch.multinomial(p, 5, True), torch.multinomial(p[0], 3, True), torch.multinomial(p, 1)]
        out += [torch.poisson(p), torch.poisson(p * 40), torch.poisson(p.t() * 200)]
    return out + [torch.multinomial(x, 6), torch.multinomial(x[3].double(), 6)]


def states(x):
    """An activation checkpoint runs what it draws again. The state holds the second number of a pair, too."""
    pair = torch.randn(1)
    state, kept = run_and_save_rng_state(aten.native_dropout.default, x, 0.3, True)
    state2, normal = run_and_save_rng_state(aten.randn_like.default, x[0, :3])
    again = run_with_rng_state(state, aten.native_dropout.default, x, 0.3, True)
    return [pair, state, *kept, state2, normal, torch.rand(700), *again, torch.randn(2),
            run_with_rng_state(state2, aten.randn_like.default, x[0, :3]), torch.randn(1)]


def slopes(x):
    return [torch.nn.functional.rrelu(x.to(t) - 0.5, training=True)
            for t in (torch.float32, torch.float64, torch.bfloat16)]


CASES = [uniform, normal, odd_normals, integers, permutations, like, fills, fills_of_views, functional,
         normals_by_tensors, dropouts, samples, states, slopes]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(24, 24) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.dropout(torch.relu(layer(x)), 0.5)
        return (x * torch.rand_like(x)).sum()


def run(partita, arguments, backend, seed, out):
    done = subprocess.run([partita, "run", *arguments, "--backend", backend, "--seed", str(seed), "-o", out],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr.strip()}")
    return load_file(out)


def same_bits(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = (torch.view_as_real(t) if t.is_complex() else t for t in (a.contiguous(), b.contiguous()))
    return torch.equal(a.view(-1).view(torch.uint8), b.view(-1).view(torch.uint8))


def check_draws(partita, case, seed, folder):
    x = torch.rand(10, 24, generator=torch.Generator().manual_seed(0))
    given = [x] if case.__code__.co_argcount else []
    torch.manual_seed(seed)
    text = make_fx(lambda *args: case(*args))(*given).print_readable(
        print_output=False, include_stride=True, include_device=True)
    with open(f"{folder}/graph.py", "w") as file:
        file.write(text)
    save_file({"input.0": x} if given else {}, f"{folder}/io.safetensors")
    torch.manual_seed(seed)
    expected = case(*(y.clone() for y in given))
    wrong = 0
    for backend in ("interp", "debug") if case is fills_of_views else ("interp", "debug", "cpu"):
        found = run(partita, [f"{folder}/graph.py", "--inputs", f"{folder}/io.safetensors"], backend, seed,
                    f"{folder}/out.safetensors")
        for i, value in enumerate(expected):
            value = torch.view_as_real(value) if value.is_complex() else value
            if not same_bits(found[f"output.{i}"], value):
                print(f"{case.__name__} {backend} seed {seed} output.{i}: {value.flatten()[:4]} is expected, "
                      f"{found[f'output.{i}'].flatten()[:4]} found")
                wrong += 1
    return wrong


def check_training(partita, seed, folder):
    """Dropout's masks must be eager's, and the backward must use the forward's; wrong gradients would show it."""
    torch.manual_seed(0)
    net, x = Net(), torch.randn(6, 24)
    torch.export.save(torch.export.export(net, (x,), strict=False), f"{folder}/program.pt2")
    save_file({"input.0": x}, f"{folder}/io.safetensors")
    torch.manual_seed(seed)
    loss = net(x)
    loss.backward()
    expected = {"output.0": loss.detach()} | {f"grad.{k}": p.grad for k, p in net.named_parameters()}
    wrong = 0
    for backend in ("interp", "debug", "cpu"):
        found = run(partita, [f"{folder}/program.pt2", "--inputs", f"{folder}/io.safetensors", "--train"], backend,
                    seed, f"{folder}/out.safetensors")
        for key, value in expected.items():
            if not torch.allclose(found[key], value, rtol=1e-4, atol=1e-5):
                print(f"training {backend} seed {seed} {key}: {value.flatten()[:4]}, {found[key].flatten()[:4]} found")
                wrong += 1
    return wrong


def main():
    partita, chosen = sys.argv[1], sys.argv[3:]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PARTITA_STORE"] = folder
        for seed in (0, 42, 2**40 + 3):
            for case in CASES:
                if not chosen or case.__name__ in chosen:
                    wrong += check_draws(partita, case, seed, folder)
            if not chosen or "training" in chosen:
                wrong += check_training(partita, seed, folder)
    print(f"{len(CASES)} lists of draws and a training, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

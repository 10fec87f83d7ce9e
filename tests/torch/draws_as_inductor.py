#!/usr/bin/env python3
"""`partita run --seed N` on inductor's post-grad graph draws, bit for bit, what torch.compile draws after
torch.manual_seed(N): its seeds from the CPU generator, the rest from Philox.

  draws_as_inductor.py PARTITA SOURCE_DIR      exit 0 same numbers, 1 not, 77 PyTorch or its C++ compiler is not there
"""
import os, shutil, sys, tempfile

try:
    import torch
    from safetensors.torch import save_file
except ImportError:
    print("skipped: PyTorch or safetensors is not installed")
    sys.exit(77)
if not (shutil.which("g++") or shutil.which("clang++")):
    print("skipped: torch.compile needs a C++ compiler")
    sys.exit(77)

from draws_as_torch import run, same_bits

texts = []


def draw(x):
    return [torch.rand(5, 7), torch.randn_like(x), torch.randint(3, 100, (9,)), torch.randint(0, 2**40, (4,)),
            torch.nn.functional.dropout(x, 0.5), torch.rand(3, dtype=torch.float64), torch.rand_like(x.t()),
            torch.randn(2, 3, 4, dtype=torch.bfloat16), torch.bernoulli(x, 0.3)]


def main():
    partita, wrong = sys.argv[1], 0
    torch._inductor.config.post_grad_custom_post_pass = lambda graph: texts.append(
        graph.owning_module.print_readable(print_output=False, include_stride=True, include_device=True))
    x = torch.rand(4, 24, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(draw)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PARTITA_STORE": folder, "PARTITA_PYTHON": sys.executable}
        save_file({"input.0": x}, f"{folder}/io.safetensors")
        for seed in (0, 42, 2**40 + 3):
            torch.manual_seed(seed)
            expected = compiled(x)
            with open(f"{folder}/graph.py", "w") as file:
                file.write(texts[-1])
            for backend in ("interp", "debug", "cpu", "torch:inductor", "torch:eager"):
                found = run(partita, [f"{folder}/graph.py", "--inputs", f"{folder}/io.safetensors"], backend, seed,
                            f"{folder}/out.safetensors")
                for i, value in enumerate(expected):
                    same = same_bits(found[f"output.{i}"], value)
                    if backend == "torch:eager" and value.is_floating_point():  # its logarithm is not the C library's
                        same = torch.allclose(found[f"output.{i}"], value, rtol=1e-6, atol=1e-6)
                    if not same:
                        print(f"{backend} seed {seed} output.{i}: {value.flatten()[:4]} is expected, "
                              f"{found[f'output.{i}'].flatten()[:4]} found")
                        wrong += 1
    print(f"{len(expected)} draws, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

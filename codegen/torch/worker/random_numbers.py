"""Lets eager draw what inductor's C++ code draws for inductor's own random operators.

Inductor puts them into a graph in the place of ATen's (torch/_inductor/fx_passes/replace_random.py): seeds from the
generator, and numbers that are functions of a seed and a place (torch/csrc/inductor/cpp_prefix.h).  What PyTorch does
when they are called eagerly draws other numbers, which would make every graph of dropout differ.
"""

import math
import warnings

import torch

NAMES = ("inductor_seed", "inductor_seeds", "inductor_random", "inductor_randint")
_library = None


def is_of_inductor(target):
    """Is it one of those operators?"""
    return str(target).startswith(tuple(f"prims.{name}." for name in NAMES))


def are_of_gpu(graph):
    """Are its seeds drawn on a GPU, whose kernels make other numbers of them?"""
    return any("cuda" in str(argument) for n in graph.nodes if is_of_inductor(n.target)
               for argument in (*n.args, *n.kwargs.values()))  # fmt: skip


def has_any(module):
    return any(n.op == "call_function" and is_of_inductor(n.target)
               for m in module.modules() if isinstance(m, torch.fx.GraphModule) for n in m.graph.nodes)  # fmt: skip


def philox(seed, size):
    """The first two of the four 32-bit numbers of Philox4x32-10 (Salmon et al. 2011) for each place of a size, whose
    row-major position is the counter.  The key is the low half of the seed."""
    mask = 0xFFFFFFFF
    count = math.prod(size)
    a, b, c, d = torch.arange(count), *(torch.zeros(count, dtype=torch.int64) for _ in range(3))
    k, m = int(seed) & mask, 0
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57  # the 64 bits are right, whatever the sign
        a, b, c, d = (y >> 32 & mask) ^ b ^ k, y & mask, (x >> 32 & mask) ^ d ^ m, x & mask
        k, m = (k + 0x9E3779B9) & mask, (m + 0xBB67AE85) & mask
    return a.reshape(size), b.reshape(size)


def unit(bits):
    """Numbers in [0, 1) of 31 bits."""
    return (bits & 0x7FFFFFFF).to(torch.float32) * 4.6566127342e-10


def seeds(count, device):
    """On a CPU lowered to a randint of all int64 numbers (RandomSeeds in torch/_inductor/ir.py)."""
    limits = torch.iinfo(torch.int64)
    if torch.device(device).type != "cpu":
        return torch.randint(limits.max, [count], device=device)  # what PyTorch does
    return torch.empty([count], dtype=torch.int64).random_(limits.min, limits.max)


def seed(device):
    return seeds(1, device)[0]


def random(size, seed, mode, *, offset=0):
    if mode not in ("rand", "randn") or offset != 0:
        raise NotImplementedError(f"inductor_random with mode {mode!r} and offset {offset}")
    bits = philox(seed, size)
    if mode == "rand":
        return unit(bits[0])
    u, v = (1 - unit(b) for b in bits)
    return ((-2.0 * u.log()).sqrt().double() * (2.0 * math.pi * v.double()).cos()).float()


def randint(low, high, size, seed, *, offset=0):
    first, second = philox(seed, size)
    drawn = first | second << 32
    # The remainder of an unsigned number: 2^64 is added where the sign bit says so.
    wide = high - low
    rest = torch.remainder(drawn, wide) + torch.where(drawn < 0, 2**64 % wide, 0)
    return (torch.remainder(rest, wide) + low)


def install():
    """Replaces what the operators do in eager, in this process.  On a GPU inductor draws other numbers by Triton."""
    global _library
    import torch._inductor.inductor_prims  # registers them

    if _library is not None:
        return
    _library = torch.library.Library("prims", "IMPL")
    functions = {"inductor_seed": seed, "inductor_seeds": seeds, "inductor_random": random, "inductor_randint": randint}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that something is replaced is what is wanted
        for name, function in functions.items():
            _library.impl(name, function, "BackendSelect" if "seed" in name else "CPU", allow_override=True)

"""How far a value may be from the truth: the rules in numbers.

The arguments dg, de are errors of the judged value and of eager's, g, e, t
the judged value, eager's and the truth, all in double precision.
"""

from __future__ import annotations

import torch

RMS_RATIO = 2.0
BIAS_Z = 8.0
PEAK_RATIO = 4.0
TAIL_RATIO = 3.0
SINGLE = 2.0 ** -23  # the step of single precision


def step(dtype: torch.dtype) -> float:
    """Distance from 1 to the next number of a floating type."""
    if dtype.is_complex:
        dtype = torch.empty(0, dtype=dtype).real.dtype
    return torch.finfo(dtype).eps


def tail_is_worse(got, g, e, t, fine, slack) -> bool:
    """Whether the elements that do not fill a vector are much further off than
    eager's there and than eager's everywhere: a fault of the tail of a loop,
    which is too small a part to show in the whole."""
    if got.is_complex():
        return False
    scale_all = rms(t[fine])
    relative = rms((e - t)[fine]) / (scale_all + 1e-300)
    for mask in _tails(got):
        part = mask & fine
        if int(part.sum()) < 4:
            continue
        scale = rms(t[part])
        base = max(rms((e - t)[part]), relative * scale)
        floor = slack * (step(got.dtype) / 2 + 8 * min(step(got.dtype), SINGLE)) * max(scale, scale_all)
        if rms(error(g, e, t)[part]) > TAIL_RATIO * slack * base + floor:
            return True
    return False


def _tails(got: torch.Tensor) -> list[torch.Tensor]:
    """Masks of what is left over when rows, or all of a dense tensor, are cut into vectors."""
    masks, seen = [], set()
    dims = [d for d in range(got.dim()) if got.size(d) > 1]
    if not dims:
        return masks
    inner = min(dims, key=got.stride)
    for width in (8, 16, 32):
        rest = got.size(inner) % width
        if 0 < rest < got.size(inner) and rest not in seen:
            seen.add(rest)
            mask = torch.zeros(got.shape, dtype=torch.bool)
            mask.narrow(inner, got.size(inner) - rest, rest).fill_(True)
            masks.append(mask)
        rest = got.numel() % width
        if got.is_contiguous() and len(dims) > 1 and 0 < rest < got.numel():
            mask = torch.zeros(got.numel(), dtype=torch.bool)
            mask[-rest:] = True
            masks.append(mask.view(got.shape))
    return masks


def error(g, e, t) -> torch.Tensor:
    """Distance to the truth or to eager, whichever is nearer: at a jump of
    the function (floor, a comparison) either side is right."""
    to_truth, to_eager = g - t, g - e
    return torch.where(to_eager.abs() < to_truth.abs(), to_eager, to_truth)


def rms(x: torch.Tensor) -> float:
    return float((x * x).mean().sqrt())


def broken_rule(dg, de, size, dtype, slack, loose) -> tuple[str, float, float]:
    """The three rules on errors that are all finite.

    Each has a floor, so that an eager value that happens to be exact does
    not make every other rounding a fault.  Kernels compute 16-bit types in
    single precision and round once; their vectorised functions (erf, exp)
    may be some steps of single precision off where eager's are nearly exact.
    """
    eps, fine = step(dtype), min(step(dtype), SINGLE)
    scale = rms(size)
    tiny = 1e-300 + eps * 1e-30
    floor = slack * (eps / 2 + 4 * fine) * scale + tiny
    err, base = rms(dg), rms(de)
    ratio = err / max(base, floor / RMS_RATIO)
    worst = float((dg.abs() / (size + scale + tiny)).max())
    worst_eager = float((de.abs() / (size + scale + tiny)).max())
    count = dg.numel()
    bias, bias_eager = float(dg.mean()), float(de.mean())
    spread = float(dg.std()) if count > 1 else 0.0
    z = abs(bias) / (spread / count ** 0.5 + tiny) if count >= 16 else 0.0
    biased = (z > BIAS_Z * loose and abs(bias) > 2 * loose * abs(bias_eager) and abs(bias) > floor and err > base)
    if err > loose * RMS_RATIO * base + floor:
        return "rms", ratio, z
    if biased:
        return "bias", ratio, z
    if worst > loose * (PEAK_RATIO * worst_eager + slack * (eps + 16 * fine)):
        return "peak", ratio, z
    return "ok", ratio, z

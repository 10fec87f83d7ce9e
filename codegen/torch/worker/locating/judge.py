"""The rule that tells a wrong value from a differently rounded one.

A buffer that inductor wrote is compared with what eager PyTorch gives for
the same node and with the same node computed in double precision (the
truth).  Rounding alone makes a buffer about as far from the truth as eager
is; a fault makes it much further, or biased, or far off in a few places.
Nothing here knows about inductor: only tensors come in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from .rules import PEAK_RATIO, SINGLE, broken_rule, error, rms, step, tail_is_worse


@dataclass
class Verdict:
    """What the comparison of one tensor gave.

    kind is "ok", or the first rule that the value broke: "dtype", "shape",
    "nan", "inf", "rms", "bias", "peak", "tail", "integer", or "out_of_bounds".  doubtful is set when there
    was no double to compare with, so that the tolerance is a guess.
    """

    kind: str = "ok"
    ratio: float = 0.0
    z: float = 0.0
    error: float = 0.0
    wrong: int = 0
    total: int = 0
    first: list[dict[str, Any]] = field(default_factory=list)
    doubtful: bool = False
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.kind == "ok"

    def as_json(self) -> dict[str, Any]:
        """The verdict as plain data; numbers that JSON lacks become text."""
        return {
            "kind": self.kind,
            "rms_ratio": plain(self.ratio),
            "z": plain(self.z),
            "error": plain(self.error),
            "wrong": self.wrong,
            "total": self.total,
            "first_wrong": self.first,
            "doubtful": self.doubtful,
            "note": self.note,
        }


def plain(value: Any) -> Any:
    """A Python number that JSON can hold; NaN and infinities as text."""
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return repr(value)
        return float("%.6g" % value)
    return value


def real(t: torch.Tensor) -> torch.Tensor:
    """The tensor as float64 with complex numbers as pairs of reals."""
    t = t.detach()
    if t.is_complex():
        t = torch.view_as_real(t.resolve_conj().to(torch.complex128))
    return t.to(torch.float64)


def exact_kind(dtype: torch.dtype) -> bool:
    """True for types whose values are compared bit by bit."""
    return not (dtype.is_floating_point or dtype.is_complex)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True when two tensors of one dtype and shape hold equal values, NaN
    counting as equal to NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if torch.equal(a, b):
        return True
    if exact_kind(a.dtype):
        return False
    return torch.equal(torch.nan_to_num(real(a)), torch.nan_to_num(real(b))) and torch.equal(
        torch.isnan(a), torch.isnan(b))


def first_wrong(got: torch.Tensor, want: torch.Tensor, bad: torch.Tensor) -> list[dict[str, Any]]:
    """The first four places where bad is set, with both values."""
    rows = []
    for index in torch.nonzero(bad)[:4].tolist():
        at = tuple(index)
        rows.append({"index": index, "got": plain(got[at].item()), "want": plain(want[at].item())})
    return rows


def judge(got: torch.Tensor, eager: torch.Tensor, truth: Optional[torch.Tensor],
          defined: Optional[torch.Tensor] = None, loose: float = 1.0) -> Verdict:
    """Compares a value with eager's and with the truth.

    defined marks the elements that have a defined value (others come from
    uninitialised memory).  loose multiplies all thresholds; it is above 1
    where errors of a whole graph have added up.
    """
    if got.dtype != eager.dtype:
        return Verdict("dtype", note=f"{got.dtype} instead of {eager.dtype}")
    if tuple(got.shape) != tuple(eager.shape):
        return Verdict("shape", note=f"{list(got.shape)} instead of {list(eager.shape)}")
    if got.numel() == 0 or same_bits(got, eager):
        return Verdict(total=got.numel())
    if exact_kind(got.dtype):
        return _judge_exact(got, eager, truth, defined)
    return _judge_float(got, eager, truth, defined, loose)


def _judge_exact(got, eager, truth, defined) -> Verdict:
    """Integers and booleans: each element must be eager's or the truth's."""
    bad = got != eager
    if truth is not None and tuple(truth.shape) == tuple(got.shape):
        bad &= got != truth.to(got.dtype)
    if defined is not None:
        bad &= defined
    count = int(bad.sum())
    if count == 0:
        return Verdict(total=got.numel())
    farthest = float((real(got) - real(eager)).abs()[bad].max())
    return Verdict("integer", error=farthest, wrong=count, total=got.numel(), first=first_wrong(got, eager, bad),
                   doubtful=truth is None)


def _masks(g, e, t, usable) -> Optional[tuple[str, torch.Tensor]]:
    """The elements that are NaN or infinite on one side only.  A value may
    follow eager or the truth rounded to its own type."""
    for kind, test in (("nan", torch.isnan), ("inf", torch.isinf)):
        bad = (test(g) != test(e)) & (test(g) != test(t)) & usable
        if bool(bad.any()):
            return kind, bad
    flipped = torch.isinf(g) & torch.isinf(e) & torch.isinf(t) & (g != e) & (g != t) & usable
    return ("inf", flipped) if bool(flipped.any()) else None


def _judge_float(got, eager, truth, defined, loose) -> Verdict:
    """Masks first, then the mean square, the bias and the largest error."""
    doubtful = truth is None or tuple(truth.shape) != tuple(got.shape)
    g, e = real(got), real(eager)
    t = e if doubtful else real(truth)
    rounded = t if doubtful else real(truth.to(got.dtype))
    usable = torch.ones_like(g, dtype=torch.bool)
    if defined is not None:
        usable &= defined.unsqueeze(-1).expand_as(g) if got.is_complex() else defined
    masked = _masks(g, e, rounded, usable)
    if masked is not None:
        kind, bad = masked
        return Verdict(kind, wrong=int(bad.sum()), total=g.numel(), first=first_wrong(g, rounded, bad),
                       doubtful=doubtful)
    fine = torch.isfinite(g) & torch.isfinite(e) & torch.isfinite(t) & usable
    dg, de, size = error(g, e, t)[fine], (e - t)[fine], t[fine].abs()
    if dg.numel() == 0:
        return Verdict(total=g.numel())
    slack = (64.0 if doubtful else 1.0) * loose
    verdict = Verdict(*broken_rule(dg, de, size, got.dtype, slack, loose), error=float(dg.abs().max()))
    verdict.total, verdict.doubtful = g.numel(), doubtful
    if verdict.ok and tail_is_worse(got, g, e, t, fine, slack * loose):
        verdict.kind = "tail"
    if not verdict.ok:
        limit = PEAK_RATIO * step(got.dtype) * (t.abs() + rms(size)) * slack
        bad = (error(g, e, t).abs() > limit) & fine
        verdict.wrong = int(bad.sum())
        verdict.first = first_wrong(g, t, bad)
    return verdict


def within_spread(got: torch.Tensor, truth: torch.Tensor, samples: list[torch.Tensor]) -> bool:
    """Whether a value lies where rounding alone can put it.

    samples are the truth computed again with a small random error behind
    every operation.  An element is excused when it is nearer to the truth
    than 32 times the spread of the samples there (and half a step of its own
    type), or when the samples disagree about NaN, infinity or an integer.
    """
    if tuple(truth.shape) != tuple(got.shape) or not samples:
        return False
    if exact_kind(got.dtype):
        known = got == truth.to(got.dtype)
        for sample in samples:
            known |= got == sample.to(got.dtype)
            known |= sample.to(got.dtype) != truth.to(got.dtype)
        return bool(known.all())
    g, t = real(got), real(truth)
    spread = torch.zeros_like(g)
    unstable = torch.zeros_like(g, dtype=torch.bool)
    rounded = real(truth.to(got.dtype))
    for sample in samples:
        s = real(sample)
        low = real(sample.to(got.dtype))
        unstable |= torch.isfinite(s) != torch.isfinite(t)
        unstable |= torch.isfinite(low) != torch.isfinite(rounded)
        spread = torch.maximum(spread, torch.nan_to_num((s - t).abs(), nan=float("inf")))
    same = (g == rounded) | (torch.isnan(g) & torch.isnan(rounded))
    eps = step(got.dtype)
    fine_step = min(eps, SINGLE)
    excess = (g - t).abs() - 0.51 * eps * t.abs() - _smallest(got.dtype)
    near = excess <= 32 * (spread + fine_step * t.abs())
    return bool((same | near | unstable).all())


def _smallest(dtype: torch.dtype) -> float:
    """The smallest normal number of a floating type: below it a CPU may
    flush to zero."""
    if dtype.is_complex:
        dtype = torch.empty(0, dtype=dtype).real.dtype
    return torch.finfo(dtype).tiny

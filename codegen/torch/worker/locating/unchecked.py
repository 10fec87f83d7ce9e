"""Operators whose indices eager PyTorch does not check on a CPU.

With a wrong index they read or write memory that is not theirs, so two runs
differ and nothing can be judged by them.  Found by calling every operator
that takes indices with one that is out of range (torch 2.13).
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch


def wrong_index(target: Any, args: tuple, kwargs: dict[str, Any]) -> Optional[str]:
    """What is wrong with the indices that a call of an operator gets, or None."""
    schema = getattr(target, "_schema", None)
    name = schema.name.removeprefix("aten::") if schema is not None else ""
    check = _CHECKS.get(name)
    if check is None:
        return None
    given = {a.name: value for a, value in zip(schema.arguments, args)} | kwargs
    wrong = check(given)
    return f"{name}: {wrong}; PyTorch does not check this and uses memory that is not the tensor's" if wrong else None


def _outside(index: torch.Tensor, end: int, what: str) -> Optional[str]:
    if index.numel() == 0 or (int(index.min()) >= 0 and int(index.max()) < end):
        return None
    return f"{what} must lie between 0 and {end - 1}, and has {int(index.min())} to {int(index.max())}"


def _decreasing(a: dict[str, Any]) -> Optional[str]:
    offsets = a["offsets"]
    return "offsets must not decrease" if bool((offsets[1:] < offsets[:-1]).any()) else None


def _dense_gradient(a: dict[str, Any]) -> Optional[str]:
    index = a["indices"]
    return _outside(index[index != a["padding_idx"]], a["num_weights"], "an index")


def _bag_gradient(a: dict[str, Any]) -> Optional[str]:
    return _outside(a["indices"], a["num_weights"], "an index") or \
        _outside(a["offset2bag"], a["grad"].size(0), "offset2bag")


def _pooled(self: str, space: int) -> Callable[[dict[str, Any]], Optional[str]]:
    def check(a: dict[str, Any]) -> Optional[str]:
        return _outside(a["indices"], a[self].shape[-space:].numel(), "an index")
    return check


_CHECKS: dict[str, Callable[[dict[str, Any]], Optional[str]]] = {
    "_embedding_bag": _decreasing,
    "_embedding_bag_forward_only": _decreasing,
    "embedding_bag": _decreasing,
    "embedding_dense_backward": _dense_gradient,
    "_embedding_bag_dense_backward": _bag_gradient,
    "max_pool2d_with_indices_backward": _pooled("self", 2),
    "max_pool3d_with_indices_backward": _pooled("self", 3),
    "adaptive_max_pool2d_backward": _pooled("self", 2),
    "adaptive_max_pool3d_backward": _pooled("self", 3),
}

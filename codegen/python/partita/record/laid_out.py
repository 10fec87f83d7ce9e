"""Lets a recorded graph run on what it was given.

Inductor chooses how a forward's results for the backward lie in memory, and the backward was traced before that choice:
a view in it may not be one of the memory that it gets, which inductor copies without a word and eager refuses.
"""

from __future__ import annotations

import copy

import torch
from torch import fx


def runnable(gm: fx.GraphModule, inputs: list) -> fx.GraphModule:
    """The graph with reshapes in the place of views that cannot be made of what it gets; itself where there are none,
    or where that is not known.  `inputs`: fake, as they will be."""
    traced = [n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"]
    if all(_lies_alike(a, b) for a, b in zip(traced, inputs)):
        return gm
    try:
        names = _copied(gm, inputs)
    except Exception:  # what fake tensors do not run, they do not tell about
        return gm
    if not names:
        return gm
    graph = copy.deepcopy(gm.graph)
    for node in graph.nodes:
        if node.name in names:
            node.target = torch.ops.aten.reshape.default
    return fx.GraphModule(gm, graph)


def _number(value):
    """Without a guard of the program's, as a comparison of symbols would be."""
    return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value


def _lies_alike(a, b) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return True
    return [_number(n) for n in a.stride()] == [_number(n) for n in b.stride()]


class _Run(fx.Interpreter):
    """Notes the views that cannot be made."""

    def __init__(self, gm: fx.GraphModule):
        super().__init__(gm)
        self.copied: set[str] = set()

    def run_node(self, n: fx.Node):
        if n.target is not torch.ops.aten.view.default:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        try:
            return n.target(*args, **kwargs)
        except (RuntimeError, ValueError):
            self.copied.add(n.name)
            return torch.ops.aten.reshape.default(*args, **kwargs)


def _copied(gm: fx.GraphModule, inputs: list) -> set[str]:
    """By a run on other fake tensors, whose sizes are numbers."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    def fake(value):
        if not isinstance(value, torch.Tensor):
            return _number(value)
        sizes, strides = ([_number(n) for n in of] for of in (value.size(), value.stride()))
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)

    run = _Run(gm)
    with FakeTensorMode(allow_non_fake_inputs=True):
        run.run(*[fake(v) for v in inputs])
    return run.copied

"""One call of a function or a module as a recording."""

from __future__ import annotations

import contextlib

import torch


def _original(fn):
    """What was given to torch.compile."""
    if isinstance(fn, torch._dynamo.OptimizedModule):
        return fn._orig_mod
    return getattr(fn, "_torchdynamo_orig_callable", fn)


@contextlib.contextmanager
def _same_buffers(fn):
    buffers = list(fn.buffers()) if isinstance(fn, torch.nn.Module) else []
    before = [b.detach().clone() for b in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, old in zip(buffers, before):
                buffer.copy_(old)


def _tensors(tree) -> list[torch.Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _differentiate(fn, given, out) -> None:
    results = [t for t in _tensors(out) if t.requires_grad]
    sources = [t for t in _tensors(given) if t.requires_grad]
    if isinstance(fn, torch.nn.Module):
        sources += [p for p in fn.parameters() if p.requires_grad]
    if results and sources:
        torch.autograd.grad(results, sources, [torch.ones_like(t) for t in results], allow_unused=True)


def save(fn, args, path, kwargs: dict, limit) -> str:
    from . import start, stop

    fn = _original(fn)
    folder = start(path, limit=limit, per_graph=limit)
    try:
        # A backend of its own, so that what is compiled for torch.compile(fn) is neither used nor dropped.
        def inductor(gm, inputs):
            return torch._inductor.compile_fx.compile_fx(gm, inputs)

        given = torch.utils._pytree.tree_map_only(torch.Tensor, _copy, (args, kwargs))
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
        with _same_buffers(fn), torch.random.fork_rng(devices=devices):
            out = torch._dynamo.optimize(inductor)(fn)(*given[0], **given[1])
            _differentiate(fn, given, out)
    finally:
        stop()
    return folder


def _copy(t: torch.Tensor) -> torch.Tensor:
    """A leaf with the same values and strides, which the call may write to."""
    return t.detach().clone().requires_grad_(t.requires_grad)

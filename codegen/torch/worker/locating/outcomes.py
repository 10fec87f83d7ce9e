"""What one call of a program gave: results, inputs afterwards, gradients; and
whether another call of it is right.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .eager_values import SEED, copy_inputs, steady_elements
from .judge import Verdict, judge, within_spread
from .truths import ANY_FLOAT, NoDouble, to_double

LOOSE = 4.0
SAMPLES = 6
TO_FLOAT = ("float", "half", "bfloat16", "double")


@dataclass
class Outcome:
    """Results, inputs afterwards and gradients, by what they are: "output 0", "input 2 afterwards", "gradient of input 1"."""

    values: dict[str, Any] = field(default_factory=dict)
    tangents: dict[int, torch.Tensor] = field(default_factory=dict)
    writes_differentiated: bool = False  # an input that requires a gradient was written


def run(call: Callable[..., Any], inputs: list[Any], tangents: list[Any], train: bool,
        wanted: Optional[Outcome] = None) -> Outcome:
    """Calls a program on copies of the inputs.

    With train, gradients are taken of the inputs that require them, from
    tangents (by output; None: see _tangents) or those of the outcome wanted.
    """
    from .flow import flat
    torch.manual_seed(SEED)
    leaves = copy_inputs(inputs)
    for leaf, given in zip(leaves, inputs):
        if isinstance(leaf, torch.Tensor) and isinstance(given, torch.Tensor) and train and given.requires_grad:
            leaf.requires_grad_()
    with torch.set_grad_enabled(train):
        # A leaf that requires a gradient cannot be written, and the program's own may not have been one.
        mine = [_no_leaf(v) if isinstance(v, torch.Tensor) and v.requires_grad else v for v in leaves]
        versions = [v._version if isinstance(v, torch.Tensor) else 0 for v in mine]
        outputs = flat(call(*mine))
    out = Outcome({f"output {i}": v.detach() if isinstance(v, torch.Tensor) else v for i, v in enumerate(outputs)})
    for i, v in enumerate(mine):
        if isinstance(v, torch.Tensor):
            out.values[f"input {i} afterwards"] = v.detach()
    if not train:
        return out
    out.writes_differentiated = any(isinstance(v, torch.Tensor) and v.requires_grad and v._version != old
                                    for v, old in zip(mine, versions))
    outs = {i: v for i, v in enumerate(outputs) if isinstance(v, torch.Tensor) and v.requires_grad}
    out.tangents = {i: t for i, t in (wanted.tangents if wanted else _tangents(outs, tangents)).items()}
    used = [i for i in out.tangents if i in outs]
    places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor) and v.requires_grad]
    found = [None] * len(places)
    if used and places:
        found = torch.autograd.grad([outs[i] for i in used], [leaves[i] for i in places],
                                    [out.tangents[i].to(outs[i].dtype) for i in used], allow_unused=True)
    out.values.update({f"gradient of input {i}": g for i, g in zip(places, found)})
    return out


def _no_leaf(leaf: torch.Tensor) -> torch.Tensor:
    """A copy with the leaf's strides, whose gradient is the leaf's; the leaf where its elements share memory."""
    if any(stride == 0 and size > 1 for stride, size in zip(leaf.stride(), leaf.size())):
        return leaf
    return torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype).copy_(leaf)


def _tangents(outputs: dict[int, torch.Tensor], given: list[Any]) -> dict[int, torch.Tensor]:
    """By output: what is given, zero where another is given; else one for single numbers, as losses are, and random
    numbers for the others, so that no part of the backward stays unseen."""
    if any(isinstance(t, torch.Tensor) for t in given):
        return {i: given[i] if i < len(given) and isinstance(given[i], torch.Tensor) else torch.zeros_like(v)
                for i, v in outputs.items()}
    draw = torch.Generator().manual_seed(SEED)
    return {i: torch.randn(v.shape, generator=draw).to(v.dtype) if v.dim() else torch.ones_like(v)
            for i, v in outputs.items()}


class Reference:
    """A graph in eager and in double precision.  Raises what the graph raises in eager."""

    def __init__(self, module: fx.GraphModule, inputs: list[Any], tangents: list[Any], train: bool):
        from .flow import interpret
        self.inputs, self.train = inputs, train

        def call(*values: Any) -> Any:
            return interpret(module, list(values))
        self.eager = run(call, inputs, tangents, train)
        again = run(call, inputs, tangents, train, self.eager)
        self.defined = {k: mask for k, v in self.eager.values.items()
                        if (mask := steady_elements(v, again.values.get(k))) is not None}
        self.wide: Optional[fx.GraphModule] = None
        self.truth: dict[str, Any] = {}
        try:
            self.wide = doubled(module)
            self.truth = self._in_double()
        except Exception:  # not every graph has a run in double; the verdicts say so
            self.wide = None
        self.half = any(isinstance(v, torch.Tensor) and v.dtype in (torch.bfloat16, torch.float16)
                        for v in [*inputs, *self.eager.values.values()])
        self.spread: Optional[list[dict[str, Any]]] = None

    def _in_double(self) -> dict[str, Any]:
        from .flow import interpret
        wide = [to_double(v).detach().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v
                for v in self.inputs]
        return run(lambda *values: interpret(self.wide, list(values)), wide, [], self.train, self.eager).values

    def wrong(self, found: Outcome) -> list[tuple[str, Verdict]]:
        """What differs by more than rounding."""
        bad = []
        for what, want in self.eager.values.items():
            verdict = self._compare(what, found.values.get(what), want)
            if not verdict.ok:
                bad.append((what, verdict))
        return bad

    def _compare(self, what: str, got: Any, want: Any) -> Verdict:
        if not isinstance(want, torch.Tensor):
            zero = want is None and isinstance(got, torch.Tensor) and not bool(got.any())  # no gradient, or one of zeros
            same = not isinstance(got, torch.Tensor) and (got is None or got == want)
            return Verdict() if same or zero else Verdict("shape", note=f"{type(got).__name__} instead of {want!r}")
        if not isinstance(got, torch.Tensor):
            zero = got is None and not bool(want.any())
            return Verdict() if zero else Verdict("shape", note=f"{got!r} instead of a tensor")
        truth = self.truth.get(what)
        truth = truth if isinstance(truth, torch.Tensor) and truth.shape == want.shape else None
        verdict = judge(got, want, truth, self.defined.get(what), loose=LOOSE)
        if verdict.ok or truth is None or verdict.kind in ("dtype", "shape"):
            return verdict
        if within_spread(got, truth, [s[what] for s in self._samples() if isinstance(s.get(what), torch.Tensor)]):
            return Verdict(ratio=verdict.ratio, total=verdict.total, note="explained by rounding")
        return verdict

    def _samples(self) -> list[dict[str, Any]]:
        """The values in double with a small random error behind every operation."""
        if self.spread is None:
            self.spread = []
            for seed in range(SAMPLES):
                with _Noise(seed, 2.0 ** -8 if self.half else 2.0 ** -21):
                    self.spread.append(self._in_double())
        return self.spread


class _Noise(TorchDispatchMode):
    """Adds a random error to what each operation gives: of the value and of its tensor's size."""

    def __init__(self, seed: int, step: float):
        super().__init__()
        self.draw, self.step = torch.Generator().manual_seed(seed), step

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None for r in func._schema.returns) or func.namespace != "aten":
            return out
        return tree_map(self._shaken, out)

    def _shaken(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float64 or value.numel() == 0:
            return value
        draw = torch.rand(value.shape, generator=self.draw, dtype=torch.float64) * 2 - 1
        size = torch.nan_to_num(value, 0.0, 0.0, 0.0)
        return value + draw * self.step * (size.abs() + float((size * size).mean().sqrt()))


def doubled(module: fx.GraphModule) -> fx.GraphModule:
    """The graph with its tensors, and the dtypes among its arguments, in double precision."""
    wide = copy.deepcopy(module)
    for part in wide.modules():
        for name, tensor in list(part.named_buffers(recurse=False)) + list(part.named_parameters(recurse=False)):
            setattr(part, name, torch.nn.Parameter(to_double(tensor.detach()), requires_grad=False)
                    if isinstance(tensor, torch.nn.Parameter) else to_double(tensor))
        if not isinstance(part, fx.GraphModule):
            continue
        for n in part.graph.nodes:
            if n.op == "call_method" and n.target in TO_FLOAT:
                n.target, n.args = "double", n.args[:1]
            elif n.op in ("call_function", "call_method"):
                if getattr(n.target, "__name__", "") == "view.dtype" or (n.target == "view" and any(
                        isinstance(a, torch.dtype) for a in n.args)):
                    raise NoDouble(f"{n.name} reads bits")
                n.args, n.kwargs = tree_map(_wide_dtype, (n.args, n.kwargs))
        part.recompile()
    return wide


def _wide_dtype(a: Any) -> Any:
    if isinstance(a, torch.dtype):
        return torch.float64 if a in ANY_FLOAT else torch.complex128 if a == torch.complex64 else a
    return a

"""What a piece of a graph gives in double precision, and how far rounding can
move it.

Relied on: operators of torch.ops run on double tensors; dtypes among their
arguments are changed as torch._dynamo.debug_utils.cast_to_fp64 does.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import fx
from torch.fx.node import map_arg
from torch.utils._pytree import tree_map

from .eager_values import Missing, copy_of, is_empty, is_random, is_view, mutated_args, op_name

ANY_FLOAT = (torch.float16, torch.bfloat16, torch.float32)
# Functions whose vectorised forms have an absolute error, not one that shrinks with the value.
APPROXIMATE = ("erf", "erfc", "exp", "exp2", "expm1", "tanh", "sigmoid", "log", "log1p", "log2", "sin", "cos", "gelu", "silu",
               "pow", "lgamma", "digamma", "erfinv", "atan", "atan2", "asin", "acos", "sinh", "cosh", "tan")
# Operators whose results are sums of elements or products, and may be far smaller than what they add up.
ADDING = ("sum", "mean", "var_mean", "cumsum", "mm", "bmm", "addmm", "baddbmm", "dot", "mv", "addmv", "convolution",
          "convolution_backward", "scatter_add", "index_add", "index_put", "embedding_dense_backward", "avg_pool1d",
          "avg_pool2d", "avg_pool3d", "avg_pool2d_backward", "avg_pool3d_backward", "_adaptive_avg_pool2d",
          "_adaptive_avg_pool3d", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
          "max_pool2d_with_indices_backward")


class NoDouble(Exception):
    """The operator does not run in double precision."""


def to_double(value: Any) -> Any:
    """Floating tensors in double precision; all else unchanged."""
    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point and value.dtype != torch.float64:
            return value.double()
        if value.dtype == torch.complex64:
            return value.to(torch.complex128)
    return value


def double_args(node: fx.Node, args: Any) -> Any:
    """Arguments with floating dtypes replaced by torch.float64."""
    def change(a: Any) -> Any:
        if isinstance(a, torch.dtype):
            if a in ANY_FLOAT:
                return torch.float64
            if a == torch.complex64:
                return torch.complex128
        return a
    return tree_map(change, args)


def order_of(graph: fx.Graph) -> dict[fx.Node, int]:
    """Node -> place in the graph, kept with the graph as long as it has as many nodes."""
    kept = getattr(graph, "_partita_order", None)
    if kept is None or len(kept) != len(graph.nodes):
        kept = {n: i for i, n in enumerate(graph.nodes)}
        graph._partita_order = kept
    return kept


class Piece:
    """A part of a graph computed in double precision from known values.

    known maps node -> value (eager's, in its own type); evaluation starts
    there and stops at placeholders and attributes.  One Piece keeps its
    values, so that several outputs of a kernel share the work.
    """

    def __init__(self, graph: fx.Graph, values: dict[str, Any], known: set[fx.Node],
                 noise: Optional[torch.Generator] = None, noise_step: float = 2.0 ** -21):
        self.order = order_of(graph)
        self.values = values
        self.late = getattr(values, "late", {})
        self.known = known
        self.noise = noise
        self.noise_step = noise_step
        self.memo: dict[fx.Node, Any] = {}

    def inner_nodes(self, node: fx.Node) -> list[fx.Node]:
        """The nodes that must be computed for node, in graph order."""
        found: set[fx.Node] = set()
        todo = [node]
        while todo:
            n = todo.pop()
            if n in found or (n is not node and self._is_edge(n)):
                continue
            if n.op == "call_function":
                found.add(n)
                todo.extend(a for a in n.all_input_nodes if (n.name, a.name) not in self.late)
        return sorted(found, key=self.order.__getitem__)

    def _is_edge(self, n: fx.Node) -> bool:
        return n in self.known or n.op in ("placeholder", "get_attr") or is_random(n)

    def value(self, node: fx.Node) -> Any:
        """The node's value in double precision; NoDouble when it has none."""
        for n in self.inner_nodes(node):
            if n not in self.memo:
                self.memo[n] = self._run(n)
        return self.memo[node]

    def _edge_value(self, n: fx.Node) -> Any:
        value = self.values.get(n.name)
        if isinstance(value, Missing) or (value is None and n.name not in self.values):
            raise NoDouble(f"no value for {n.name}")
        return to_double(value)

    def _run(self, n: fx.Node) -> Any:
        if is_empty(n) or is_random(n):
            return self._edge_value(n)

        def load(a: fx.Node) -> Any:
            if (n.name, a.name) in self.late:
                return self._blurred(self.late[n.name, a.name])
            return self.memo[a] if a in self.memo and (a not in self.known) else self._edge_value(a)
        args, kwargs = map_arg((n.args, n.kwargs), load)
        if mutated_args(n):
            args, kwargs = tree_map(copy_of, (args, kwargs))
        self._refuse_bits(n, args)
        args, kwargs = double_args(n, (args, kwargs))
        try:
            with torch.no_grad():
                out = n.target(*args, **kwargs)
        except Exception as e:  # any operator may refuse double; the caller falls back on eager
            raise NoDouble(f"{n.name}: {type(e).__name__}: {e}") from e
        return self._shake(n, out, args, kwargs) if self.noise is not None else out

    def _blurred(self, value: Any) -> Any:
        """A value that the kernel may have computed itself: with noise, uncertain by its own type's step."""
        out = to_double(value)
        if self.noise is None or not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
            return out
        draw = torch.rand(out.shape, generator=self.noise, dtype=torch.float64) * 2 - 1
        return out * (1 + draw * torch.finfo(value.dtype).eps)

    def _refuse_bits(self, n: fx.Node, args: Any) -> None:
        """NoDouble for operators whose result depends on the bits or the
        memory layout of their argument, where a double is not the same."""
        name = getattr(n.target, "__name__", "")
        if name in ("view.dtype", "nextafter.default", "view_as_real.default", "frexp.Tensor"):
            raise NoDouble(f"{n.name}: {name} has no double")
        if name.startswith("as_strided") and n.args and isinstance(n.args[0], fx.Node):
            was, now = self.values.get(n.args[0].name), args[0]
            same = isinstance(was, torch.Tensor) and was.stride() == now.stride() and was.storage_offset() == 0 \
                and now.storage_offset() == 0
            if not same:
                raise NoDouble(f"{n.name}: as_strided of a value that is laid out otherwise in double")

    def _shake(self, n: fx.Node, out: Any, args: Any, kwargs: Any) -> Any:
        """Adds a random error of a few single-precision steps, more behind sums of many."""
        if is_view(n):
            return out
        summed = self._without_cancelling(n, args, kwargs)
        if isinstance(out, (tuple, list)):
            summed = summed or [None] * len(out)
            return tuple(self._shaken(n, o, size, args) for o, size in zip(out, summed))
        return self._shaken(n, out, summed, args)

    def _shaken(self, n: fx.Node, out: Any, summed: Optional[torch.Tensor], args: Any) -> Any:
        if not isinstance(out, torch.Tensor) or not out.dtype.is_floating_point or out.numel() == 0:
            return out
        terms = max([a.numel() for a in args if isinstance(a, torch.Tensor)] or [1])
        step = self.noise_step
        size = out.abs()
        if terms > out.numel():
            step *= (terms / out.numel()) ** 0.5
        if summed is not None:
            size = torch.maximum(size, summed.double().abs())
        if op_name(n) in APPROXIMATE:
            size = size + float((out * out).mean().sqrt())
        draw = torch.rand(out.shape, generator=self.noise, dtype=torch.float64) * 2 - 1
        return out + draw * step * size

    def _without_cancelling(self, n: fx.Node, args: Any, kwargs: Any) -> Any:
        """For what adds up products or elements, the same of the absolute values: each term rounds by its own size.
        None for other operators."""
        if op_name(n) not in ADDING:
            return None

        def magnitude(value: Any) -> Any:
            return value.abs() if isinstance(value, torch.Tensor) and value.dtype.is_floating_point else value
        return n.target(*tree_map(magnitude, args), **tree_map(magnitude, kwargs))


def samples(graph: fx.Graph, values: dict[str, Any], known: set[fx.Node], node: fx.Node,
            noise_step: float = 2.0 ** -21) -> list[torch.Tensor]:
    """The node's truth, computed several times with random rounding errors; empty when it has no double."""
    return samples_of(graph, values, known, [node], noise_step)[node]


def samples_of(graph: fx.Graph, values: dict[str, Any], known: set[fx.Node], nodes: list[fx.Node],
               noise_step: float) -> dict[fx.Node, list[torch.Tensor]]:
    """The same for several nodes, which share the work."""
    out: dict[fx.Node, list[torch.Tensor]] = {node: [] for node in nodes}
    lost: set[fx.Node] = set()
    for seed in range(6):
        piece = Piece(graph, values, known, torch.Generator().manual_seed(seed), noise_step)
        for node in out:
            value = values.get(node.name)
            many = isinstance(value, torch.Tensor) and value.numel() > 1_000_000  # many elements make up for few samples
            if node in lost or (many and seed >= 2):
                continue
            try:
                sample = piece.value(node)
            except NoDouble:
                lost.add(node)
                out[node] = []
                continue
            if isinstance(sample, torch.Tensor):
                out[node].append(sample)
    return out

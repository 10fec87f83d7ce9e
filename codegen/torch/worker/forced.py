"""Runs the generated wrapper with probes: freely, or with every buffer set to
eager's value once it has been judged.

The forced run gives each kernel right inputs, so a kernel that is wrong
there is wrong by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from torch import fx

import probe
import truths
from compiled import Compiled, Kernel
from judge import Verdict, judge, same_bits, within_spread

OVERWRITE = ("index_put", "scatter", "index_add", "index_copy", "copy", "masked_scatter", "_unsafe_index_put",
             "slice_scatter", "select_scatter", "masked_fill", "resize", "fill")


@dataclass
class Finding:
    """One buffer that a kernel left wrong."""

    kernel: str
    buffer: str
    node: str
    verdict: Verdict
    exact: bool = True                  # inductor says that the buffer is exactly this node
    unchecked_inputs: list[str] = field(default_factory=list)
    stride: tuple = ()


@dataclass
class Tally:
    """How much of a run could be judged."""

    kernels: int = 0
    judged: int = 0
    unmatched: list[str] = field(default_factory=list)
    no_double: int = 0
    excused: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"kernels": self.kernels, "buffers_judged": self.judged, "buffers_not_judged": len(self.unmatched),
                "without_double": self.no_double, "excused_by_rounding": self.excused,
                "not_judged": self.unmatched[:20]}


class Names:
    """Which node each buffer holds, before and after each kernel."""

    def __init__(self, built: Compiled):
        self.nodes = {n.name: n for n in built.post.graph.nodes}
        self.order = {name: i for i, name in enumerate(self.nodes)}
        self.buffers = {b.get_name(): b for b in built.lowering.buffers}
        self.mutators: dict[str, list[str]] = {}
        for kernel in built.kernels.values():
            for storage, buffer in kernel.writes:
                if storage != buffer:
                    self.mutators.setdefault(storage, []).append(buffer)

    def of_buffer(self, name: str) -> tuple[Optional[fx.Node], bool]:
        """The node whose value a buffer holds when its own operation has run,
        and whether inductor says so exactly."""
        buffer = self.buffers.get(name)
        if buffer is None:
            return None, False
        origin = buffer.get_origin_node() if hasattr(buffer, "get_origin_node") else None
        later = self.mutators.get(name, [])
        written_later = {n.name for b in later for n in self._origins(b)}
        if origin is not None and origin.name in self.nodes and origin.name not in written_later:
            return self.nodes[origin.name], True
        return self._base(later[0]) if later else self._guess(name)

    def creator(self, name: str) -> Optional[fx.Node]:
        """The node that the buffer was made for, before anything was written into it."""
        buffer = self.buffers.get(name)
        origin = buffer.get_origin_node() if hasattr(buffer, "get_origin_node") else None
        return self.nodes.get(origin.name) if origin is not None else None

    def _base(self, mutation: str) -> tuple[Optional[fx.Node], bool]:
        """What a buffer held before an operation wrote into it: the first argument of that operation's node."""
        node, _ = self.of_mutation(mutation)
        first = node.args[0] if node is not None and node.args else None
        return (first, False) if isinstance(first, fx.Node) else (None, False)

    def of_mutation(self, name: str) -> tuple[Optional[fx.Node], bool]:
        """The node whose value a buffer holds after an operation that wrote into it."""
        candidates = [n for n in self._origins(name) if n.op == "call_function" and (
            truths.mutated_args(n) or str(getattr(n.target, "__name__", "")).startswith(OVERWRITE))]
        return (candidates[0], False) if len(candidates) == 1 else (None, False)

    def _origins(self, name: str) -> list[fx.Node]:
        buffer = self.buffers.get(name)
        found = [self.nodes[o.name] for o in getattr(buffer, "origins", ()) if o.name in self.nodes]
        return sorted(found, key=lambda n: self.order[n.name])

    def _guess(self, name: str) -> tuple[Optional[fx.Node], bool]:
        """A buffer of one operation only, with no exact origin."""
        origins = [n for n in self._origins(name) if n.op == "call_function"]
        return (origins[0], False) if len(origins) == 1 else (None, False)


class Run(probe.Watcher):
    """A run of the wrapper.  With values it judges and forces; without, it
    only records what the wanted nodes gave."""

    def __init__(self, built: Compiled, progress: truths.Progress, values: Optional[truths.Values] = None,
                 defined: Optional[dict[str, torch.Tensor]] = None, wanted: Optional[set[str]] = None):
        self.built, self.progress = built, progress
        self.values, self.defined, self.wanted = values, defined or {}, wanted or set()
        self.storages = {b: s for k in built.kernels.values() for s, b in k.writes}
        self.names = Names(built)
        self.content: dict[str, tuple[fx.Node, torch.Tensor]] = {}
        if values is not None:
            self.content = {name: (n, values[name]) for name, n in self.names.nodes.items()
                            if n.op == "placeholder" and isinstance(values.get(name), torch.Tensor)}
        self.layout: dict[str, tuple] = {}
        self.findings: list[Finding] = []
        self.suspects: list[Finding] = []
        self.tally = Tally()
        self.recorded: dict[str, Any] = {}
        self.frontier: dict[str, set[fx.Node]] = {}
        self.overwritten: list[dict[str, str]] = []
        self.current = ""
        self.unchecked: dict[str, str] = {}
        self.known: set[fx.Node] = set()
        self.piece: Optional[truths.Piece] = None
        self.unread: list[str] = []
        self.keys: list[str] = []
        self.taken: set[tuple[str, str]] = set()

    def go(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Runs once; gives the outputs and the inputs as they are afterwards."""
        multi = {n for n, b in self.names.buffers.items() if type(b).__name__ == "MultiOutput"}
        call, keys = probe.instrumented(self.built.text, self.built.module, multi, self)
        self.tally.kernels = len(keys)
        self.keys = keys
        mine = truths.copy_inputs(inputs)
        torch.manual_seed(truths.SEED)
        with torch.no_grad():
            out = call(list(mine))
        return truths.as_list(out), mine

    # What the probes call.

    def before(self, key: str, names: dict[str, Any]) -> None:
        kernel = self.built.kernels.get(key)
        self.current = key
        self.progress(f"run {key}" + (f" ({', '.join(kernel.nodes[:12])})" if kernel else ""))
        self._start_piece(kernel, names)

    def after(self, key: str, names: dict[str, Any]) -> None:
        kernel = self.built.kernels.get(key)
        if kernel is None:
            return
        for storage, buffer in dict(kernel.writes).items():  # the last write into each storage
            value = names.get(storage)
            if isinstance(value, torch.Tensor):
                self._written(kernel, storage, buffer, value)

    def unpacked(self, name: str, value: Any) -> None:
        kernel = self.built.kernels.get(self.current) or Kernel(self.current, True)
        if isinstance(value, torch.Tensor) and (name, name) not in self.taken:
            self._written(kernel, name, name, value)

    # Judging.

    def _start_piece(self, kernel: Optional[Kernel], names: dict[str, Any]) -> None:
        """The double-precision values that this kernel can be held to: they
        start at what it reads."""
        self.unread = []
        if self.values is None or kernel is None:
            return
        self.known = set()
        for name in self._parts(kernel.reads):
            storage = self.storages.get(name, name)
            if storage in self.content:
                self.known.add(self.content[storage][0])
                self._still_there(kernel, storage, names.get(storage))
            elif storage in self.unchecked:
                self.unread.append(storage)
        self.frontier[kernel.key] = set(self.known)
        self.piece = truths.Piece(self.built.post.graph, self.values, self.known)

    def _parts(self, reads: list[str]) -> list[str]:
        """Buffers that are read, and the parts of a concatenation, which are written one by one."""
        found, todo = [], list(reads)
        while todo:
            name = todo.pop(0)
            if name not in found:
                found.append(name)
                if type(self.names.buffers.get(name)).__name__ == "ConcatKernel":
                    todo += [part.get_name() for part in self.names.buffers[name].inputs]
        return found

    def _still_there(self, kernel: Kernel, storage: str, value: Any) -> None:
        """Notices a buffer that has changed since it was written, and puts the value back."""
        node, want = self.content[storage]
        if not isinstance(value, torch.Tensor) or value.dtype != want.dtype \
                or value.shape != want.shape or same_bits(value, want):
            return
        self.overwritten.append({"buffer": storage, "node": node.name, "read_by": kernel.key})
        value.copy_(want)

    def _written(self, kernel: Kernel, storage: str, buffer: str, value: torch.Tensor) -> None:
        self.taken.add((storage, buffer))
        node, exact = self.names.of_buffer(buffer) if storage == buffer else self.names.of_mutation(buffer)
        if self.values is None:
            if node is not None and node.name in self.wanted:
                self.recorded[node.name] = truths.copy_of(value)
            return
        eager = self._eager(storage, buffer, node)
        if node is None or not isinstance(eager, torch.Tensor) or tuple(eager.shape) != tuple(value.shape):
            self._not_judged(kernel, storage, node, value, eager)
            return
        verdict = self._verdict(node, value, eager)
        self.tally.judged += 1
        self.layout[node.name] = tuple(value.stride())
        if not verdict.ok:
            found = Finding(kernel.key, buffer, node.name, verdict, exact, list(self.unread), tuple(value.stride()))
            (self.findings if exact else self.suspects).append(found)
            if not exact:
                self._not_judged(kernel, storage, node, value, eager)
                return
        self.content[storage] = (node, eager)
        self.unchecked.pop(storage, None)
        if value.dtype == eager.dtype:
            value.copy_(eager)

    def _eager(self, storage: str, buffer: str, node: Optional[fx.Node]) -> Any:
        """What eager has where the buffer was written: the node's value, or
        that of the tensor which the node wrote into."""
        if node is None:
            return None
        if storage != buffer and truths.mutated_args(node):
            owner = self.names.nodes.get(storage) or self.names.creator(storage)
            return self.values.after.get(node.name, {}).get(owner.name) if owner is not None else None
        return self.values.get(node.name)

    def _not_judged(self, kernel: Kernel, storage: str, node, value, eager) -> None:
        self.content.pop(storage, None)
        self.unchecked[storage] = kernel.key
        why = "no node is known to give it" if node is None else (
            eager.why if isinstance(eager, truths.Missing) else f"it may be {node.name}, but this is not sure")
        self.tally.unmatched.append(f"{kernel.key} {storage}: {why}")

    def _whole(self, node: fx.Node, eager: torch.Tensor) -> bool:
        """Whether the node's own result is all of the tensor that it leaves behind."""
        value = self.values.get(node.name)
        return not truths.mutated_args(node) or (isinstance(value, torch.Tensor) and value.shape == eager.shape)

    def _verdict(self, node: fx.Node, value: torch.Tensor, eager: torch.Tensor) -> Verdict:
        if same_bits(value, eager):
            return Verdict(total=value.numel())
        truth = None
        try:
            truth = self.piece.value(node) if self._whole(node, eager) else None
        except truths.NoDouble:
            self.tally.no_double += 1
        if not isinstance(truth, torch.Tensor) or truth.shape != value.shape:
            truth = None
        verdict = judge(value, eager, truth, self.defined.get(node.name))
        if verdict.ok or verdict.kind in ("dtype", "shape") or truth is None:
            return verdict
        if excused(self.built.post.graph, self.values, self.known, node, value, truth):
            self.tally.excused += 1
            return Verdict(total=value.numel(), note="explained by rounding")
        return verdict


def excused(graph: fx.Graph, values: dict[str, Any], known: set[fx.Node], node: fx.Node, value: torch.Tensor,
            truth: torch.Tensor) -> bool:
    """Whether rounding within the kernel can explain a value."""
    small = [2.0 ** -21]
    if not value.dtype.is_floating_point and not value.dtype.is_complex:
        small.append(2.0 ** -7)  # where 16-bit values were compared or converted
    for step in small[: 2 if _has_half(graph, values) else 1]:
        if within_spread(value, truth, truths.samples(graph, values, known, node, noise_step=step)):
            return True
    return False


def _has_half(graph: fx.Graph, values: dict[str, Any]) -> bool:
    return any(isinstance(v, torch.Tensor) and v.dtype in (torch.bfloat16, torch.float16) for v in values.values())

"""Runs the generated wrapper with probes: freely, or with every buffer set to
eager's value once it has been judged.

The forced run gives each kernel right inputs, so a kernel that is wrong
there is wrong by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import torch
from torch import fx

from . import eager_values
from . import probe
from . import truths
from .compiled import Compiled, Kernel, Progress
from .findings import Finding, Judged, OwnError, Tally
from .guard import Guards
from .judge import Verdict, judge, same_bits, within_spread
from .names import Names


class Run(probe.Watcher):
    """A run of the wrapper.  With values it judges and forces; without, it
    only records what the wanted nodes gave."""

    def __init__(self, built: Compiled, progress: Progress, values: Optional[eager_values.Values] = None,
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
        self.rows: list[Judged] = []
        self.tally = Tally()
        self.writer: dict[str, str] = {}
        self.guards = Guards()
        self.outside: list[Finding] = []
        self.recorded: dict[str, Any] = {}
        self.recorded_in: dict[str, str] = {}
        self.frontier: dict[str, set[fx.Node]] = {}
        self.overwritten: list[dict[str, str]] = []
        self.current = ""
        self.raised = False
        self.unchecked: dict[str, str] = {}
        self.known: set[fx.Node] = set()
        self.piece: Optional[truths.Piece] = None
        self.unread: list[str] = []
        self.keys: list[str] = []
        self.taken: set[tuple[str, str]] = set()

    def go(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Runs once; gives the outputs and the inputs as they are afterwards."""
        multi = {n for n, b in self.names.buffers.items() if type(b).__name__ == "MultiOutput"}
        call, keys = probe.instrumented(self.built.text, self.built.module, multi, self, self.guards.allocate)
        self.tally.kernels = len(keys)
        self.keys = keys
        mine = eager_values.copy_inputs(inputs)
        torch.manual_seed(eager_values.SEED)
        with torch.no_grad():
            out = call(list(mine))
        return eager_values.as_list(out), mine

    # What the probes call.

    def guarded(self, work: Any, *args: Any) -> None:
        """Does the probe's work; an error of ours must not look like the kernel's."""
        try:
            work(*args)
        except Exception as e:
            raise OwnError(f"{self.current}: {type(e).__name__}: {e}") from e

    def before(self, key: str, names: dict[str, Any]) -> None:
        kernel = self.built.kernels.get(key)
        self.current = key
        self.progress(f"run {key}" + (f" ({', '.join(kernel.nodes[:12])})" if kernel else ""))
        self.guarded(self._start_piece, kernel, names)

    def after(self, key: str, names: dict[str, Any]) -> None:
        kernel = self.built.kernels.get(key)
        if kernel is None:
            return
        self.guarded(self._look_at_guards, kernel, names)
        for storage, buffer in dict(kernel.writes).items():  # the last write into each storage
            value = names.get(storage)
            if isinstance(value, torch.Tensor) and buffer not in self.names.removed:
                self.guarded(self._written, kernel, storage, buffer, value)
        self.guarded(self._concatenations, kernel, names)

    def _look_at_guards(self, kernel: Kernel, names: dict[str, Any]) -> None:
        """Notes the buffers that the kernel wrote past the ends of."""
        for buffer in self.guards.broken():
            name = next((n for n, v in names.items() if v is buffer), "")
            written = next((b for s, b in kernel.writes if s == name), name)
            node, exact = self.names.of_buffer(written)
            self.outside.append(Finding(kernel.key, name, node.name if node is not None else "",
                                        Verdict("out_of_bounds", note="bytes outside the buffer were written"),
                                        exact, stride=tuple(buffer.stride())))

    def _concatenations(self, kernel: Kernel, names: dict[str, Any]) -> None:
        """Judges a concatenation once the last of its parts is written."""
        for _, buffer in kernel.writes:
            self.writer[buffer] = kernel.key
        for name, parts in self.names.concatenations.items():
            writers = {self.writer.get(part) for part in parts}
            if None in writers or name in self.writer or not isinstance(names.get(name), torch.Tensor):
                continue
            self.writer[name] = kernel.key
            self._written(kernel, name, name, names[name], certain=len(writers) == 1)
            for part in parts if name in self.content else ():
                self.unchecked.pop(part, None)
                self.tally.unmatched.pop(part, None)

    def unpacked(self, name: str, value: Any) -> None:
        kernel = self.built.kernels.get(self.current) or Kernel(self.current, True)
        if isinstance(value, torch.Tensor) and (name, name) not in self.taken:
            self.guarded(self._written, kernel, name, name, value)

    def touched(self, names: list[str], values: dict[str, Any]) -> None:
        """A random operator in place gives the buffer's final value; any other
        call leaves buffers of which nothing is known."""
        for name in names:
            value = values.get(name)
            if not isinstance(value, torch.Tensor):
                continue
            node, want = self.content.get(name, (None, None))
            if name in self.recorded_in:
                self.recorded[self.recorded_in[name]] = eager_values.copy_of(value)
            elif node is not None and eager_values.is_random(node) and want.dtype == value.dtype:
                value.copy_(want)
            elif self.content.pop(name, None) is not None:
                self.unchecked[name] = "a call that inductor does not number"

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
                if name not in self.content:
                    todo += self.names.concatenations.get(name, [])
        return found

    def _still_there(self, kernel: Kernel, storage: str, value: Any) -> None:
        """Notices a buffer that has changed since it was written, and puts the value back."""
        node, want = self.content[storage]
        if not isinstance(value, torch.Tensor) or value.dtype != want.dtype \
                or value.shape != want.shape or same_bits(value, want):
            return
        self.overwritten.append({"buffer": storage, "node": node.name, "read_by": kernel.key})
        value.copy_(want)

    def _written(self, kernel: Kernel, storage: str, buffer: str, value: torch.Tensor,
                 certain: bool = True) -> None:
        self.taken.add((storage, buffer))
        node, exact = self.names.of_buffer(buffer) if storage == buffer else self.names.of_mutation(buffer)
        exact = exact and certain
        if self.values is None:
            if node is not None and node.name in self.wanted:
                self.recorded[node.name] = eager_values.copy_of(value)
                self.recorded_in[storage] = node.name
            return
        eager = self._eager(storage, buffer, node)
        if isinstance(eager, (tuple, list)):
            node, eager = self._one_of(node, value)
            exact = False
        if node is None or not isinstance(eager, torch.Tensor) or tuple(eager.shape) != tuple(value.shape):
            self._not_judged(kernel, storage, buffer, node, eager)
            return
        fake = node.meta.get("val")
        told = isinstance(fake, torch.Tensor) and fake.dtype == value.dtype  # by the graph; eager does otherwise
        if value.dtype != eager.dtype and (told or self.unread):
            self._not_judged(kernel, storage, buffer, node, eager)
            return
        drawn = eager_values.is_random(node)  # its value was taken from the compiled run
        verdict = Verdict() if drawn else self._verdict(node, value, eager)
        self.tally.judged += not drawn
        if not drawn:
            self.rows.append(Judged(kernel.key, buffer, node.name, verdict))
        self.layout[node.name] = tuple(value.stride())
        if not verdict.ok:
            found = Finding(kernel.key, buffer, node.name, verdict, exact, list(self.unread), tuple(value.stride()))
            (self.findings if exact else self.suspects).append(found)
            if not exact:
                self._not_judged(kernel, storage, buffer, node, eager)
                return
        self.content[storage] = (node, eager)
        self.unchecked.pop(storage, None)
        if value.dtype == eager.dtype:
            value.copy_(eager)

    def _one_of(self, node: fx.Node, value: torch.Tensor) -> tuple[fx.Node, Any]:
        """Which of a node's several results a buffer holds: the one that it agrees with."""
        for user in node.users:
            eager = self.values.get(user.name)
            if isinstance(eager, torch.Tensor) and eager.shape == value.shape and eager.dtype == value.dtype \
                    and self._verdict(user, value, eager).ok:
                return user, eager
        return node, None

    def _eager(self, storage: str, buffer: str, node: Optional[fx.Node]) -> Any:
        """What eager has where the buffer was written: the node's value, or
        that of the tensor which the node wrote into."""
        if node is None:
            return None
        if storage != buffer and eager_values.mutated_args(node):
            owner = self.names.nodes.get(storage) or self.names.creator(storage)
            return self.values.after.get(node.name, {}).get(owner.name) if owner is not None else None
        return self.values.get(node.name)

    def _not_judged(self, kernel: Kernel, storage: str, buffer: str, node, eager) -> None:
        self.content.pop(storage, None)
        self.unchecked[storage] = kernel.key
        why = "no node is known to give it" if node is None else (
            eager.why if isinstance(eager, eager_values.Missing) else f"it may be {node.name}, but this is not sure")
        self.tally.unmatched[buffer] = f"{kernel.key}: {why}"

    def _defined(self, node: fx.Node, value: torch.Tensor) -> Optional[torch.Tensor]:
        """The elements that do not come from uninitialised memory."""
        mask = self.defined.get(node.name)
        return mask if mask is not None and mask.shape == value.shape else None

    def _whole(self, node: fx.Node, eager: torch.Tensor) -> bool:
        """Whether the node's own result is all of the tensor that it leaves behind."""
        value = self.values.get(node.name)
        return not eager_values.mutated_args(node) or (isinstance(value, torch.Tensor) and value.shape == eager.shape)

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
        verdict = judge(value, eager, truth, self._defined(node, value))
        if verdict.ok or verdict.kind in ("dtype", "shape") or truth is None:
            return verdict
        if excused(self.built.post.graph, self.values, self.known, node, value, truth):
            self.tally.excused += 1
            return replace(verdict, kind="ok", wrong=0, first=[], note="explained by rounding")
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

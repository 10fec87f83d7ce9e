"""Which node of the graph each of inductor's buffers holds.

Relied on: GraphLowering.buffers, Buffer.get_origin_node (exactly that node's
value), Buffer.origins (nodes that went into it), ConcatKernel.inputs.
"""

from __future__ import annotations

from typing import Optional

from torch import fx

from .compiled import Compiled, own_node
from .eager_values import mutated_args

OVERWRITE = ("index_put", "scatter", "index_add", "index_copy", "copy", "masked_scatter", "_unsafe_index_put",
             "slice_scatter", "select_scatter", "masked_fill", "resize", "fill")


class Names:
    """Which node each buffer holds, before and after each kernel."""

    def __init__(self, built: Compiled):
        self.nodes = {n.name: n for n in built.post.graph.nodes}
        self.order = {name: i for i, name in enumerate(self.nodes)}
        self.buffers = {b.get_name(): b for b in built.lowering.buffers}
        # Buffers that are never stored: their names may still stand for memory that is reused in place.
        self.removed = set(getattr(built.lowering, "removed_buffers", ())) | set(
            getattr(built.lowering, "inplaced_to_remove", ()))
        self.concatenations = {name: [p.get_name() for p in b.inputs] for name, b in self.buffers.items()
                               if type(b).__name__ == "ConcatKernel"}
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
        origin = own_node(buffer)
        later = self.mutators.get(name, [])
        written_later = {n.name for b in later for n in self._origins(b)}
        if origin is not None and origin.name in self.nodes and origin.name not in written_later:
            return self.nodes[origin.name], True
        return self._base(later[0]) if later else self._guess(name)

    def creator(self, name: str) -> Optional[fx.Node]:
        """The node that the buffer was made for, before anything was written into it."""
        origin = own_node(self.buffers.get(name))
        return self.nodes.get(origin.name) if origin is not None else None

    def _base(self, mutation: str) -> tuple[Optional[fx.Node], bool]:
        """What a buffer held before an operation wrote into it: the first argument of that operation's node."""
        node, _ = self.of_mutation(mutation)
        first = node.args[0] if node is not None and node.args else None
        return (first, False) if isinstance(first, fx.Node) else (None, False)

    def of_mutation(self, name: str) -> tuple[Optional[fx.Node], bool]:
        """The node whose value a buffer holds after an operation that wrote into it."""
        candidates = [n for n in self._origins(name) if n.op == "call_function" and (
            mutated_args(n) or str(getattr(n.target, "__name__", "")).startswith(OVERWRITE))]
        return (candidates[0], False) if len(candidates) == 1 else (None, False)

    def _origins(self, name: str) -> list[fx.Node]:
        buffer = self.buffers.get(name)
        found = [self.nodes[o.name] for o in getattr(buffer, "origins", ()) if o.name in self.nodes]
        return sorted(found, key=lambda n: self.order[n.name])

    def _guess(self, name: str) -> tuple[Optional[fx.Node], bool]:
        """A buffer of one operation only, with no exact origin."""
        origins = [n for n in self._origins(name) if n.op == "call_function"]
        return (origins[0], False) if len(origins) == 1 else (None, False)

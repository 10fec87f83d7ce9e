"""Cuts parts out of a graph, as modules of their own with true inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from . import eager_values
from . import truths


class Pieces:
    """Parts of one graph.  values are eager's, layout the strides that
    inductor's buffers had, where they are known."""

    def __init__(self, module: fx.GraphModule, values: eager_values.Values, layout: dict[str, tuple]):
        self.module, self.graph = module, module.graph
        self.values, self.layout = values, layout
        self.nodes = {n.name: n for n in self.graph.nodes}
        self.order = truths.order_of(self.graph)

    def in_order(self, nodes: Any) -> list[fx.Node]:
        """Nodes sorted by their place in the graph."""
        return sorted(nodes, key=self.order.__getitem__)

    def is_tensor(self, node: fx.Node) -> bool:
        """Whether the node has one tensor as value."""
        return isinstance(self.values.get(node.name), torch.Tensor)

    def computed(self, nodes: list[fx.Node]) -> list[fx.Node]:
        """The nodes with one tensor that is not merely a view and is not written in place."""
        return [n for n in nodes if self.is_tensor(n) and not eager_values.is_view(n)
                and not eager_values.mutated_args(n)]

    def between(self, known: set[fx.Node], wanted: list[fx.Node]) -> list[fx.Node]:
        """The nodes that give wanted from known, in graph order."""
        piece = truths.Piece(self.graph, self.values, known)
        return self.in_order({n for w in wanted for n in piece.inner_nodes(w)})

    def with_tuples(self, node: fx.Node) -> list[fx.Node]:
        """The node, and what it takes that is no tensor and so no input (the tuple behind a getitem)."""
        found, todo = {node}, [node]
        while todo:
            for a in todo.pop().all_input_nodes:
                if a not in found and a.op == "call_function" and isinstance(self.values.get(a.name), (tuple, list)):
                    found.add(a)
                    todo.append(a)
        return self.in_order(found)

    def cut(self, nodes: list[fx.Node], outputs: list[fx.Node]) -> tuple[fx.GraphModule, list[Any]]:
        """A module of the given nodes and its true inputs; sizes from outside become numbers."""
        graph, copies, inputs = fx.Graph(), {}, []
        inside = set(nodes)
        for n in nodes:
            for a in n.all_input_nodes:
                if a not in inside and a not in copies:
                    copies[a] = self._bring_in(graph, n, a, inputs)
        for n in nodes:
            copies[n] = _copied(graph, n, copies)
        graph.output(tuple(copies[self._tensor_of(o)] for o in outputs))
        return fx.GraphModule(self.module, _numbers_inlined(graph)), inputs

    def wrapped(self, nodes: list[fx.Node], wrap: Any) -> tuple[fx.GraphModule, list[Any]]:
        """A module that computes each node by itself between two exact
        operators: wrap(node(wrap(-input), ...)), where wrap negates.  A node
        that is wrong only when it is fused with others is wrong there.  The
        last output is a control without any of the nodes."""
        graph, inputs, outputs, control = fx.Graph(), [], [], None
        for n in nodes:
            copies = {}
            for a in n.all_input_nodes:
                count = len(inputs)
                copies[a] = holder = self._bring_in(graph, n, a, inputs)
                if len(inputs) > count and isinstance(inputs[-1], torch.Tensor) and inputs[-1].is_floating_point():
                    inputs[-1] = -inputs[-1]
                    copies[a] = wrap(graph, holder)
                    control = control or holder
            node = _copied(graph, n, copies)
            is_bool = self.values[n.name].dtype == torch.bool
            outputs.append(graph.call_function(torch.ops.aten.logical_not.default, (node,)) if is_bool
                           else wrap(graph, node))
        if control is not None:
            outputs.append(wrap(graph, wrap(graph, control)))
        graph.output(tuple(outputs))
        return fx.GraphModule(self.module, _numbers_inlined(graph)), inputs

    def _tensor_of(self, node: fx.Node) -> fx.Node:
        """The node, or what it writes to when it gives no tensor itself (a foreach operator in place)."""
        written = eager_values.mutated_args(node)
        return written[0] if written and not self.is_tensor(node) else node

    def _bring_in(self, graph: fx.Graph, reader: fx.Node, a: fx.Node, inputs: list) -> fx.Node:
        """Makes an input of a node outside the piece, with the value that its reader sees."""
        value = self.values.late.get((reader.name, a.name), self.values.get(a.name))
        if a.op == "get_attr" and not isinstance(value, torch.Tensor):
            return graph.node_copy(a)
        if value is None or isinstance(value, (eager_values.Missing, tuple, list)):
            raise truths.NoDouble(f"{a.name} has no single value")
        node = graph.placeholder(f"{a.name}_in{len(graph.nodes)}")  # a name of its own in every piece
        if isinstance(value, (int, float, bool)):
            node.meta["number"] = value
            return node
        stride = self.layout.get(a.name)
        if isinstance(value, torch.Tensor) and stride is not None and stride != value.stride():
            value = torch.empty_strided(value.shape, stride, dtype=value.dtype).copy_(value)
        inputs.append(value)
        return node


def by_neg(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The node's negation."""
    return graph.call_function(torch.ops.aten.neg.default, (node,))


def by_mul(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The node times -1, for when the negation itself may be what is wrong."""
    return graph.call_function(torch.ops.aten.mul.Tensor, (node, -1))


def _copied(graph: fx.Graph, node: fx.Node, copies: dict[fx.Node, fx.Node]) -> fx.Node:
    """A node copied into another graph, under its name where that is free."""
    out = graph.node_copy(node, lambda a: copies[a])
    out.meta = {k: v for k, v in node.meta.items() if k in ("stack_trace", "nn_module_stack")}
    return out


def _numbers_inlined(graph: fx.Graph) -> fx.Graph:
    """Replaces placeholders that stand for a size by the number, and puts the other placeholders first."""
    for n in list(graph.nodes):
        if "number" in n.meta:
            number = n.meta["number"]
            for user in list(n.users):
                user.args = fx.node.map_arg(user.args, lambda a: number if a is n else a)
                user.kwargs = fx.node.map_arg(user.kwargs, lambda a: number if a is n else a)
            graph.erase_node(n)
    holders = [n for n in graph.nodes if n.op == "placeholder"]
    other = next(n for n in graph.nodes if n.op != "placeholder")
    for n in holders:  # each moves in front of it, so that their order stays that of the inputs
        other.prepend(n)
    return graph

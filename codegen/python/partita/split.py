"""Cuts a graph into parts that the compiler takes and parts that PyTorch runs.

A node's level is one more than that of what it reads where the two are run by different ones; nodes of a level are one
part, and parts run in the order of their levels. What has an effect beside its value keeps its order: it is in no lower
level than such a node before it, and writes to inputs come last.
"""

import operator

import torch

from .graph_json import flat


def has_effect(node):
    """Does its place among other such nodes matter? Random numbers, writes, and what is not known."""
    if node.op != "call_function":
        return False
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable or draws(target) or target.namespace in ("_c10d_functional", "c10d")
    return False


def draws(target):
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def is_light(node):
    """A call that computes no tensor: a view, an item, a size."""
    if node.op != "call_function":
        return True
    target, value = node.target, node.meta.get("val")
    if isinstance(value, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    if isinstance(target, torch._ops.OpOverload):
        return target.is_view
    return not isinstance(target, torch._ops.HigherOrderOperator)


def levels(graph, refused):
    """Level by node of a call; an odd one is PyTorch's."""
    found, last_effect = {}, 0
    calls = [n for n in graph.nodes if n.op == "call_function"]
    writes = [n for n in calls if is_write(n)]
    for node in calls:
        if node in writes:
            continue
        if node.target is operator.getitem and node.args[0] in found:  # tuples stay within a part
            found[node] = found[node.args[0]]
            continue
        level = max((found[i] for i in node.all_input_nodes if i in found), default=0)
        if has_effect(node):
            level = max(level, last_effect)
        if level % 2 != (node in refused):
            level += 1
        if has_effect(node):
            last_effect = level
        found[node] = level
    end = max(found.values(), default=0)
    end += end % 2
    for node in writes:
        found[node] = end + (node in refused)
    if any(node in refused for node in writes):  # one part, so that all keep their order
        for node in writes:
            found[node] = end + 1
    return found


def is_write(node):
    return node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder"


class Part:
    """Some nodes of a graph as a module. `takes`, `gives`: names of nodes."""

    def __init__(self, root, nodes, needed, eager):
        self.eager = eager
        inside = set(nodes)
        graph = torch.fx.Graph()
        mapped, takes = {}, []

        def value(node):
            if node not in mapped:
                if node.op == "get_attr":
                    mapped[node] = graph.node_copy(node)
                else:
                    takes.append(node)
                    mapped[node] = None
            return mapped[node]

        for node in nodes:
            for given in node.all_input_nodes:
                if given not in inside:
                    value(given)
        for node in takes:
            mapped[node] = graph.placeholder(node.name)
            mapped[node].meta = dict(node.meta)
        for node in nodes:
            mapped[node] = graph.node_copy(node, lambda n: mapped[n])
        gives = [n for n in nodes if n in needed]
        graph.output(tuple(mapped[n] for n in gives))
        self.module = torch.fx.GraphModule(root, graph)
        self.takes, self.gives = [n.name for n in takes], [n.name for n in gives]


class Split:
    """Runs the parts of a module one after the other. Takes a list of arguments and returns a list of results."""

    def __init__(self, module, refused, make):
        """`make` turns a part into a function of a list."""
        graph = module.graph
        level_of = levels(graph, refused)
        output = next(n for n in graph.nodes if n.op == "output")
        order = sorted(set(level_of.values()))
        parts = []
        for level in order:
            nodes = [n for n in graph.nodes if level_of.get(n) == level]
            needed = {n for n in nodes if any(level_of.get(u, -1) != level for u in n.users)}
            parts.append(Part(module, nodes, needed, level % 2 == 1))
        self.placeholders = [n.name for n in graph.nodes if n.op == "placeholder"]
        self.attributes = {n.name: getattr_path(module, n.target) for n in graph.nodes if n.op == "get_attr"}
        self.returned = [n.name if isinstance(n, torch.fx.Node) else n for n in flat(output.args[0])]
        self.is_node = [isinstance(n, torch.fx.Node) for n in flat(output.args[0])]
        last = {}
        for i, part in enumerate(parts):
            last.update(dict.fromkeys(part.takes + part.gives, i))
        kept = {name for name, is_node in zip(self.returned, self.is_node) if is_node}
        self.steps = []
        for i, part in enumerate(parts):
            done = [name for name, at in last.items() if at == i and name not in kept]
            self.steps.append((make(part), part.takes, part.gives, done))

    def __call__(self, args):
        values = dict(zip(self.placeholders, args), **self.attributes)
        for run, takes, gives, done in self.steps:
            values.update(zip(gives, run([values[name] for name in takes])))
            for name in done:
                values.pop(name, None)
        return [values[r] if is_node else r for r, is_node in zip(self.returned, self.is_node)]


def getattr_path(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module

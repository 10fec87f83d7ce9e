"""Results that share memory: views of one value that a graph computes, and views of its arguments.

AOTAutograd makes again what a program returns as a view only where gradients are involved; elsewhere the results of a
graph have to share memory as they do in eager, since the program may write to one and read another. The compiler
returns the value that is viewed, and its views are taken of that.
"""

import operator

import torch

from .graph_json import flat
from .split import has_effect


def view_of(base, sizes, strides, distance):
    """A view of a tensor's memory, `distance` elements behind its first. It has the tensor's version counter, so that
    autograd sees a write to one of them that it must not have."""
    return base.as_strided(sizes, strides, base.storage_offset() + distance)


def viewed(node):
    """The node that a node is a view of; None when it has memory of its own."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function":
        return None
    if node.target is operator.getitem:
        return node.args[0] if viewed(node.args[0]) is not None else None
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target.is_view or not node.args:
        return None
    return node.args[0] if isinstance(node.args[0], torch.fx.Node) else None


def chain_to(node):
    """The views that make a node of the value whose memory it lies in, and that value."""
    chain = []
    while (of := viewed(node)) is not None:
        chain.append(node)
        node = of
    return chain[::-1], node


def shared_results(returned):
    """Places of results that lie in the memory of another, or are another. Not those in an argument's, which the
    compiler finds, but for as_strided."""
    chains = [chain_to(node) if isinstance(node, torch.fx.Node) else ((), None) for node in returned]
    roots = [root for _, root in chains]

    def shares(chain, root):
        if root.op == "placeholder":
            return any(view.target is torch.ops.aten.as_strided.default for view in chain)
        return roots.count(root) > 1

    return {i for i, (chain, root) in enumerate(chains) if root is not None and shares(chain, root)}


class Same:
    """A result that is an argument or one of the compiled graph's."""

    def __init__(self, of_argument, index):
        self.of_argument, self.index = of_argument, index

    def of(self, args, made):
        return (args if self.of_argument else made)[self.index]


class Fixed:
    """A result that the layouts decide: a number, None."""

    def __init__(self, value):
        self.value = value

    def of(self, args, made):
        return self.value


class Shared:
    """A result in the memory of an argument or of a result of the compiled graph."""

    def __init__(self, of_argument, index, base, value):
        self.of_argument, self.index = of_argument, index
        self.layout = tuple(value.shape), value.stride(), value.storage_offset() - base.storage_offset()

    def of(self, args, made):
        return view_of((args if self.of_argument else made)[self.index], *self.layout)


class Views:
    """Makes a module's results of those of `self.module`, which have memory of their own, and of the arguments."""

    @classmethod
    def of(cls, module):
        """None when no results share memory."""
        returned = flat(next(n for n in module.graph.nodes if n.op == "output").args[0])
        places = shared_results(returned)
        return cls(module, returned, places) if places else None

    def __init__(self, module, returned, places):
        arguments = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.makes, self.taken = [], []  # what the compiled graph returns; what the views are made of
        views, known = torch.fx.Graph(), {}

        def take(node):
            if node not in known:
                is_argument = node in arguments
                if not is_argument and node not in self.makes:
                    self.makes.append(node)
                self.taken.append((is_argument, arguments.index(node) if is_argument else self.makes.index(node)))
                known[node] = views.placeholder(node.name)
            return known[node]

        def make(node):
            chain, root = chain_to(node)
            take(root)
            for view in chain:
                for given in view.all_input_nodes:
                    if given is not viewed(view):
                        take(given)
                if view not in known:
                    known[view] = views.node_copy(view, known.__getitem__)
            return known[node]

        results = []
        for i, value in enumerate(returned):
            if i in places:
                results.append(make(value))
            else:
                results.append(take(value) if isinstance(value, torch.fx.Node) else value)
        views.output(tuple(results))
        self.views = torch.fx.GraphModule(module, views)
        self.module = torch.fx.GraphModule(module, returning(module.graph, self.makes))

    def __call__(self, args, made):
        return self.views(*((args if is_argument else made)[i] for is_argument, i in self.taken))

    def learn(self, args, made):
        """A function like this one, for calls of the same layouts, which needs no operators where that can be."""
        sources = [(True, i, a) for i, a in enumerate(args)] + [(False, i, m) for i, m in enumerate(made)]
        found = []
        for value in self(args, made):
            if not isinstance(value, torch.Tensor):
                found.append(Fixed(value))
                continue
            if (same := next((s for s in sources if s[2] is value), None)) is not None:
                found.append(Same(*same[:2]))
                continue
            if value.is_conj() or value.is_neg():
                return self
            base = next((s for s in sources if lies_in(value, s[2])), None)
            if base is None:
                return self
            found.append(Shared(*base, value))
        return lambda args, made: [result.of(args, made) for result in found]


def lies_in(value, base):
    return (
        isinstance(base, torch.Tensor) and base.layout == torch.strided and base.dtype == value.dtype
        and base.untyped_storage()._cdata == value.untyped_storage()._cdata)


def returning(graph, results):
    """The graph with other results."""
    made = torch.fx.Graph()
    known = {}
    for node in graph.nodes:
        if node.op != "output":
            known[node] = made.node_copy(node, known.__getitem__)
    made.output(tuple(known[node] for node in results))
    made.eliminate_dead_code(lambda node: node.is_impure() or has_effect(node))
    return made

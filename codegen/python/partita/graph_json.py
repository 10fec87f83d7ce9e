"""An FX graph of ATen operators as the JSON that the compiler reads (codegen/python/README.md)."""

import json
import math

import sympy
import torch
from torch.fx.graph import dtype_abbrs


class CannotWrite(Exception):
    """An argument that no graph of ATen operators has; the node is run by PyTorch."""

    def __init__(self, node, what):
        super().__init__(what)
        self.node = node


def number(value):
    return value if math.isfinite(value) else {"float": str(value)}


def target_name(node):
    """(kind, name) of a call; None for what the compiler has no word for."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return "call_operator", str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return "call_operator", f"higher_order.{target.name()}"
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if module == "_operator":
        return "call_function", f"operator.{name}"
    if module in ("builtins", "math"):
        return "call_function", f"{module}.{name}"
    if module == "torch" and name and name.startswith("sym_"):
        return "call_function", f"torch.{name}"
    return None


def annotation(value):
    """What is known of a node's value, as FX annotates it: f32[8, s0][s0, 1]cpu."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or is_wrapped(value):
            return f"a tensor of layout {value.layout}"
        sizes = ", ".join(str(s) for s in value.shape)
        strides = ", ".join(str(s) for s in value.stride())
        return f"{dtype_abbrs[value.dtype]}[{sizes}][{strides}]{value.device}"
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return f"Sym({value.node.expr})"
    if isinstance(value, bool):
        return f"Sym({int(value)})"
    if isinstance(value, (int, float)) and math.isfinite(value):
        return f"Sym({value})"
    if isinstance(value, (list, tuple)):
        return [annotation(item) for item in value]
    return None


def is_wrapped(value):
    fake = torch._subclasses.fake_tensor.FakeTensor
    return type(value) not in (torch.Tensor, torch.nn.Parameter, fake)


def example(node):
    return node.meta.get("val")


class Writer:
    """Writes one graph and its sub graphs."""

    def __init__(self, module, name):
        self.attributes = []  # the tensors that the graph reads by name
        self.symbols = {}
        self.by_values = False  # do values decide sizes or numbers?
        self.cannot = {}  # node -> why it has no JSON
        self.described = self.graph(module, name)
        self.described["symbols"] = self.symbols

    def text(self, config=()):
        return json.dumps({**self.described, "config": dict(config)}, allow_nan=False).encode()

    def graph(self, module, name):
        nodes, attributes, children = [], {}, {}
        result = None
        for node in module.graph.nodes:
            if node.op == "output":
                result = self.argument(node, flat(node.args[0]))
                continue
            described = {"op": node.op, "name": node.name, "meta": self.meta(node)}
            if node.op == "get_attr":
                described["target"] = node.name
                value = attribute(module, node.target)
                if isinstance(value, torch.Tensor):
                    attributes[described["target"]] = len(self.attributes)
                    self.attributes.append(value)
                    described["meta"] = annotation(value)
                elif isinstance(value, torch.fx.GraphModule):
                    children[described["target"]] = self.graph(value, described["target"])
                else:
                    self.cannot[node] = f"an attribute that is a {type(value).__name__}"
            elif node.op == "call_function":
                self.call(node, described)
            elif node.op != "placeholder":
                self.cannot[node] = f"a {node.op}"
            nodes.append(described)
        return {"name": name, "nodes": nodes, "output": result, "attributes": attributes, "children": children}

    def call(self, node, described):
        kind = target_name(node)
        try:
            if kind is None:
                raise CannotWrite(node, f"a call of {node.target}")
            described["op"], described["target"] = kind
            args = node.args[:1] if node.target is round and node.args[1:] == (None,) else node.args
            described["args"] = [self.argument(node, a) for a in args]
            described["kwargs"] = {k: self.argument(node, a) for k, a in node.kwargs.items()}
        except CannotWrite as refused:
            self.cannot[node] = str(refused)

    def meta(self, node):
        value = example(node)
        self.note_symbols(value)
        try:
            return annotation(value)
        except KeyError:
            return f"a tensor of {value.dtype}"

    def note_symbols(self, value):
        if isinstance(value, torch.Tensor):
            for size in (*value.shape, *value.stride()) if value.layout == torch.strided else value.shape:
                self.note_symbols(size)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.note_symbols(item)
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            shapes = value.node.shape_env
            for symbol in value.node.expr.free_symbols:
                self.by_values |= shapes is None or symbol not in hints_of(shapes)
                if shapes is not None and str(symbol) not in self.symbols:
                    self.symbols[str(symbol)] = facts_of(shapes, symbol)

    def argument(self, node, value):
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, torch.fx.Node):
            return {"node": value.name}
        if isinstance(value, float):
            return number(value)
        if isinstance(value, complex):
            return {"complex": [number(value.real), number(value.imag)]}
        for kind in ("dtype", "device", "layout", "memory_format"):
            if isinstance(value, getattr(torch, kind)):
                return {kind: str(value)}
        if isinstance(value, slice):
            return {"slice": [self.argument(node, part) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, tuple):
            return {"tuple": [self.argument(node, item) for item in value]}
        if isinstance(value, list):
            return [self.argument(node, item) for item in value]
        raise CannotWrite(node, f"an argument that is a {type(value).__name__}")


def flat(returned):
    """The values of nested lists and tuples, in order, as one tuple."""
    if not isinstance(returned, (list, tuple)):
        return (returned,)
    return tuple(value for item in returned for value in (flat(item) if isinstance(item, (list, tuple)) else (item,)))


def attribute(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def hints_of(shapes):
    values = getattr(shapes, "backed_var_to_val", None)
    return shapes.var_to_val if values is None else values


def facts_of(shapes, symbol):
    """What PyTorch knows of a symbol: an example value and a range."""
    facts = {}
    if isinstance(value := hints_of(shapes).get(symbol), (int, sympy.Integer)):
        facts["hint"] = int(value)
    if (bounds := shapes.var_to_range.get(symbol)) is not None:
        for key, bound in (("low", bounds.lower), ("high", bounds.upper)):
            if isinstance(bound, (int, sympy.Integer)) and abs(int(bound)) < 2**62:
                facts[key] = int(bound)
    return facts

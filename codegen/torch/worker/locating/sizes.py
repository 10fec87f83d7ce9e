"""Fake inputs for tracing, with symbols where the inputs hold integers.

Relied on: FakeTensorMode, ShapeEnv.create_symbol and create_symintnode,
torch._dynamo.source.ConstantSource.
"""

from __future__ import annotations

import ast
import operator
from typing import Any, Optional

import torch
from torch import fx

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
             ast.Pow: operator.pow}


def fake_inputs(module: fx.GraphModule, inputs: list[Any], use_symbols: bool = True) -> tuple[Any, list[Any]]:
    """A fake mode and one fake value for each input.

    Integers become symbols with the given value as hint.  A tensor's sizes
    are taken from placeholder.meta["dims"] (numbers, or text such as
    "2*s77" over the names in the integers' placeholder.meta["symbol"];
    a name that no integer has is a symbol of its own).
    Where that is absent, a size equal to an integer input's value (above 1)
    is taken to be that symbol.  Without use_symbols integers stay numbers.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    if not use_symbols:
        return mode, [mode.from_tensor(v.detach(), static_shapes=True) if isinstance(v, torch.Tensor) else v
                      for v in inputs]
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    symbols, by_value, fakes = {}, {}, []
    for node, value in zip(holders, inputs):
        if isinstance(value, int) and not isinstance(value, bool):
            symbol = _symbol(env, node.name, value)
            symbols[str(node.meta.get("symbol", node.name))] = symbol
            if value > 1:
                by_value.setdefault(value, symbol)
    for node, value in zip(holders, inputs):  # symbols that no integer holds, as in a part of a graph
        for text, n in zip(node.meta.get("dims") or (), getattr(value, "shape", ())):
            if isinstance(text, str) and text.isidentifier() and text not in symbols:
                symbols[text] = _symbol(env, text, n)
    for node, value in zip(holders, inputs):
        if isinstance(value, int) and not isinstance(value, bool):
            fakes.append(symbols[str(node.meta.get("symbol", node.name))])
        elif isinstance(value, torch.Tensor):
            fakes.append(_fake_tensor(mode, node, value.detach(), symbols, by_value))
        else:
            fakes.append(value)
    return mode, fakes


def _symbol(env: Any, name: str, value: int) -> Any:
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic
    source = ConstantSource(name)
    symbol = env.create_symbol(value, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None,
                               do_not_specialize_zero_one=True)
    return env.create_symintnode(symbol, hint=value, source=source)


def _fake_tensor(mode: Any, node: fx.Node, value: torch.Tensor, symbols: dict, by_value: dict) -> Any:
    dims = node.meta.get("dims")
    if dims is None:
        sizes = [by_value.get(n, n) for n in value.shape]
    else:
        sizes = [d if isinstance(d, int) else read_size(str(d), symbols) for d in dims]
        sizes = [n if s is None else s for s, n in zip(sizes, value.shape)]
    if all(isinstance(s, int) for s in sizes) or value.layout != torch.strided:
        return mode.from_tensor(value, static_shapes=True)
    strides = _strides(value, sizes)
    with mode:
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)


def _strides(value: torch.Tensor, sizes: list[Any]) -> list[Any]:
    """Strides as products of symbolic sizes where the real ones are products of the real sizes."""
    out: list[Any] = list(value.stride())
    order = sorted(range(value.dim()), key=lambda d: (value.stride(d), value.size(d) != 1, -d))
    product: Any = 1
    number = 1
    for d in order:
        if value.stride(d) == number:
            out[d] = product
            product, number = product * sizes[d], number * value.size(d)
    return out


def read_size(text: str, symbols: dict[str, Any]) -> Optional[Any]:
    """The value of a size expression; None when it holds anything but
    numbers, known symbols and arithmetic."""
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, symbols)
    except (SyntaxError, KeyError, TypeError):
        return None


def _value(tree: ast.AST, symbols: dict[str, Any]) -> Any:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    if isinstance(tree, ast.Name):
        return symbols[tree.id]
    if isinstance(tree, ast.BinOp):
        left, right = _value(tree.left, symbols), _value(tree.right, symbols)
        if isinstance(tree.op, ast.Pow) and not (isinstance(right, int) and 0 <= right <= 8):
            raise TypeError("not a size")
        return OPERATORS[type(tree.op)](left, right)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in ("Max", "Min"):
        pick = torch.sym_max if tree.func.id == "Max" else torch.sym_min
        values = [_value(a, symbols) for a in tree.args]
        out = values[0]
        for v in values[1:]:
            out = pick(out, v)
        return out
    raise TypeError("not a size")

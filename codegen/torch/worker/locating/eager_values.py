"""Eager PyTorch's value of every node of a graph.

Relied on: torch.fx.Interpreter, OpOverload._schema (is_mutable, alias_info),
torch.Tag.nondeterministic_seeded.
"""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Optional

import torch
import torch.utils.deterministic
from torch import fx
from torch.fx.node import map_arg

import random_numbers

from .unchecked import wrong_index

SEED = 1234


def op_name(node: fx.Node) -> str:
    """The operator's name without overload: "add" for torch.ops.aten.add.Tensor."""
    return getattr(node.target, "__name__", "").split(".")[0]


class Missing:
    """Stands for the value of a node that could not be computed."""

    def __init__(self, why: str):
        self.why = why


def copy_of(value: Any) -> Any:
    """A tensor copied with its strides (overlapping ones by storage), anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    try:
        spaced = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)
        return spaced.copy_(value) if not _overlaps(value) else value.clone()
    except (RuntimeError, TypeError):
        return value.clone()


def copy_inputs(inputs: Iterable[Any]) -> list[Any]:
    """Inputs for one run: each storage is copied once, so that inputs which
    share memory still do, with sizes, strides and offsets kept."""
    copies: dict[int, torch.Tensor] = {}
    out = []
    for value in inputs:
        if not isinstance(value, torch.Tensor) or type(value) is not torch.Tensor or value.is_sparse:
            out.append(copy_of(value))
            continue
        key = value.untyped_storage().data_ptr()
        if key not in copies or key == 0:
            copies[key] = value.untyped_storage().clone()
        fresh = torch.empty(0, dtype=value.dtype, device=value.device)
        fresh.set_(copies[key], value.storage_offset(), value.size(), value.stride())
        out.append(fresh)
    return out


def _overlaps(t: torch.Tensor) -> bool:
    return any(s == 0 and n > 1 for s, n in zip(t.stride(), t.size()))


def is_random(node: fx.Node) -> bool:
    """Whether the node draws from a generator."""
    if node.op != "call_function":
        return False
    if random_numbers.is_of_inductor(node.target):
        return random_numbers.are_of_gpu(node.graph)  # on a CPU eager draws them, too
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def is_empty(node: fx.Node) -> bool:
    """Whether the node's value is uninitialised memory."""
    if node.op != "call_function":
        return False
    return op_name(node) in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided",
                             "empty_permuted", "empty_quantized")


def mutated_args(node: fx.Node) -> list[fx.Node]:
    """The argument nodes that the node's operator writes to."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    found: list[fx.Node] = []
    for i, arg in enumerate(schema.arguments):
        if arg.alias_info is None or not arg.alias_info.is_write:
            continue
        value = node.args[i] if i < len(node.args) else node.kwargs.get(arg.name)
        map_arg(value, lambda n: found.append(n))
    return found


def is_view(n: fx.Node) -> bool:
    """Whether the node only names part of another tensor's memory."""
    if n.op != "call_function":
        return False
    if not hasattr(n.target, "_schema"):
        return getattr(n.target, "__name__", "") == "getitem"
    if n.target.is_view if hasattr(n.target, "is_view") else False:
        return True
    return op_name(n) in ("_unsafe_view", "reshape", "_reshape_alias", "split_with_sizes", "split")


class Values(dict):
    """Node name -> eager's value as the node gave it.

    late[reader, node] is the node's value as a later reader sees it, where
    another node has written into its memory in between.  after[writer][node]
    is the node's value when the writer has run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.late: dict[tuple[str, str], Any] = {}
        self.after: dict[str, dict[str, Any]] = {}


class Eager(fx.Interpreter):
    """Runs a graph node by node and keeps every value.

    given holds values to take instead of running the node (random draws of
    the run that is judged).  A node that raises becomes Missing, and so do
    the nodes that need it.
    Values that a later node writes to are copied before.
    """

    def __init__(self, module: fx.GraphModule, given: Optional[dict[str, Any]] = None, strict: bool = False):
        super().__init__(module, garbage_collect_values=False)
        self.values = Values()
        self.written: set[int] = set()
        self.given = given or {}
        self.strict = strict

    def run_node(self, n: fx.Node) -> Any:
        if n.name in self.given:
            value = copy_of(self.given[n.name])
        else:
            value = self._compute(n)
        if n.op != "output":
            self.values[n.name] = value
        return value

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if wrong := wrong_index(target, args, kwargs):
            raise IndexError(wrong)
        return super().call_function(target, args, kwargs)

    def _compute(self, n: fx.Node) -> Any:
        missing: list[Missing] = []
        if n.op != "output":
            map_arg((n.args, n.kwargs), lambda a: missing.append(self.env[a])
                    if isinstance(self.env[a], Missing) else None)
        if missing:
            return missing[0]
        targets = mutated_args(n)
        for target in targets:
            self._keep_old(self.env[target])
        if self.written:
            self._note_late(n)
        try:
            out = super().run_node(n)
            for target in targets:
                self._note_written(n, self.env[target])
            return out
        except Exception as e:  # whatever an operator raises is its result here
            if self.strict:
                raise
            return Missing(f"{n.name}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")

    def _keep_old(self, written: Any) -> None:
        """Copies the kept values that share memory with a tensor about to be written."""
        if not isinstance(written, torch.Tensor):
            return
        where = written.untyped_storage().data_ptr()
        for name, value in self.values.items():
            if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() == where:
                self.values[name] = copy_of(value)


    def _note_late(self, n: fx.Node) -> None:
        """Keeps the arguments whose memory has been written since they were made."""
        for a in n.all_input_nodes:
            value = self.env.get(a)
            if n.op != "output" and isinstance(value, torch.Tensor) and \
                    value.untyped_storage().data_ptr() in self.written and not mutated_args(a):
                self.values.late[n.name, a.name] = copy_of(value)

    def _note_written(self, n: fx.Node, written: Any) -> None:
        """Keeps what the tensors that own the written memory hold now."""
        if not isinstance(written, torch.Tensor):
            return
        where = written.untyped_storage().data_ptr()
        self.written.add(where)
        for node, value in self.env.items():
            if isinstance(value, torch.Tensor) and not is_view(node) and not mutated_args(node) and \
                    value.untyped_storage().data_ptr() == where:
                self.values.after.setdefault(n.name, {})[node.name] = copy_of(value)


def run_eager(module: fx.GraphModule, inputs: list[Any], given: Optional[dict[str, Any]] = None,
              strict: bool = False) -> tuple[list[Any], Values, list[Any]]:
    """Outputs, values of all nodes, and the inputs as they are afterwards."""
    torch.manual_seed(SEED)
    mine = copy_inputs(inputs)
    runner = Eager(module, given, strict)
    with torch.no_grad():
        out = runner.run(*mine)
    return as_list(out), runner.values, mine


def poisoned(module: fx.GraphModule, inputs: list[Any], given: Optional[dict[str, Any]] = None) -> tuple[list, Values]:
    """Outputs and values of a run in which uninitialised memory holds NaN, or
    the largest integer (torch.utils.deterministic.fill_uninitialized_memory)."""
    was, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs, values, _ = run_eager(module, inputs, given)
    finally:
        torch.use_deterministic_algorithms(was, warn_only=warn)
        torch.utils.deterministic.fill_uninitialized_memory = fill
    return outputs, values


def defined_elements(value: Any, poison: Any) -> Optional[torch.Tensor]:
    """A mask of the elements that do not come from uninitialised memory; None when all are fine."""
    if not isinstance(value, torch.Tensor) or not isinstance(poison, torch.Tensor) or value.shape != poison.shape \
            or value.dtype != poison.dtype or value.numel() == 0 or value.dtype == torch.bool:
        return None
    if value.dtype.is_floating_point or value.dtype.is_complex:
        bad = torch.isnan(poison) & ~torch.isnan(value)
    else:
        top = torch.iinfo(value.dtype).max
        bad = (poison == top) & (value != top)
    return ~bad if bool(bad.any()) else None


def steady_elements(value: Any, again: Any) -> Optional[torch.Tensor]:
    """A mask of the elements that two runs in eager agree on; None when all do."""
    if not isinstance(value, torch.Tensor) or not isinstance(again, torch.Tensor) or value.shape != again.shape:
        return None
    same = value == again
    if value.dtype.is_floating_point or value.dtype.is_complex:
        same |= torch.isnan(value) & torch.isnan(again)
    return None if bool(same.all()) else same


def as_list(out: Any) -> list[Any]:
    """Outputs as a flat list (a single tensor becomes a list of one)."""
    return list(out) if isinstance(out, (tuple, list)) else [out]

"""What the nodes of a graph should give: eager PyTorch's values, and the same
in double precision for a piece of the graph.

Relied on: torch.fx.Interpreter, OpOverload._schema (is_mutable, alias_info),
torch.Tag.nondeterministic_seeded.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional

import torch
from torch import fx
from torch.fx.node import map_arg
from torch.utils._pytree import tree_map

ANY_FLOAT = (torch.float16, torch.bfloat16, torch.float32)
SEED = 1234


class Missing:
    """Stands for the value of a node that could not be computed."""

    def __init__(self, why: str):
        self.why = why


class NoDouble(Exception):
    """The operator does not run in double precision."""


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
    tags = getattr(node.target, "tags", ())
    name = str(node.target)
    return torch.Tag.nondeterministic_seeded in tags or "inductor_seed" in name or "inductor_random" in name \
        or "inductor_randint" in name


def is_empty(node: fx.Node) -> bool:
    """Whether the node's value is uninitialised memory."""
    if node.op != "call_function":
        return False
    name = getattr(node.target, "__name__", "").split(".")[0]
    return name in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted",
                    "empty_quantized")


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
    the run that is judged).  fill is written into uninitialised memory.  A
    node that raises becomes Missing, and so do the nodes that need it.
    Values that a later node writes to are copied before.
    """

    def __init__(self, module: fx.GraphModule, given: Optional[dict[str, Any]] = None, fill: float = 1.0,
                 strict: bool = False):
        super().__init__(module, garbage_collect_values=False)
        self.values = Values()
        self.written: set[int] = set()
        self.given = given or {}
        self.fill = fill
        self.strict = strict

    def run_node(self, n: fx.Node) -> Any:
        if n.name in self.given:
            value = copy_of(self.given[n.name])
        else:
            value = self._compute(n)
        if is_empty(n) and isinstance(value, torch.Tensor):
            value.fill_(self.fill)
        if n.op != "output":
            self.values[n.name] = value
        return value

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
              fill: float = 1.0, strict: bool = False) -> tuple[list[Any], Values, list[Any]]:
    """Outputs, values of all nodes, and the inputs as they are afterwards."""
    torch.manual_seed(SEED)
    mine = copy_inputs(inputs)
    runner = Eager(module, given, fill, strict)
    with torch.no_grad():
        out = runner.run(*mine)
    return as_list(out), runner.values, mine


def as_list(out: Any) -> list[Any]:
    """Outputs as a flat list (a single tensor becomes a list of one)."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


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


class Piece:
    """A part of a graph computed in double precision from known values.

    known maps node -> value (eager's, in its own type); evaluation starts
    there and stops at placeholders and attributes.  One Piece keeps its
    values, so that several outputs of a kernel share the work.
    """

    def __init__(self, graph: fx.Graph, values: dict[str, Any], known: set[fx.Node],
                 noise: Optional[torch.Generator] = None, noise_step: float = 2.0 ** -21):
        self.order = {n: i for i, n in enumerate(graph.nodes)}
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
        return self._shake(n, out, args) if self.noise is not None else out

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

    def _shake(self, n: fx.Node, out: Any, args: Any) -> Any:
        """Adds a random error of a few single-precision steps, more behind sums of many."""
        if not isinstance(out, torch.Tensor) or not out.dtype.is_floating_point or out.numel() == 0:
            return out
        if is_view(n):
            return out
        terms = max([a.numel() for a in args if isinstance(a, torch.Tensor)] or [1])
        step = self.noise_step
        size = out.abs()
        if terms > out.numel():
            step *= (terms / out.numel()) ** 0.5
            size = torch.maximum(size, self._without_cancelling(n, args, out))
        draw = torch.rand(out.shape, generator=self.noise, dtype=torch.float64) * 2 - 1
        return out + draw * step * size

    def _without_cancelling(self, n: fx.Node, args: Any, out: torch.Tensor) -> torch.Tensor:
        """For a sum or a mean: the same of the absolute values."""
        name = getattr(n.target, "__name__", "").split(".")[0]
        if name in ("sum", "mean") and isinstance(args[0], torch.Tensor):
            return n.target(args[0].abs(), *args[1:], **n.kwargs).double()
        return out.abs()


def is_view(n: fx.Node) -> bool:
    """Whether the node only names part of another tensor's memory."""
    if n.op != "call_function":
        return False
    if not hasattr(n.target, "_schema"):
        return getattr(n.target, "__name__", "") == "getitem"
    if n.target.is_view if hasattr(n.target, "is_view") else False:
        return True
    name = n.target.__name__.split(".")[0]
    return name in ("_unsafe_view", "reshape", "_reshape_alias", "split_with_sizes", "split")


def samples(graph: fx.Graph, values: dict[str, Any], known: set[fx.Node], node: fx.Node, count: int = 6,
            noise_step: float = 2.0 ** -21) -> list[torch.Tensor]:
    """The node's truth, computed count times with random rounding errors."""
    out = []
    for seed in range(count):
        generator = torch.Generator().manual_seed(seed)
        try:
            out.append(Piece(graph, values, known, generator, noise_step).value(node))
        except NoDouble:
            return []
    return [s for s in out if isinstance(s, torch.Tensor)]


Progress = Callable[[str], None]

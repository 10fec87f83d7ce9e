"""From a wrong kernel to the wrong node, by small compilations with true inputs.

Each step gives the kernel's nodes, or some of them, to inductor alone, with
the values that eager gave as inputs, and judges what comes out.  A node is
only accused on such evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from torch import fx

import forced
import truths
from compiled import Compiled, compile_graph
from judge import Verdict, judge, same_bits


@dataclass
class Trial:
    """What a piece of the graph gave when it was compiled alone."""

    bad: list[tuple[str, Verdict]] = field(default_factory=list)
    error: Optional[str] = None
    steady: bool = True
    seconds: float = 0.0

    def first_bad(self) -> Optional[str]:
        return self.bad[0][0] if self.bad else None


class Narrow:
    """The pieces of one graph, with the caller's settings."""

    def __init__(self, built: Compiled, values: truths.Values, layout: dict[str, tuple], is_inference: bool,
                 options: dict, progress: truths.Progress):
        self.built, self.values, self.layout = built, values, layout
        self.is_inference, self.options, self.progress = is_inference, options, progress
        self.graph = built.post.graph
        self.nodes = {n.name: n for n in self.graph.nodes}
        self.order = {n: i for i, n in enumerate(self.graph.nodes)}
        self.held: list[str] = []
        self.trials = 0

    # Cutting a piece out.

    def between(self, known: set[fx.Node], wanted: list[fx.Node]) -> list[fx.Node]:
        """The nodes that give wanted from known, in graph order."""
        piece = truths.Piece(self.graph, self.values, known)
        found = {n for w in wanted for n in piece.inner_nodes(w)}
        return sorted(found, key=self.order.__getitem__)

    def cut(self, nodes: list[fx.Node], outputs: list[fx.Node],
            numbers: bool = True) -> tuple[fx.GraphModule, list[Any]]:
        """A module of the given nodes, and its true inputs.  With numbers,
        sizes that the piece takes from outside are constants."""
        graph, copies, inputs = fx.Graph(), {}, []
        inside = set(nodes)
        for n in nodes:
            for a in n.all_input_nodes:
                if a not in inside and a not in copies:
                    value = self.values.late.get((n.name, a.name), self.values.get(a.name))
                    self._bring_in(graph, a, value, copies, inputs, numbers)
        for n in nodes:
            copies[n] = graph.node_copy(n, lambda a: copies[a])
            copies[n].meta = {k: v for k, v in n.meta.items() if k in ("stack_trace", "nn_module_stack")}
            copies[n].name = n.name
        graph.output(tuple(copies[self._tensor_of(o)] for o in outputs))
        module = fx.GraphModule(self.built.post, _numbers_inlined(graph))
        return module, inputs

    def _tensor_of(self, node: fx.Node) -> fx.Node:
        """The node, or what it writes to when it gives no tensor itself (a foreach operator in place)."""
        written = truths.mutated_args(node)
        return written[0] if written and not isinstance(self.values.get(node.name), torch.Tensor) else node

    def _bring_in(self, graph: fx.Graph, a: fx.Node, value: Any, copies: dict, inputs: list, numbers: bool) -> None:
        """Makes an input of a node outside the piece, with its true value."""
        if isinstance(value, truths.Missing) or (value is None and a.op != "get_attr"):
            raise truths.NoDouble(f"no value for {a.name}")
        if not isinstance(value, (torch.Tensor, int)) and a.op == "get_attr":
            copies[a] = graph.node_copy(a)
            return
        if isinstance(value, (tuple, list)):
            raise truths.NoDouble(f"{a.name} has several values")
        copies[a] = graph.placeholder(a.name)
        if isinstance(value, (int, float, bool)) and numbers:
            copies[a].meta["number"] = value
            return
        stride = self.layout.get(a.name)
        if isinstance(value, torch.Tensor) and stride is not None and stride != value.stride():
            value = torch.empty_strided(value.shape, stride, dtype=value.dtype).copy_(value)
        inputs.append(value)

    # Compiling and judging a piece.

    def attempt(self, nodes: list[fx.Node], outputs: list[fx.Node], what: str,
                options: Optional[dict] = None) -> Trial:
        """Compiles a piece, runs it twice and judges its outputs."""
        self.progress(f"narrow: {what} ({len(nodes)} nodes)")
        self.trials += 1
        trial = Trial()
        try:
            module, inputs = self.cut(nodes, outputs)
        except truths.NoDouble as e:
            trial.error = f"not cut out: {e}"
            return trial
        built = compile_graph(module, inputs, self.is_inference, {**self.options, **(options or {})}, _silent)
        trial.seconds = built.seconds
        if built.error is not None:
            trial.error = f"{type(built.error).__name__}: {first_line(built.error)}"
            return trial
        first, second = run_final(built, inputs), run_final(built, inputs)
        self._judge(trial, module, inputs, outputs, first, second)
        return trial

    def _judge(self, trial: Trial, module: fx.GraphModule, inputs: list[Any], outputs: list[fx.Node],
               first: list[Any], second: list[Any]) -> None:
        wants, values, _ = truths.run_eager(module, inputs)
        # Several of the outputs may be computed one from another, so each is held to the piece's inputs.
        known: set[fx.Node] = set()
        piece = truths.Piece(module.graph, values, known)
        inner = {n.name: n for n in module.graph.nodes}
        for node, got, again, want in zip(outputs, first, second, wants):
            if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
                continue
            trial.steady &= same_bits(got, again)
            own = inner[node.name]
            truth = self._double(piece, own, want)
            verdict = judge(got, want, truth)
            if not verdict.ok and truth is not None and verdict.kind not in ("dtype", "shape") and \
                    forced.excused(module.graph, values, known, own, got, truth):
                continue
            if not verdict.ok:
                trial.bad.append((node.name, verdict))

    def _double(self, piece: truths.Piece, node: fx.Node, want: torch.Tensor) -> Optional[torch.Tensor]:
        """The node's double, when it has one of the right size."""
        try:
            truth = piece.value(node)
        except truths.NoDouble:
            return None
        return truth if isinstance(truth, torch.Tensor) and truth.shape == want.shape else None

    # The search.

    def tensors(self, nodes: list[fx.Node]) -> list[fx.Node]:
        """Nodes with one tensor that is not merely a view."""
        return [n for n in nodes if isinstance(self.values.get(n.name), torch.Tensor) and not truths.is_view(n)
                and not truths.mutated_args(n)]

    def search(self, known: set[fx.Node], bad: fx.Node, written: list[fx.Node]) -> tuple[Optional[str], bool, str]:
        """The wrong node of a kernel, whether that is certain, and why not."""
        nodes = self.between(known, [bad])
        candidates = self.tensors(nodes)
        if bad not in candidates:
            candidates.append(bad)
        if len(nodes) > 400:
            return bad.name, False, "the kernel has too many nodes to take apart"
        node = self._all_outputs(nodes, candidates)
        if node is not None:
            self._alone(node)  # adds what it found to held
            return node, True, ""
        if self._whole(nodes, bad, known, written):
            return self._prefix(known, candidates, bad)
        if self._alone(bad.name):
            return bad.name, True, ""
        return self._wider(known, bad)

    def _all_outputs(self, nodes: list[fx.Node], candidates: list[fx.Node]) -> Optional[str]:
        if len(candidates) == 1:
            return candidates[0].name if self._alone(candidates[0].name) else None
        trial = self.attempt(nodes, candidates, "all nodes of the kernel as outputs")
        if trial.bad and trial.steady:
            self.held.append("all_outputs")
            return trial.first_bad()
        return None

    def _alone(self, name: str) -> bool:
        """Whether the node alone, with true inputs, is wrong."""
        if "one_node" in self.held:
            return True
        node = self.nodes[name]
        nodes = self._with_tuples(node)
        trial = self.attempt(nodes, [node], f"{name} alone")
        if trial.bad and trial.steady:
            self.held.append("one_node")
            return True
        return False

    def _plain(self, n: fx.Node) -> bool:
        return n.op == "call_function" and isinstance(self.values.get(n.name), (tuple, list))

    def _with_tuples(self, node: fx.Node) -> list[fx.Node]:
        """The node, and what it takes that is no tensor and so no input (the tuple behind a getitem)."""
        found, todo = {node}, [node]
        while todo:
            for a in todo.pop().all_input_nodes:
                if a not in found and self._plain(a):
                    found.add(a)
                    todo.append(a)
        return sorted(found, key=self.order.__getitem__)

    def _whole(self, nodes, bad, known, written) -> bool:
        """Whether the kernel's own outputs are wrong when it is compiled alone."""
        trial = self.attempt(nodes, [bad], "the kernel's nodes alone")
        if trial.bad and trial.steady:
            self.held.append("kernel_alone")
            return True
        others = [w for w in written if w is not bad and w.name in self.nodes]
        if not others:
            return False
        everything = self.between(known, [bad] + others)
        outputs = [bad] + [o for o in others if isinstance(self.values.get(o.name), torch.Tensor)]
        trial = self.attempt(everything, outputs, "the kernel with all its outputs")
        if any(name == bad.name for name, _ in trial.bad) and trial.steady:
            self.held.append("kernel_alone")
            return True
        return False

    def _prefix(self, known, candidates, bad) -> tuple[Optional[str], bool, str]:
        """The first node at which the growing piece becomes wrong."""
        low, high = -1, len(candidates) - 1
        while high - low > 1:
            middle = (low + high) // 2
            node = candidates[middle]
            trial = self.attempt(self.between(known, [node]), [node], f"up to {node.name}")
            low, high = (low, middle) if trial.bad else (middle, high)
        self.held.append("prefix")
        return candidates[high].name, True, ""

    def _wider(self, known: set[fx.Node], bad: fx.Node) -> tuple[Optional[str], bool, str]:
        """One producer more on each side, then one consumer."""
        for edge in sorted(known, key=self.order.__getitem__, reverse=True)[:3]:
            fewer = known - {edge} | {a for a in edge.all_input_nodes if self._known_value(a)}
            trial = self.attempt(self.between(fewer, [bad]), [bad], f"with {edge.name} before it")
            if trial.bad and trial.steady:
                self.held.append(f"with_producer:{edge.name}")
                return bad.name, True, ""
        for user in sorted(bad.users, key=self.order.__getitem__)[:2]:
            if not isinstance(self.values.get(user.name), torch.Tensor):
                continue
            trial = self.attempt(self.between(known, [bad, user]), [bad, user], f"with {user.name} behind it")
            if any(name == bad.name for name, _ in trial.bad) and trial.steady:
                self.held.append(f"with_consumer:{user.name}")
                return bad.name, True, ""
        return bad.name, False, "the kernel's nodes are right when they are compiled alone"

    def _known_value(self, n: fx.Node) -> bool:
        return isinstance(self.values.get(n.name), torch.Tensor)


def _numbers_inlined(graph: fx.Graph) -> fx.Graph:
    """Replaces placeholders that stand for a size by the number."""
    for n in list(graph.nodes):
        if "number" in n.meta:
            number = n.meta["number"]
            for user in list(n.users):
                user.args = fx.node.map_arg(user.args, lambda a: number if a is n else a)
                user.kwargs = fx.node.map_arg(user.kwargs, lambda a: number if a is n else a)
            graph.erase_node(n)
    return graph


def run_final(built: Compiled, inputs: list[Any]) -> list[Any]:
    """Outputs of the compiled piece, as PyTorch itself would call it."""
    torch.manual_seed(truths.SEED)
    with torch.no_grad():
        return truths.as_list(built.final(truths.copy_inputs(inputs)))


def first_line(error: BaseException) -> str:
    """The first line of an exception's text that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:400] if lines else ""


def _silent(_: str) -> None:
    """No progress of its own for a piece."""

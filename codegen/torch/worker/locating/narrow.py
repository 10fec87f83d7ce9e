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

from . import eager_values
from . import forced
from . import truths
from .compiled import Compiled, Progress, compile_graph
from .findings import OwnError
from .judge import Verdict, judge, same_bits
from .pieces import Pieces, by_mul, by_neg

MOST_NODES = 400
CONTROL = "(control)"
Answer = tuple[Optional[str], bool, str]  # the node, whether it is certain, why it is not


@dataclass
class Trial:
    """What a piece of the graph gave when it was compiled alone."""

    bad: list[tuple[str, Verdict]] = field(default_factory=list)
    error: Optional[str] = None
    steady: bool = True
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether it was wrong, and twice in the same way."""
        return bool(self.bad) and self.steady


class Narrow:
    """The search within one kernel, with the caller's settings."""

    def __init__(self, built: Compiled, values: eager_values.Values, layout: dict[str, tuple], is_inference: bool,
                 options: dict, progress: Progress):
        self.pieces = Pieces(built.post, values, layout)
        self.is_inference, self.options, self.progress = is_inference, options, progress
        self.nodes = self.pieces.nodes
        self.held: list[str] = []
        self.trials = 0
        self.only_bounds = False  # look for writes outside buffers only, not at values

    # Compiling and judging a piece.

    def attempt(self, nodes: list[fx.Node], outputs: list[fx.Node], what: str,
                options: Optional[dict] = None) -> Trial:
        """Compiles some nodes with true inputs, runs them twice and judges the outputs."""
        self.progress(f"narrow: {what} ({len(nodes)} nodes)")
        try:
            module, inputs = self.pieces.cut(nodes, outputs)
        except truths.NoDouble as e:
            return Trial(error=f"not cut out: {e}")
        return self.judged(module, inputs, [o.name for o in outputs], options)

    def judged(self, module: fx.GraphModule, inputs: list[Any], names: list[str],
               options: Optional[dict] = None) -> Trial:
        """Compiles a module; names are the nodes to name for its outputs."""
        self.trials += 1
        trial = Trial()
        built = compile_graph(module, inputs, self.is_inference, {**self.options, **(options or {})}, _silent)
        trial.seconds = built.seconds
        if built.error is not None:
            trial.error = f"{type(built.error).__name__}: {first_line(built.error)}"
            return trial
        try:
            self._run(trial, built, module, inputs, names)
        except OwnError:
            raise
        except Exception as e:  # the piece raises when it runs: that is its result
            trial.error = f"{type(e).__name__}: {first_line(e)}"
        return trial

    def _run(self, trial: Trial, built: Compiled, module: fx.GraphModule, inputs: list[Any],
             names: list[str]) -> None:
        """Runs a compiled piece, first with guards around its buffers."""
        guarded = forced.Run(built, _silent)
        guarded.go(inputs)
        if guarded.outside:
            trial.bad = [(f.node if f.node in names else names[-1], f.verdict) for f in guarded.outside]
        if guarded.outside or self.only_bounds:
            return
        first, second = run_final(built, inputs), run_final(built, inputs)
        wants, values, _ = eager_values.run_eager(module, inputs)
        piece = truths.Piece(module.graph, values, set())
        outputs = next(n for n in module.graph.nodes if n.op == "output").args[0]
        for node, name, got, again, want in zip(outputs, names, first, second, wants):
            if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
                trial.steady &= same_bits(got, again)
                verdict = _verdict(module, values, piece, node, got, want)
                if not verdict.ok:
                    trial.bad.append((name, verdict))

    # The search.

    def search(self, known: set[fx.Node], bad: fx.Node, written: list[fx.Node]) -> Answer:
        """The wrong node of a kernel that leaves bad wrong, though known, which it reads, is right."""
        nodes = self.pieces.between(known, [bad])
        candidates = self.pieces.computed(nodes)
        if bad not in candidates:
            candidates.append(bad)
        if len(nodes) > MOST_NODES:
            return bad.name, False, "the kernel has too many nodes to take apart"
        node = self._all_outputs(nodes, candidates)
        if node is not None:
            return node, True, ""
        if self._whole(nodes, bad, known, written):
            return self._fused(known, candidates, bad)
        if len(candidates) > 1 and self._alone(bad.name):
            return bad.name, True, ""
        return self._wider(known, bad)

    def _all_outputs(self, nodes: list[fx.Node], candidates: list[fx.Node]) -> Optional[str]:
        """All nodes of the kernel as outputs: the first that is wrong; then that one alone."""
        if len(candidates) == 1:
            return candidates[0].name if self._alone(candidates[0].name) else None
        trial = self.attempt(nodes, candidates, "all nodes of the kernel as outputs")
        if not trial.wrong:
            return None
        self.held.append("all_outputs")
        self._alone(trial.bad[0][0])  # adds what it finds to held
        return trial.bad[0][0]

    def _alone(self, name: str) -> bool:
        """Whether the node alone, with true inputs, is wrong."""
        node = self.nodes[name]
        if not self.attempt(self.pieces.with_tuples(node), [node], f"{name} alone").wrong:
            return False
        self.held.append("one_node")
        return True

    def _whole(self, nodes: list[fx.Node], bad: fx.Node, known: set[fx.Node], written: list[fx.Node]) -> bool:
        """Whether the kernel is wrong when it is compiled alone, with one output or with all it writes."""
        wrong = self.attempt(nodes, [bad], "the kernel's nodes alone").wrong
        others = [w for w in written if w is not bad and self.pieces.is_tensor(w)]
        if not wrong and others:
            everything = self.pieces.between(known, [bad] + others)
            trial = self.attempt(everything, [bad] + others, "the kernel with all its outputs")
            wrong = trial.steady and any(name == bad.name for name, _ in trial.bad)
        if wrong:
            self.held.append("kernel_alone")
        return wrong

    def _fused(self, known: set[fx.Node], candidates: list[fx.Node], bad: fx.Node) -> Answer:
        """For a kernel that is only wrong as a whole: the node that is wrong
        when it is fused with exact operators, else the end of the shortest wrong beginning."""
        pure = [n for n in candidates if not eager_values.mutated_args(n)]
        for wrap in (by_neg, by_mul):
            node = self._between(pure, wrap)
            if node is not None:
                return node, True, ""
        low, high = -1, len(candidates) - 1
        while high - low > 1:
            middle = (low + high) // 2
            node = candidates[middle]
            wrong = self.attempt(self.pieces.between(known, [node]), [node], f"up to {node.name}").wrong
            low, high = (low, middle) if wrong else (middle, high)
        self.held.append("prefix")
        members = self.pieces.computed(self.pieces.between(known, [candidates[high]]))
        alone = len(members) <= 1
        return candidates[high].name, alone, "" if alone else (
            "only wrong together: " + ", ".join(n.name for n in members[-8:]))

    def _between(self, nodes: list[fx.Node], wrap: Any) -> Optional[str]:
        """The first node that is wrong between two exact operators; None when
        none is, or when these are wrong themselves."""
        self.progress(f"narrow: each of {len(nodes)} nodes between two exact operators")
        try:
            module, inputs = self.pieces.wrapped(nodes, wrap)
        except truths.NoDouble:
            return None
        trial = self.judged(module, inputs, [n.name for n in nodes] + [CONTROL])
        bad = [name for name, _ in trial.bad]
        if not trial.wrong or CONTROL in bad or (len(bad) == len(nodes) > 1):
            return None
        self.held.append("between_negations")
        return bad[0]

    def _wider(self, known: set[fx.Node], bad: fx.Node) -> Answer:
        """One producer more on each side, then one consumer."""
        for edge in self.pieces.in_order(known)[-3:]:
            fewer = known - {edge} | {a for a in edge.all_input_nodes if self.pieces.is_tensor(a)}
            if self.attempt(self.pieces.between(fewer, [bad]), [bad], f"with {edge.name} before it").wrong:
                self.held.append(f"with_producer:{edge.name}")
                return bad.name, False, f"only wrong together with {edge.name} before it"
        for user in self.pieces.in_order(bad.users)[:2]:
            if not self.pieces.is_tensor(user):
                continue
            trial = self.attempt(self.pieces.between(known, [bad, user]), [bad, user], f"with {user.name} behind it")
            if trial.steady and any(name == bad.name for name, _ in trial.bad):
                self.held.append(f"with_consumer:{user.name}")
                return bad.name, True, ""
        return bad.name, False, "the kernel's nodes are right when they are compiled alone"


def _verdict(module: fx.GraphModule, values: eager_values.Values, piece: truths.Piece, node: fx.Node,
             got: torch.Tensor, want: torch.Tensor) -> Verdict:
    """One output of a piece, held to the piece's own inputs."""
    try:
        truth = piece.value(node) if node.op == "call_function" else None
    except truths.NoDouble:
        truth = None
    if not isinstance(truth, torch.Tensor) or truth.shape != want.shape:
        truth = None
    verdict = judge(got, want, truth)
    if verdict.ok or truth is None or verdict.kind in ("dtype", "shape"):
        return verdict
    return Verdict() if forced.excused(module.graph, values, set(), node, got, truth) else verdict


def run_final(built: Compiled, inputs: list[Any]) -> list[Any]:
    """Outputs of the compiled graph, as PyTorch itself would call it."""
    torch.manual_seed(eager_values.SEED)
    with torch.no_grad():
        return eager_values.as_list(built.final(eager_values.copy_inputs(inputs)))


def first_line(error: BaseException) -> str:
    """The first line of an exception's text that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:400] if lines else ""


def _silent(_: str) -> None:
    """No progress of its own for a piece."""

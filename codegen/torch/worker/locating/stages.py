"""Which stage of the compilation first gives a wrong graph.

Every stage (the given graph, the graph after decompositions, the graph after
inductor's post-grad passes) is run in eager on the same inputs and compared
with the given graph in double.

Relied on: torch._inductor.fx_passes.post_grad.post_grad_passes and
torch.fx.passes.graph_transform_observer.GraphTransformObserver (its
apply_graph_pass and apply_gm_pass run each pass).
"""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional

import torch
from torch import fx

from . import eager_values
from . import report
from . import truths
from .compiled import Compiled, Progress, given_name, patches
from .judge import Verdict, judge, same_bits, within_spread

LOOSE = 4.0


@dataclass
class Reference:
    """The given graph's results: eager, double, and the inputs afterwards."""

    module: fx.GraphModule
    outputs: list[Any] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    after: list[Any] = field(default_factory=list)
    truth: list[Any] = field(default_factory=list)
    after_truth: dict[int, Any] = field(default_factory=dict)
    defined: dict[int, torch.Tensor] = field(default_factory=dict)
    random: bool = False

    def wrong(self, outputs: list[Any], after: Optional[list[Any]] = None,
              loose: float = LOOSE) -> list[tuple[str, Verdict]]:
        """The outputs (and changed inputs) that differ by more than rounding."""
        verdicts = [self._compare(outputs[i] if i < len(outputs) else None, want, i, loose)
                    for i, want in enumerate(self.outputs)]
        self._excuse(verdicts, outputs)
        bad = [(f"output {i}", verdict) for i, verdict in enumerate(verdicts) if not verdict.ok]
        for i, want in enumerate(self.after if after is not None else ()):
            if isinstance(want, torch.Tensor) and isinstance(after[i], torch.Tensor):
                verdict = judge(after[i], want, self.after_truth.get(i), loose=loose)
                if not verdict.ok:
                    bad.append((f"input {i} afterwards", verdict))
        return bad

    def _compare(self, got: Any, want: Any, i: int, loose: float) -> Verdict:
        if not isinstance(want, torch.Tensor):
            same = not isinstance(got, torch.Tensor) and (got is None or got == want)
            return Verdict() if same else Verdict("shape", note=f"{got!r} instead of {want!r}")
        if not isinstance(got, torch.Tensor):
            return Verdict("shape", note=f"{type(got).__name__} instead of a tensor")
        truth = self.truth[i] if i < len(self.truth) and isinstance(self.truth[i], torch.Tensor) else None
        verdict = judge(got, want, truth, self.defined.get(i), loose=loose)
        if verdict.ok or truth is None or verdict.kind in ("dtype", "shape"):
            return verdict
        if verdict.kind == "integer" and verdict.wrong <= max(2, verdict.total // 100) and self._has_floats():
            return Verdict(note="a few indices or comparisons of nearly equal numbers fell otherwise")
        return verdict

    def _excuse(self, verdicts: list[Verdict], outputs: list[Any]) -> None:
        """Takes back what rounding explains that adds up in the whole graph."""
        doubtful = {i: node for i, node in enumerate(output_nodes(self.module))
                    if i < len(verdicts) and not verdicts[i].ok and verdicts[i].kind not in ("dtype", "shape")
                    and i < len(self.truth) and isinstance(self.truth[i], torch.Tensor)}
        if not doubtful:
            return
        spreads = truths.samples_of(self.module.graph, self.values, set(), list(doubtful.values()), self._step())
        for i, node in doubtful.items():
            if within_spread(outputs[i], self.truth[i], spreads[node]):
                verdicts[i] = Verdict(note="explained by rounding")

    def _has_floats(self) -> bool:
        return any(isinstance(v, torch.Tensor) and v.dtype.is_floating_point for v in self.values.values())

    def _step(self) -> float:
        """How coarse a rounding may add up in the whole graph."""
        half = any(isinstance(v, torch.Tensor) and v.dtype in (torch.bfloat16, torch.float16)
                   for v in self.values.values())
        return 2.0 ** -8 if half else 2.0 ** -21


def reference(module: fx.GraphModule, inputs: list[Any]) -> Reference:
    """Runs the given graph in eager (an exception is the caller's) and its outputs in double."""
    ref = Reference(module)
    ref.outputs, ref.values, ref.after = eager_values.run_eager(module, inputs, strict=True)
    ref.random = any(eager_values.is_random(n) for n in module.graph.nodes)
    poison, _ = eager_values.poisoned(module, inputs)
    again = eager_values.run_eager(module, inputs)[0]  # what reads freed or foreign memory differs now
    for i, value in enumerate(ref.outputs):
        masks = [eager_values.defined_elements(value, poison[i]), eager_values.steady_elements(value, again[i])]
        masks = [m for m in masks if m is not None]
        if masks:
            ref.defined[i] = torch.stack(masks).all(dim=0)
    piece = truths.Piece(module.graph, ref.values, set())
    for node in output_nodes(module):
        try:
            is_value = isinstance(node, fx.Node) and node.op == "call_function"
            ref.truth.append(piece.value(node) if is_value else None)
        except truths.NoDouble:
            ref.truth.append(None)
    ref.after_truth = _written_inputs(module, piece)
    return ref


def _written_inputs(module: fx.GraphModule, piece: truths.Piece) -> dict[int, Any]:
    """Input number -> double value of what a final copy_ writes into it."""
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    found = {}
    for n in module.graph.nodes:
        if n.op == "call_function" and n.target is torch.ops.aten.copy_.default and n.args[0] in holders:
            source = n.args[1]
            try:
                if isinstance(source, fx.Node) and source.op == "call_function":
                    found[holders.index(n.args[0])] = piece.value(source)
            except truths.NoDouble:
                continue
    return found


def wrong_stage(ref: Reference, built: Compiled, inputs: list[Any]) -> Optional[tuple[str, list]]:
    """The first stage whose graph, in eager, gives other results, with the
    outputs that are wrong; None when all graphs are right or random draws
    forbid the comparison."""
    if ref.random:
        return None
    for name, module in (("decompositions", built.traced), ("post-grad passes", built.post)):
        outputs, _, after = eager_values.run_eager(module, inputs)
        bad = ref.wrong([None if isinstance(o, eager_values.Missing) else o for o in outputs],
                        after) if not _missing(outputs) else []
        if bad and _repeats(ref.module, inputs, ref.outputs) and _repeats(module, inputs, outputs):
            return name, bad
    return None


def _repeats(module: fx.GraphModule, inputs: list[Any], outputs: list[Any]) -> bool:
    """Whether a graph gives these bits again; one that reads memory which nobody wrote may not."""
    again = eager_values.run_eager(module, inputs)[0]
    return all(isinstance(b, torch.Tensor) and same_bits(a, b) for a, b in zip(outputs, again)
               if isinstance(a, torch.Tensor))


def _missing(outputs: list[Any]) -> bool:
    return any(isinstance(o, eager_values.Missing) for o in outputs)


def wrong_decomposition(ref: Reference) -> Optional[str]:
    """The first node of the given graph whose decomposition gives another value with true inputs."""
    from torch._inductor.decomposition import select_decomp_table
    table = select_decomp_table()
    for node in ref.module.graph.nodes:
        if node.op != "call_function" or node.target not in table or eager_values.is_random(node) or eager_values.is_empty(node):
            continue
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda a: eager_values.copy_of(ref.values[a.name]))
        try:
            with torch.no_grad():
                got = table[node.target](*args, **kwargs)
        except Exception:  # a decomposition may refuse real tensors; it is not judged then
            continue
        want = ref.values[node.name]
        for a, b in zip(eager_values.as_list(got), eager_values.as_list(want)):
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not judge(a, b, None).ok:
                return given_name(node)
    return None


@contextlib.contextmanager
def each_pass(check) -> Iterator[None]:
    """Calls check(pass name, module) behind every pass of inductor."""
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver as Observer
    saved = {n: getattr(Observer, n) for n in ("apply_graph_pass", "apply_gm_pass") if hasattr(Observer, n)}

    def wrapped(original):
        def run(self, *args, **kwargs):
            result = original(self, *args, **kwargs)
            check(self.passname, self.gm)
            return result
        return run
    for name, original in saved.items():
        setattr(Observer, name, wrapped(original))
    try:
        yield
    finally:
        for name, original in saved.items():
            setattr(Observer, name, original)


def wrong_pass(ref: Reference, built: Compiled, inputs: list[Any], is_inference: bool, options: dict,
               progress: Progress) -> Optional[dict[str, Any]]:
    """The post-grad pass behind which the graph is wrong, and the nodes it changed."""
    import torch._inductor.config as config
    from torch._guards import TracingContext, tracing
    from torch._inductor.fx_passes.post_grad import post_grad_passes
    from torch._inductor.virtualized import V
    gm = fx.GraphModule(built.traced, copy.deepcopy(built.traced.graph))
    state = {"text": str(gm.graph), "found": None}

    def check(name: str, module: fx.GraphModule) -> None:
        text = str(gm.graph)
        if state["found"] is not None or text == state["text"]:
            return
        progress(f"pass {name}")
        outputs, _, after = eager_values.run_eager(gm, inputs)
        if not _missing(outputs) and ref.wrong(outputs, after):
            state["found"] = report.pass_json(name, state["text"], text)
        state["text"] = text
    mode = next((f.fake_mode for f in built.fakes if hasattr(f, "fake_mode")), None)
    if mode is None:
        return None
    with config.patch(patches(gm, options, [])), torch.no_grad(), tracing(TracingContext(mode)), \
            V.set_fake_mode(mode), each_pass(check):
        post_grad_passes(gm, is_inference)
    return state["found"]


def wrong_strides(built: Compiled, outputs: list[Any]) -> list[dict[str, Any]]:
    """Outputs that the user sees with other strides than eager's.  Inductor
    keeps those of the outputs named in meta["user_visible_output_idxs"]."""
    result = next(n for n in built.post.graph.nodes if n.op == "output")
    wanted = result.meta.get("original_output_strides", [])
    bad = []
    for i in result.meta.get("user_visible_output_idxs", []):
        if i >= len(wanted) or i >= len(outputs) or not isinstance(outputs[i], torch.Tensor) or wanted[i] is None:
            continue
        pairs = [(s, w) for s, w, n in zip(outputs[i].stride(), wanted[i], outputs[i].shape) if n > 1]
        if outputs[i].numel() and all(isinstance(w, int) for _, w in pairs) and any(s != w for s, w in pairs):
            node = result.args[0][i]
            bad.append({"output": i, "node": node.name if isinstance(node, fx.Node) else "",
                        "stride": list(outputs[i].stride()), "want": list(wanted[i])})
    return bad


def output_nodes(module: fx.GraphModule) -> list[Any]:
    """What the graph returns, as a flat list of nodes and constants."""
    out = next(n for n in module.graph.nodes if n.op == "output").args[0]
    return list(out) if isinstance(out, (tuple, list)) else [out]

"""What follows when locate has seen something wrong: the kernel is taken
apart, memory planning is looked at, or the stages of the graph are compared.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Callable, Optional

import torch
from torch import fx

from . import eager_values
from . import memory
from . import report
from . import stages
from . import switches
from .compiled import Compiled, compile_graph
from .findings import Finding, OwnError
from .forced import Run
from .judge import same_bits
from .narrow import Narrow, Trial, first_line, run_final

SOFT = ("rms", "bias", "peak", "tail")  # kinds of wrongness that are a matter of degree


def silent(_: str) -> None:
    """For runs that are not told."""


class Conclusions:
    """The state of one call of locate, and what is done when something was found wrong."""

    def __init__(self, module: fx.GraphModule, inputs: list[Any], is_inference: bool, options: dict,
                 progress: Callable[[str], None], want_switches: bool):
        self.module, self.inputs, self.want_switches = module, inputs, want_switches
        self.is_inference, self.options, self.progress = is_inference, dict(options), progress
        self.began = time.perf_counter()
        self.report = report.start()
        self.ref: Optional[stages.Reference] = None
        self.built: Optional[Compiled] = None
        self.values = eager_values.Values()
        self.defined: dict[str, torch.Tensor] = {}
        self.free: list[Any] = []
        self.forced_out: list[Any] = []
        self.free_bad: list = []
        self.run: Optional[Run] = None

    def failed_run(self, run: Run, error: Exception) -> None:
        """A call of the wrapper raised on right inputs: it is accused when its node alone raises too."""
        report.set_exception(self.report, "run", error, "", self.built, sure=False, kernel=run.current)
        self.report["reason"] = "the call raised; what came before it was right as far as it could be judged"
        kernel = self.built.kernels.get(run.current)
        if kernel is None or len(kernel.nodes) != 1:
            return
        narrow = Narrow(self.built, self.values, run.layout, self.is_inference, self.options, self.progress)
        node = narrow.nodes.get(kernel.nodes[0])
        if node is not None and narrow.attempt(narrow.pieces.with_tuples(node), [node], f"{node.name} alone").error:
            report.set_node(self.report, self.built, node.name, True)
            self.report.update(sure=True, reason="", held=["one_node"])

    # Steps 4 to 6.

    def wrong_kernel(self, run: Run) -> None:
        finding = run.findings[0]
        again = Run(self.built, silent, self.values, self.defined)
        try:
            again.go(self.inputs)
        except OwnError:
            raise
        except Exception as e:  # it raised in the first run too, or is told here
            self.report["notes"].append(f"a second run raised {type(e).__name__}: {first_line(e)}")
        repeated = any(f.buffer == finding.buffer for f in again.findings + again.suspects + again.outside)
        report.set_kernel(self.report, self.built, run, finding)
        if not repeated:
            self.report["reason"] = "a second run of the same kernel was right: not deterministic"
            return
        self._narrow(run, finding)

    def _narrow(self, run: Run, finding: Finding) -> None:
        narrow = Narrow(self.built, self.values, run.layout, self.is_inference, self.options, self.progress)
        narrow.only_bounds = finding.verdict.kind == "out_of_bounds"
        kernel = self.built.kernels[finding.kernel]
        same = [f for f in run.findings if f.kernel == finding.kernel]
        nodes = sorted((narrow.nodes[f.node] for f in same), key=narrow.pieces.order.__getitem__)
        known = run.frontier.get(finding.kernel, set())
        node, certain, why = narrow.search(known, nodes[0], nodes)
        self.report["held"] = narrow.held
        self.report["compilations"] = narrow.trials + 1
        report.set_node(self.report, self.built, node, certain)
        if not certain:
            self._memory_switches(finding)
        self.report["kernel"]["sure"] = not finding.unchecked_inputs and (
            certain or "kernel_alone" in narrow.held or narrow.only_bounds)
        if certain and "one_node" not in narrow.held:
            self.report["fused_with"] = [n for n in kernel.nodes if n != node][:40]
        self._decide(finding, certain, why)
        self._switches(narrow, known, nodes[0], certain)

    def _decide(self, finding: Finding, certain: bool, why: str) -> None:
        """Whether the accusation is certain."""
        reasons = []
        if not certain:
            reasons.append(why)
        if finding.unchecked_inputs:
            reasons.append("the kernel reads buffers that could not be judged: " + ", ".join(finding.unchecked_inputs))
        value = self.values.get(finding.node)
        half = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
        soft = finding.verdict.kind in SOFT
        small = soft and finding.verdict.ratio < (3 if half else 20)
        right = soft and (small or not certain) and self.ref is not None and not self.ref.random and \
            not self.ref.wrong(self.free, loose=1.0)
        if right and not certain:
            report.set_excused(self.report)
            return
        if right:
            reasons.append("the difference is small and the results are right")
        if finding.verdict.doubtful and not certain:
            reasons.append("there was no double-precision value to compare with")
        if self.report["deterministic"] is False and not certain:
            reasons.append("two runs of the compiled graph gave different bits")
        self.report["sure"] = not reasons
        self.report["reason"] = "; ".join(reasons)

    def _memory_switches(self, finding: Finding) -> None:
        """The whole graph again without memory planning: does the kernel become right?"""
        for switch in ("inplace_buffers", "allow_buffer_reuse"):
            self.progress(f"the whole graph with {switch} off")
            given = fx.GraphModule(self.module, copy.deepcopy(self.module.graph))
            built = compile_graph(given, self.inputs, self.is_inference, {**self.options, switch: False}, silent)
            if built.error is not None:
                continue
            run = Run(built, silent, eager_values.run_eager(built.post, self.inputs)[1], self.defined)
            run.go(self.inputs)
            if not any(f.node == finding.node for f in run.findings):
                self.report["held"].append(f"right_without:{switch}")

    def overwritten(self, run: Run) -> None:
        """A buffer changed between its kernel and its reader."""
        found = memory.find_overwrites(self.built, self.inputs)
        names = {f["buffer"] for f in run.overwritten}
        guilty = [f for f in found if f["buffer"] in names]
        report.set_memory(self.report, self.built, run, guilty, bool(self.free_bad))

    # Step 7.

    def wrong_without_kernel(self, run: Run) -> None:
        self.report["wrong_outputs"] = [{"what": w, **v.as_json()} for w, v in self.free_bad]
        stage = stages.wrong_stage(self.ref, self.built, self.inputs)
        if stage is not None:
            self._wrong_graph(stage)
            return
        eager_out = [self.values.get(a.name) if isinstance(a, fx.Node) else a for a in stages.output_nodes(self.built.post)]
        view = [i for i, (a, b) in enumerate(zip(self.forced_out, eager_out))
                if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not same_bits(a, b)]
        report.set_no_kernel(self.report, self.built, run, self.free_bad, view,
                             memory.find_overwrites(self.built, self.inputs))

    def _wrong_graph(self, stage: tuple[str, list]) -> None:
        name, bad = stage
        if name == "decompositions" and self._only_dtypes(bad):
            report.set_clean(self.report, True)
            self.report["reason"] = "PyTorch's own decomposition gives another dtype than its eager operator"
            return
        if name == "decompositions":
            node = stages.wrong_decomposition(self.ref)
            found = {"node": node} if node else None
        else:
            found = stages.wrong_pass(self.ref, self.built, self.inputs, self.is_inference, self.options,
                                      self.progress)
        report.set_stage(self.report, name, bad, found)
        if self.want_switches:
            rows = switches.try_switches(self._whole_again, self.built.post.graph, [], self.progress,
                                         switches.GRAPH_ROWS)
            self.report["switches"] = [r.as_json() for r in rows]

    def _only_dtypes(self, bad: list) -> bool:
        """Whether the results, of inductor's code and of the decomposed graph, are right but for their dtypes."""
        if not all(v.kind == "dtype" for _, v in bad + self.free_bad):
            return False
        wants = self.ref.outputs
        cast = [got.to(want.dtype) if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor) else got
                for got, want in zip(self.free, wants)]
        return not self.ref.wrong(cast)

    def _whole_again(self, settings: dict[str, Any]) -> Trial:
        """The whole graph with other settings, judged by its outputs."""
        given = fx.GraphModule(self.module, copy.deepcopy(self.module.graph))
        built = compile_graph(given, self.inputs, self.is_inference, {**self.options, **settings}, silent)
        trial = Trial(seconds=built.seconds)
        if built.error is not None:
            trial.error = f"{type(built.error).__name__}: {first_line(built.error)}"
        else:
            trial.bad = self.ref.wrong(run_final(built, self.inputs))
        return trial

    # Item 5.

    def _switches(self, narrow: Narrow, known: set, bad: fx.Node, certain: bool) -> None:
        if not self.want_switches or not certain:
            return
        name = self.report["node"]["node"]
        alone = "one_node" in narrow.held
        node = narrow.nodes[name] if alone else bad
        nodes = narrow.pieces.with_tuples(node) if alone else narrow.pieces.between(known, [bad])

        def attempt(settings: dict[str, Any]) -> Trial:
            return narrow.attempt(nodes, [node], "with another switch", settings)
        rows = switches.try_switches(attempt, self.built.post.graph, [name], self.progress)
        self.report["switches"] = [r.as_json() for r in rows]

"""Which kernel of inductor's, and which node of the graph, is wrong.

locate() compiles a graph once as inductor would, runs the generated wrapper
with a probe behind each kernel, holds every buffer to eager's value and to
double precision, and takes the first wrong kernel apart by small
compilations.  What is not certain is said to be not certain.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Callable, Optional

import torch
from torch import fx

import memory
import report
import stages
import switches
import truths
from compiled import Compiled, compile_graph
from forced import Finding, Run
from judge import same_bits
from narrow import Narrow, Trial, first_line, run_final


class Search:
    """The state of one call of locate."""

    def __init__(self, module: fx.GraphModule, inputs: list[Any], is_inference: bool, options: dict,
                 progress: Callable[[str], None]):
        self.module, self.inputs = module, inputs
        self.is_inference, self.options, self.progress = is_inference, dict(options), progress
        self.began = time.perf_counter()
        self.report = report.start()
        self.ref: Optional[stages.Reference] = None
        self.built: Optional[Compiled] = None
        self.values = truths.Values()
        self.defined: dict[str, torch.Tensor] = {}
        self.free: list[Any] = []
        self.free_bad: list = []

    def seconds(self) -> float:
        return round(time.perf_counter() - self.began, 3)

    def go(self) -> dict[str, Any]:
        """All steps; stops at the first that gives an answer."""
        if not self._reference() or not self._compile() or not self._free_run():
            return self._end()
        self._truths()
        run = self._forced_run()
        if run is None:
            return self._end()
        self.report["times"]["to_kernel"] = self.seconds()
        if run.overwritten:
            self._overwritten(run)
        elif run.findings:
            self._wrong_kernel(run)
        elif run.suspects and self.free_bad:
            run.findings = run.suspects
            self._wrong_kernel(run)
        elif self.free_bad:
            self._wrong_without_kernel(run)
        elif bad := wrong_strides(self.built, self.free):
            report.set_layout(self.report, self.built, run, bad)
        else:
            report.set_clean(self.report, run)
        return self._end()

    def _end(self) -> dict[str, Any]:
        self.report["times"]["total"] = self.seconds()
        if self.built is not None:
            self.report["notes"] += self.built.notes
            self.report["times"]["compile"] = round(self.built.seconds, 3)
        return self.report

    # Steps 1 and 2.

    def _reference(self) -> bool:
        self.progress("eager")
        try:
            self.ref = stages.reference(self.module, self.inputs)
        except Exception as e:  # the graph's own failure in eager is the answer
            report.set_exception(self.report, "eager", e, "", None, sure=True)
            self.report["reason"] = "the graph fails in eager too"
            return False
        return True

    def _compile(self) -> bool:
        given = fx.GraphModule(self.module, copy.deepcopy(self.module.graph))
        self.built = compile_graph(given, self.inputs, self.is_inference, self.options, self.progress)
        if self.built.error is None and self.built.post is not None and self.built.module is not None:
            return True
        if self.built.error is None:
            self.report["reason"] = "this torch's inductor did not hand over its graph and code"
            return False
        self._failed_compilation()
        return False

    def _failed_compilation(self) -> None:
        built = self.built
        kernel = report.kernel_of_failure(built)
        report.set_exception(self.report, built.stage, built.error, built.node if built.stage == "lowering" else "",
                             built, sure=True, kernel=kernel)

    def _free_run(self) -> bool:
        """The unforced run: PyTorch's own call, twice, to see whether it is steady and right."""
        self.progress("run freely")
        watch = Run(self.built, self.progress)
        try:
            watch.go(self.inputs)
            self.free = run_final(self.built, self.inputs)
            again = run_final(self.built, self.inputs)
        except Exception as e:  # a kernel that raises is the answer
            self._failed_run(watch, e)
            return False
        steady = all(same_bits(a, b) for a, b in zip(self.free, again) if isinstance(a, torch.Tensor))
        self.report["deterministic"] = steady
        if not steady:
            self.report["notes"].append("not deterministic: two runs of the compiled graph gave different bits")
        return True

    def _failed_run(self, watch: Run, error: Exception) -> None:
        report.set_exception(self.report, "run", error, "", self.built, sure=True, kernel=watch.current)

    def _truths(self) -> None:
        """Eager's value of every node after inductor's passes.  Random draws,
        and nodes that eager cannot run, are taken from the compiled run."""
        self.progress("truths")
        graph = self.built.post.graph
        _, self.values, _ = truths.run_eager(self.built.post, self.inputs)
        wanted = {n.name for n in graph.nodes if truths.is_random(n)
                  or isinstance(self.values.get(n.name), truths.Missing)}
        if wanted:
            watch = Run(self.built, _silent, wanted=wanted)
            watch.go(self.inputs)
            _, self.values, _ = truths.run_eager(self.built.post, self.inputs, given=watch.recorded)
            self.report["notes"].append(
                f"{len(wanted)} random or unknown nodes; {len(watch.recorded)} taken from the compiled run")
        if any(truths.is_empty(n) for n in graph.nodes):
            other = truths.run_eager(self.built.post, self.inputs, fill=3.0)[1]
            for name, a in self.values.items():
                b = other.get(name)
                if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.shape == b.shape:
                    self.defined[name] = a == b
        if not self.ref.random:
            self.free_bad = self.ref.wrong(self.free)

    # Step 3.

    def _forced_run(self) -> Optional[Run]:
        run = Run(self.built, self.progress, self.values, self.defined)
        try:
            self.forced_out, _ = run.go(self.inputs)
        except Exception as e:  # a kernel that raises on right inputs
            self._failed_run(run, e)
            return None
        self.report["tally"] = run.tally.as_json()
        return run

    # Steps 4 to 6.

    def _wrong_kernel(self, run: Run) -> None:
        finding = run.findings[0]
        again = Run(self.built, _silent, self.values, self.defined)
        again.go(self.inputs)
        repeated = any(f.buffer == finding.buffer for f in again.findings + again.suspects)
        report.set_kernel(self.report, self.built, run, finding)
        if not repeated:
            self.report["reason"] = "a second run of the same kernel was right: not deterministic"
            return
        self._narrow(run, finding)

    def _narrow(self, run: Run, finding: Finding) -> None:
        narrow = Narrow(self.built, self.values, run.layout, self.is_inference, self.options, self.progress)
        kernel = self.built.kernels[finding.kernel]
        same = [f for f in run.findings if f.kernel == finding.kernel]
        nodes = sorted((narrow.nodes[f.node] for f in same), key=narrow.order.__getitem__)
        known = run.frontier.get(finding.kernel, set())
        node, certain, why = narrow.search(known, nodes[0], nodes)
        self.report["held"] = narrow.held
        self.report["compilations"] = narrow.trials + 1
        report.set_node(self.report, self.built, node, certain)
        if not certain:
            self._memory_switches(finding)
        self._decide(finding, certain, why, kernel)
        self._switches(narrow, known, nodes[0], certain)

    def _decide(self, finding: Finding, certain: bool, why: str, kernel: Any) -> None:
        """Whether the accusation is certain."""
        reasons = []
        if not certain:
            reasons.append(why)
        if finding.unchecked_inputs:
            reasons.append("the kernel reads buffers that could not be judged: " + ", ".join(finding.unchecked_inputs))
        if finding.verdict.doubtful and not certain:
            reasons.append("there was no double-precision value to compare with")
        self.report["sure"] = not reasons
        self.report["reason"] = "; ".join(reasons)

    def _memory_switches(self, finding: Finding) -> None:
        """The whole graph again without memory planning: does the kernel become right?"""
        for switch in ("inplace_buffers", "allow_buffer_reuse"):
            self.progress(f"the whole graph with {switch} off")
            given = fx.GraphModule(self.module, copy.deepcopy(self.module.graph))
            built = compile_graph(given, self.inputs, self.is_inference, {**self.options, switch: False}, _silent)
            if built.error is not None:
                continue
            run = Run(built, _silent, truths.run_eager(built.post, self.inputs)[1], self.defined)
            run.go(self.inputs)
            if not any(f.node == finding.node for f in run.findings):
                self.report["held"].append(f"right_without:{switch}")

    def _overwritten(self, run: Run) -> None:
        """A buffer changed between its kernel and its reader."""
        found = memory.find_overwrites(self.built, self.inputs)
        names = {f["buffer"] for f in run.overwritten}
        guilty = [f for f in found if f["buffer"] in names]
        report.set_memory(self.report, self.built, run, guilty, bool(self.free_bad))

    # Step 7.

    def _wrong_without_kernel(self, run: Run) -> None:
        self.report["wrong_outputs"] = [{"what": w, **v.as_json()} for w, v in self.free_bad]
        stage = stages.wrong_stage(self.ref, self.built, self.inputs)
        if stage is not None:
            self._wrong_graph(stage)
            return
        eager_out = [self.values.get(a.name) if isinstance(a, fx.Node) else a for a in _outputs(self.built.post)]
        view = [i for i, (a, b) in enumerate(zip(self.forced_out, eager_out))
                if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not same_bits(a, b)]
        report.set_no_kernel(self.report, self.built, run, self.free_bad, view,
                             memory.find_overwrites(self.built, self.inputs))

    def _wrong_graph(self, stage: tuple[str, list]) -> None:
        name, bad = stage
        if name == "decompositions":
            node = stages.wrong_decomposition(self.ref)
            report.set_stage(self.report, name, bad, {"node": node} if node else None)
            return
        found = stages.wrong_pass(self.ref, self.built, self.inputs, self.is_inference, self.options, self.progress)
        report.set_stage(self.report, name, bad, found)

    # Item 5.

    def _switches(self, narrow: Narrow, known: set, bad: fx.Node, certain: bool) -> None:
        if not self.report.pop("want_switches", False) or not certain:
            return
        name = self.report["node"]["node"]
        alone = "one_node" in narrow.held
        node = narrow.nodes[name] if alone else bad
        nodes = narrow._with_tuples(node) if alone else narrow.between(known, [bad])

        def attempt(settings: dict[str, Any]) -> Trial:
            return narrow.attempt(nodes, [node], "with another switch", settings)
        rows = switches.try_switches(attempt, self.built.post.graph, [name], self.progress)
        self.report["switches"] = [r.as_json() for r in rows]


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


def _outputs(module: fx.GraphModule) -> list[Any]:
    out = next(n for n in module.graph.nodes if n.op == "output").args[0]
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _silent(_: str) -> None:
    """For runs that are not told."""


def locate(module: fx.GraphModule, inputs: list[Any], *, is_inference: bool, options: dict,
           progress: Callable[[str], None], want_switches: bool = False) -> dict[str, Any]:
    """Finds what inductor does wrong with a graph.

    module is an ATen-level graph, inputs its real tensors and integers (see
    sizes.py on how integers become symbols), options inductor settings to
    compile with.  progress gets a line before every step and every kernel,
    so that the last line names the kernel of a crash.  want_switches adds
    the table of switches (about one small compilation each).  The report is
    described in report.py.
    """
    search = Search(module, inputs, is_inference, options, progress)
    search.report["want_switches"] = want_switches
    result = search.go()
    result.pop("want_switches", None)
    return result

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

from . import eager_values
from . import report
from . import stages
from .compiled import compile_graph
from .conclude import Conclusions, silent
from .findings import OwnError
from .forced import Run
from .judge import same_bits
from .narrow import first_line, run_final


class Search(Conclusions):
    """The steps of one call of locate."""

    def seconds(self) -> float:
        return round(time.perf_counter() - self.began, 3)

    def go(self) -> dict[str, Any]:
        """All steps.  An error of ours ends the search and leaves what was found, as not certain."""
        try:
            return self._steps()
        except Exception as e:
            report.set_own_error(self.report, e)
            return self._end()

    def _steps(self) -> dict[str, Any]:
        """All steps; stops at the first that gives an answer."""
        if not self._reference() or not self._compile():
            return self._end()
        self._truths()
        run = self._forced_run()
        if run is None:
            return self._end()
        self.report["times"]["to_kernel"] = self.seconds()
        if run.outside or (run.findings and run.raised):
            run.findings = run.outside or run.findings
            self.wrong_kernel(run)
            return self._end()
        if not self._free_run():
            return self._end()
        if run.overwritten:
            self.overwritten(run)
        elif run.findings:
            self.wrong_kernel(run)
        elif run.suspects and self.free_bad:
            run.findings = run.suspects
            self.wrong_kernel(run)
        elif self.free_bad:
            self.wrong_without_kernel(run)
        elif bad := stages.wrong_strides(self.built, self.free):
            report.set_layout(self.report, self.built, run, bad)
        else:
            report.set_clean(self.report, self.ref.random and bool(run.tally.unmatched))
        return self._end()

    def _end(self) -> dict[str, Any]:
        self.report["times"]["total"] = self.seconds()
        if self.run is not None:
            report.set_buffers(self.report, self.built, self.run)
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
        try:
            self.free = run_final(self.built, self.inputs)
            again = run_final(self.built, self.inputs)
        except Exception as e:  # a call that raises is the answer
            report.set_exception(self.report, "run", e, "", self.built, sure=True)
            return False
        if not self.ref.random:
            self.free_bad = self.ref.wrong(self.free)
        steady = all(same_bits(a, b) for a, b in zip(self.free, again) if isinstance(a, torch.Tensor))
        self.report["deterministic"] = steady
        if not steady:
            self.report["notes"].append("not deterministic: two runs of the compiled graph gave different bits")
        return True

    def _truths(self) -> None:
        """Eager's value of every node after inductor's passes.  Random draws,
        and nodes that eager cannot run, are taken from the compiled run."""
        self.progress("truths")
        graph = self.built.post.graph
        _, self.values, _ = eager_values.run_eager(self.built.post, self.inputs)
        given: dict[str, Any] = {}
        wanted = {n.name for n in graph.nodes if eager_values.is_random(n)
                  or isinstance(self.values.get(n.name), eager_values.Missing)}
        if wanted:
            watch = Run(self.built, silent, wanted=wanted)
            watch.go(self.inputs)
            given = watch.recorded
            _, self.values, _ = eager_values.run_eager(self.built.post, self.inputs, given=given)
            self.report["notes"].append(
                f"{len(wanted)} random or unknown nodes; {len(watch.recorded)} taken from the compiled run")
        _, poison = eager_values.poisoned(self.built.post, self.inputs, given)
        for name, value in self.values.items():
            mask = eager_values.defined_elements(value, poison.get(name))
            if mask is not None:
                self.defined[name] = mask

    # Step 3.

    def _forced_run(self) -> Optional[Run]:
        run = self.run = Run(self.built, self.progress, self.values, self.defined)
        try:
            self.forced_out, _ = run.go(self.inputs)
        except OwnError:
            raise
        except Exception as e:  # a kernel that raises on right inputs
            self.report["tally"] = run.tally.as_json()
            if run.findings or run.outside:  # what went wrong before it is the cause
                self.report["notes"].append(f"{run.current} then raised {type(e).__name__}: {first_line(e)}")
                run.raised = True
                return run
            self.failed_run(run, e)
            return None
        self.report["tally"] = run.tally.as_json()
        return run


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
    return Search(module, inputs, is_inference, options, progress, want_switches).go()

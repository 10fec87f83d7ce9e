"""Which stage of PyTorch's compilation of dynamo's graph is wrong, then which
kernel and node.

Dynamo's graph in eager, and in double precision, is what all is held to: the
graphs that a log has, PyTorch's own graphs of the stages (flow.py), and last
what inductor makes of each graph that reaches it (locate.py).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable, Optional, Union

import torch
from torch import fx

from . import report
from .compiled import NAME_KEY, given_name, patches
from .eager_values import is_random
from .flow import BACKWARD, FORWARD, INFERENCE, Captured, Flow, Stage, copy_of_module, holders, interpret, output_args
from .judge import Verdict
from .locate import locate
from .narrow import first_line
from .outcomes import Reference, run
from .program import LogGraph, Program, with_all_values
from .stages import each_pass
from values import Refused

Bad = list[tuple[str, Verdict]]
SEARCHED = ("forward", "inference graph")  # the log's graphs that inductor got


class ProgramSearch:
    """The steps of one search."""

    def __init__(self, program: Program, progress: Callable[[str], None], want_switches: bool):
        self.program, self.progress, self.want_switches = program, progress, want_switches
        self.out: dict[str, Any] = {"graph": "stages", **report.start(), "stages": []}
        self.ref: Optional[Reference] = None
        self.flow: Optional[Flow] = None
        self.other_state: Optional[Program] = None
        self.searched: dict[str, tuple[str, Captured]] = {}  # by kind: the id in the log, and the graph

    def go(self) -> list[dict[str, Any]]:
        """The report on the stages, then one for each graph that inductor gets."""
        began = time.perf_counter()
        found = [self.out]
        try:
            if self._reference() and self._build():
                self._stages()
                if self.other_state is not None:
                    again = ProgramSearch(self.other_state, self.progress, self.want_switches)
                    again.out["notes"].append(f"the log was made under autocast to {self.other_state.autocast}")
                    return again.go()
                found += [self._search(kind) for kind in (FORWARD, INFERENCE, BACKWARD) if kind in self.searched]
                if all(r["verdict"] == "clean" for r in found):
                    self._whole()
        except Refused:
            raise
        except Exception as e:  # ours: what was found stays, as not certain
            report.set_own_error(self.out, e)
        self.out["times"]["total"] = round(time.perf_counter() - began, 3)
        return found if self.out["stages"] or self.out["verdict"] != "clean" else found[1:]

    def _reference(self) -> bool:
        if self.program.kind != "program" and not self.program.log:
            return True  # it is held to eager with its kernels
        self.progress("stages: the graph in eager")
        try:
            self.ref = self.program.reference()
        except Exception as e:  # the graph's own failure is the answer
            report.set_exception(self.out, "eager", e, "", None, sure=True)
            self.out["reason"] = "the graph fails in eager too"
            return False
        return True

    def _build(self) -> bool:
        """PyTorch's graphs of the stages, and one run of them, which also compiles the backward."""
        if self.program.kind != "program":
            captured = Captured(self.program.kind, self.program.module, self.program.inputs)
            self.searched = {self.program.kind: ("", captured)}
            return True
        self.progress("stages: AOTAutograd")
        try:
            flow = self.program.flow()
        except Exception as e:
            self._failed(e)
            return False
        try:
            self.program.call(flow.call)
        except Exception as e:  # AOTAutograd's wrappers were made for a call by dynamo
            raise Refused(f"PyTorch's graphs could not be run here: {type(e).__name__}: {first_line(e)}") from e
        self.flow = flow
        self.out["notes"] += flow.notes
        self.searched = {kind: ("", captured) for kind, captured in flow.graphs.items()}
        return True

    def _failed(self, error: Exception) -> None:
        """AOTAutograd raised.  Our call of it differs from dynamo's, so it is told only when dynamo's raises too."""
        import torch._dynamo
        torch._dynamo.reset()
        same = False
        try:
            self.program.call(torch.compile(copy_of_module(self.program.module), backend="aot_eager", fullgraph=True))
        except Exception as e:
            inner = getattr(e, "inner_exception", None) or e
            same = type(inner) is type(error) and first_line(inner) == first_line(error)
        if not same:
            raise Refused(f"PyTorch's graphs could not be made here: {type(error).__name__}: {first_line(error)}")
        report.set_exception(self.out, "AOTAutograd", error, "", None, sure=False)
        self.out["reason"] = "torch.compile without inductor raises the same, but dynamo may never make such a graph"

    # Stages.

    def _stages(self) -> None:
        """Tries the stages in turn, the log's first; tells the first that is wrong."""
        if any(is_random(n) for _, c in self.searched.values() for n in c.module.graph.nodes):
            self.out.update(verdict="clean", reason="the graph draws random numbers, so its stages were not compared")
            return
        if self.ref is not None and self.ref.eager.writes_differentiated:
            self.out.update(verdict="clean", reason="the graph writes to inputs that it is differentiated by, so its "
                                                    "stages were not compared")
            return
        if self.program.train and BACKWARD not in self.searched:
            self.out["notes"].append("no result depends on an input that requires a gradient: there is no backward")
        theirs = self._of_log()
        for source, stage in theirs:
            bad = self._try(source, stage)
            if not bad and stage.name in SEARCHED and self._ran(stage):  # names are the user's own there
                self.searched.update({kind: (self._id_of(source, kind), c) for kind, c in stage.graphs.items()})
            if bad and self.program.autocast is None and self._under_autocast(stage):
                return
            if bad:
                self._accuse(source, stage, bad)
                break
        for stage in self._own():
            bad = self._try("", stage)
            if bad:
                self._accuse("", stage, bad)
                return
        if self.out["verdict"] != "stage":
            report.set_clean(self.out, False)
        elif self.flow is not None:
            self.out.update(sure=False, reason="PyTorch makes a right graph here; that of the log may be of another "
                                               "version or state")

    def _under_autocast(self, stage: Stage) -> bool:
        """Dynamo's graph does not show that it was made under autocast.  Where a graph of the log agrees with it in
        that state, all is done again in it."""
        for dtype in (torch.bfloat16, torch.float16):
            other = replace(self.program, autocast=dtype)
            try:
                right = not other.reference().wrong(self._outcome(stage))
            except Exception:  # a state in which the graph does not run is not the one
                continue
            if right:
                self.other_state = other
                return True
        return False

    def _own(self) -> list[Stage]:
        if self.flow is None:
            return []
        found = self.flow.stages()
        if self.flow.pre_grad is not None:
            found.insert(0, self._before_aot("pre-grad passes", self.flow.pre_grad))
        return found

    def _before_aot(self, name: str, module: fx.GraphModule) -> Stage:
        """A graph of dynamo's level, which is called in the place of all."""
        return Stage(name, lambda values: interpret(module, values), before_aot=True)

    def _try(self, source: str, stage: Stage) -> Bad:
        """What is wrong when a stage's graphs stand in the place of generated code."""
        self.progress(f"stages: {stage.name}" + (f" ({source})" if source else ""))
        row = self._row(stage.name, source, "right")
        try:
            found = self._outcome(stage)
        except Exception as e:  # a graph that does not run here is not judged
            row.update(verdict="not judged", note=f"{type(e).__name__}: {first_line(e)}")
            return []
        bad = self.ref.wrong(found)
        if bad:
            row.update(verdict="wrong", note="; ".join(f"{what}: {v.kind}" for what, v in bad[:4]))
        return bad

    def _row(self, name: str, source: str, verdict: str, note: str = "") -> dict[str, Any]:
        self.out["stages"].append({"stage": name, "source": source, "verdict": verdict, "note": note})
        return self.out["stages"][-1]

    def _outcome(self, stage: Stage) -> Any:
        if stage.before_aot:
            return self.program.call(lambda *values: stage.forward(list(values)))
        self.flow.stage = stage
        try:
            return self.program.call(self.flow.call)
        finally:
            self.flow.stage = None

    def _accuse(self, source: str, stage: Stage, bad: Bad) -> None:
        report.set_stage(self.out, stage.name, bad, None)
        self.out["source"] = source
        if not source and stage.name == "AOTAutograd" and (name := self._wrong_node()):
            node = next(n for n in self.program.module.graph.nodes if given_name(n) == name)
            self.out["node"] = {"node": name, "op": str(node.target), "given": [name], "stack": [],
                                "sure": self.out["sure"]}
        if not source and stage.name == "joint passes":
            self.out["pass"] = self._wrong_joint_pass()

    def _wrong_node(self) -> Optional[str]:
        """The first node of dynamo's graph that AOTAutograd's graph has another value for, when all are results."""
        module = with_all_values(self.program.module, self.program.inputs)
        if module is None:
            return None
        self.progress("stages: all values of dynamo's graph as results")
        inputs = [v.detach() if isinstance(v, torch.Tensor) else v for v in self.program.inputs]
        try:
            ref = Reference(module, inputs, [], False)
            flow = Flow(module, inputs, False, self.program.options)
            bad = ref.wrong(run(flow.call, inputs, [], False))
        except Exception:  # not every graph can give all its values
            return None
        numbers = [int(what.split()[1]) for what, _ in bad if what.startswith("output ")]
        return given_name(output_args(module)[min(numbers)]) if numbers else None

    def _wrong_joint_pass(self) -> Optional[dict[str, Any]]:
        """The pass of inductor's behind which the joint graph is wrong."""
        import torch._inductor.compile_fx as fx_compiler
        import torch._inductor.config as config
        from torch._guards import TracingContext, detect_fake_mode, tracing
        from torch._inductor.virtualized import V
        state: dict[str, Any] = {"text": str(self.flow.joint[0].graph), "found": None}
        module = copy_of_module(self.flow.joint[0])

        def check(name: str, _: fx.GraphModule) -> None:
            text = str(module.graph)
            if state["found"] is None and text != state["text"]:
                stage = self.flow.before_partition(name, copy_of_module(module))
                if self.ref.wrong(self._outcome(stage)):
                    state["found"] = report.pass_json(name, state["text"], text)
                state["text"] = text
        mode = detect_fake_mode([n.meta.get("val") for n in module.graph.nodes])
        try:
            with config.patch(patches(module, self.program.options, [])), each_pass(check), torch.no_grad(), \
                    tracing(TracingContext(mode)), V.set_fake_mode(mode):
                fx_compiler._recursive_joint_graph_passes(module)
        except Exception as e:  # the passes expect to be called by compile_fx
            self.out["notes"].append(f"the pass is not known: {type(e).__name__}: {first_line(e)}")
        return state["found"]

    # The log's graphs.

    def _of_log(self) -> list[tuple[str, Stage]]:
        """The log's graphs that take and give what PyTorch's own do; the others are told."""
        found = []
        for one in self.program.log:
            stage = self._stage_of(one)
            if isinstance(stage, str):
                self._row(one.role, one.id, "not judged", stage)
            else:
                found.append((one.id, stage))
        return found

    def _stage_of(self, one: LogGraph) -> Union[Stage, str]:
        """A stand-in, or why there is none."""
        for module in (one.module, one.backward):
            if isinstance(module, str):
                return module
        early = self.flow is None or one.role == "pre-grad passes"
        kind = FORWARD if FORWARD in self.searched else INFERENCE
        own = self.program.module if early else self.flow.graphs[kind].module
        if one.role == "joint graph" and kind == FORWARD and self.flow.joint:
            own = self.flow.joint[0]
        takes, gives = len(holders(one.module)), len(output_args(one.module))
        least = self.flow.results if kind == FORWARD and not early else len(output_args(own))
        if takes != len(holders(own)):
            return f"it takes {takes} inputs, and PyTorch's graph here takes {len(holders(own))}"
        if gives < least:
            return f"it gives {gives} results, and PyTorch's graph here gives {least}"
        if early:
            return self._before_aot(one.role, one.module)
        if kind == INFERENCE or one.role == "joint graph":
            return self.flow.before_partition(one.role, one.module)
        if one.role == "inference graph" or (one.backward is None and BACKWARD in self.flow.graphs):
            return "the log has no backward that goes with it"
        return self.flow.pair(one.role, one.module, one.backward)

    def _ran(self, stage: Stage) -> bool:
        return self.out["stages"][-1]["verdict"] == "right" and all(c.inputs for c in stage.graphs.values()
                                                                     if holders(c.module))

    def _id_of(self, source: str, kind: str) -> str:
        return next((g.backward_id or "" for g in self.program.log if g.id == source), "") if kind == BACKWARD else source

    # Kernels.

    def _search(self, kind: str) -> dict[str, Any]:
        """What inductor makes of one graph.  Names are the log's where the graph is the log's, else dynamo's."""
        source, captured = self.searched[kind]
        name = BACKWARD if kind == BACKWARD else FORWARD
        of_file = bool(source) or self.flow is None
        names = {n.name: (n.meta.get("custom") or {}).get(NAME_KEY) for n in captured.module.graph.nodes}
        found = locate(captured.module, captured.inputs, is_inference=kind == INFERENCE, options=self.program.options,
                       progress=lambda at: self.progress(f"{name}: {at}"), want_switches=self.want_switches)
        if not of_file:
            report.rename_given(found, names)
        return {"graph": name, "artefact": source, **found}

    def _whole(self) -> None:
        """All of it by inductor, where each graph alone is right."""
        from torch._inductor.compile_fx import compile_fx_inner
        if self.out["reason"] or self.flow is None:
            return
        self.progress("stages: all of it by inductor")
        try:
            flow = self.program.flow(compile_fx_inner)
            bad = self.ref.wrong(self.program.call(flow.call))
            again = self.ref.wrong(self.program.call(flow.call)) if bad else []
        except Exception as e:  # its graphs alone did not raise, and our call is not dynamo's
            self._row("all of it by inductor", "", "not judged", f"{type(e).__name__}: {first_line(e)}")
            return
        if bad and again:
            self.out.update(verdict="unsure", sure=False, reason="each graph alone is right, and the whole is not",
                            wrong_outputs=[{"what": w, **v.as_json()} for w, v in bad])
            self._row("all of it by inductor", "", "wrong", "; ".join(f"{what}: {v.kind}" for what, v in bad[:4]))
        elif bad:
            self.out["notes"].append("the whole was wrong once and right once: it is not deterministic")
        else:
            self._row("all of it by inductor", "", "right")


def locate_program(program: Program, progress: Callable[[str], None], want_switches: bool) -> list[dict[str, Any]]:
    """Searches a program; a report, as report.py describes it, for its stages and for each graph that inductor gets."""
    return ProgramSearch(program, progress, want_switches).go()

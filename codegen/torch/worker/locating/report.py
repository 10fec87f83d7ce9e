"""The report that locate gives, as plain data.

verdict    "clean"; "kernel": a kernel of inductor's is wrong; "memory": a
           buffer is overwritten while it is needed; "stage": the graph itself
           is wrong after a stage; "layout": an output has other strides than
           eager's; "wrapper": the outputs are taken wrongly
           from right buffers; "exception": something raised; "unsure": the
           results differ and the cause is not known.
sure       whether the accusation is certain; reason says why not.
graph      "stages", "forward" (also one of inference) or "backward", where a search began with dynamo's graph or a log's:
           one report for the stages before inductor, then one for each graph that inductor gets.  artefact is its id
           in the log, or "" where PyTorch made it here; given nodes are dynamo's then.
stages     of the report on the stages, in the order tried: {"stage", "source": id in the log, "" for PyTorch's own here,
           "verdict": "right", "wrong" or "not judged", "note"}.
stage      eager, trace, post-grad passes, lowering, code generation,
           compilation of kernels, run, decompositions; of the report on the stages: pre-grad passes, AOTAutograd,
           joint passes, partition, or with source the id of the log's graph that is wrong.
pass       of a wrong stage: {"pass": name, "removed": lines, "added": lines}.
kernel     key, name, place in the order of calls, its nodes, its code; its own
           "sure" may be true where the node is not certain.
node       the wrong node after inductor's passes, the nodes of the given
           graph behind it, its operator and stack.
held       what still failed when the kernel was taken apart: "one_node",
           "all_outputs", "kernel_alone", "between_negations" (the node between
           two exact operators), "prefix" (the nodes up to this one),
           "with_producer:NODE", "with_consumer:NODE", "right_without:SETTING".
fused_with the kernel's other nodes, when the node is only wrong among them.
evidence   one entry for each wrong buffer.
buffers    one row for each buffer that was judged, wrong ones first, at most MOST_BUFFERS: {"node": after inductor's
           passes, "given": the given graph's nodes behind it, "kernel": the key of the kernel that wrote it,
           "rms_ratio": its error by eager's (0 for equal bits; text for NaN and infinity), "z": of the mean signed
           difference, "error": largest absolute, "wrong": true or false, "kind": "ok" or the rule that it broke, see
           judge.py}.
kernels    one row for each kernel in the order of calls, at most MOST_BUFFERS: {"key", "name", "nodes": after
           inductor's passes, "given": of the given graph}.  A fused kernel has nodes without a buffer.
switches   see switches.py; only when asked.
own_error  the trace of a failure of locate itself; reason says so too.
tally, times, notes, deterministic, compilations: what was done.
"""

from __future__ import annotations

import ast
import traceback
from typing import Any, Optional

import torch

MOST_BUFFERS = 20000


def start() -> dict[str, Any]:
    """An empty report."""
    return {"verdict": "unsure", "sure": False, "reason": "", "stage": "", "kernel": None, "node": None, "held": [],
            "fused_with": [], "evidence": [], "other_kernels": [], "wrong_outputs": [], "switches": [], "buffers": [],
            "kernels": [], "tally": {}, "times": {}, "notes": [], "deterministic": None, "compilations": 1,
            "torch": torch.__version__}


def set_clean(out: dict[str, Any], unseen: bool) -> None:
    """No kernel and no output is wrong, as far as they could be judged."""
    out.update(verdict="clean", sure=not unseen)
    if unseen:
        out["reason"] = "random draws are in the outputs, and some buffers could not be judged"


def set_excused(out: dict[str, Any]) -> None:
    """A kernel differs by more than its own rounding explains, but no node of it does alone, and results are right."""
    out.update(verdict="clean", sure=False)
    out["kernel"]["sure"] = False
    out["reason"] = (f"{out['kernel']['name']} differs from eager by more than rounding within it explains, but no "
                     "node of it alone, and the results are right")


def set_exception(out: dict[str, Any], stage: str, error: BaseException, node: str, built: Any, sure: bool,
                  kernel: Optional[str] = None) -> None:
    """Something raised: its type and first line, and what was being worked on."""
    text = [line for line in str(error).splitlines() if line.strip()]
    out.update(verdict="exception", sure=sure, stage=stage)
    out["exception"] = {"type": _cause(error), "message": text[0][:400] if text else "", "text": str(error)[:4000],
                        "trace": traceback.format_exception(type(error), error, error.__traceback__)[-6:]}
    if node:
        set_node(out, built, node, sure)
    if kernel:
        out["kernel"] = describe_kernel(built, kernel)


def set_own_error(out: dict[str, Any], error: BaseException) -> None:
    """A failure of locate itself: what was found stays, but is not certain."""
    out["sure"] = False
    if out["node"]:
        out["node"]["sure"] = False
    out["reason"] = f"locate failed: {type(error).__name__}: {error}"
    out["own_error"] = traceback.format_exception(type(error), error, error.__traceback__)[-8:]


def _cause(error: BaseException) -> str:
    """The class of the exception that inductor wrapped in its own."""
    inner = getattr(error, "inner_exception", None)
    return type(inner if inner is not None else error).__name__


def kernel_of_failure(built: Any) -> Optional[str]:
    """The kernel whose definition was being loaded when the wrapper raised."""
    if built.stage != "compilation of kernels" or not built.text:
        return None
    lines = built.text.splitlines()
    trace = built.error.__traceback__
    name = None
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "<module>" and trace.tb_lineno <= len(lines):
            name = _assigned_at(built.text, trace.tb_lineno)
        trace = trace.tb_next
    return next((k for k, v in built.kernels.items() if v.name == name), None)


def _assigned_at(text: str, line: int) -> Optional[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return getattr(node.targets[0], "id", None)
    return None


def kernel_code(text: str, name: str) -> str:
    """The definition of a kernel in the wrapper's text, or the lines that call it."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.get_source_segment(text, node) or ""
    return "\n".join(line.strip() for line in text.splitlines() if name + "(" in line)[:4000]


def describe_kernel(built: Any, key: str, keys: Optional[list[str]] = None) -> dict[str, Any]:
    """A kernel with its nodes and its code."""
    kernel = built.kernels.get(key)
    name = key.rsplit(":", 1)[0]
    keys = keys or list(built.kernels)
    nodes = [describe_node(built, n) for n in (kernel.nodes if kernel else [])]
    return {"key": key, "name": name, "number": keys.index(key) + 1 if key in keys else None, "of": len(keys),
            "extern": bool(kernel and kernel.extern), "sure": False, "nodes": nodes, "code": kernel_code(built.text, name)}


def describe_node(built: Any, name: str) -> dict[str, Any]:
    """A node after inductor's passes, with the given graph's nodes behind it."""
    for n in built.post.graph.nodes if built.post is not None else ():
        if n.name == name:
            return {"node": name, "op": str(n.target), "given": built.source_of(name),
                    "stack": (n.meta.get("stack_trace") or "").strip().splitlines()[-2:]}
    return {"node": name, "op": "", "given": [], "stack": []}


def set_node(out: dict[str, Any], built: Any, name: Optional[str], certain: bool) -> None:
    """The accused node."""
    if name is not None:
        out["node"] = {**describe_node(built, name), "sure": certain}


def finding_json(finding: Any) -> dict[str, Any]:
    """One wrong buffer."""
    return {"kernel": finding.kernel, "buffer": finding.buffer, "node": finding.node,
            "unchecked_inputs": finding.unchecked_inputs, **finding.verdict.as_json()}


def set_kernel(out: dict[str, Any], built: Any, run: Any, finding: Any) -> None:
    """The first wrong kernel, and the other ones that were wrong on right inputs."""
    out.update(verdict="kernel", stage="code")
    out["kernel"] = describe_kernel(built, finding.kernel, run.keys)
    out["node"] = {**describe_node(built, finding.node), "sure": False}
    out["evidence"] = [finding_json(f) for f in run.findings[:50]]
    others: list[str] = []
    for f in run.findings:
        if f.kernel != finding.kernel and f.kernel not in others:
            others.append(f.kernel)
    out["other_kernels"] = others


def set_buffers(out: dict[str, Any], built: Any, run: Any) -> None:
    """What was judged, and which kernel each node is in."""
    sources = built.sources()

    def given(nodes: list[str]) -> list[str]:
        return list(dict.fromkeys(sources[n] for n in nodes if n in sources))
    wrong = {(f.kernel, f.buffer): f.verdict for f in run.findings + run.outside}
    suspects = {(f.kernel, f.buffer) for f in run.suspects} - set(wrong)
    rows = []
    for judged in run.rows:
        at = (judged.kernel, judged.buffer)
        if at in suspects:  # it may be another node's value
            continue
        verdict = (wrong.get(at) or judged.verdict).as_json()
        rows.append({"node": judged.node, "given": given([judged.node]), "kernel": judged.kernel,
                     "rms_ratio": verdict["rms_ratio"], "z": verdict["z"], "error": verdict["error"],
                     "wrong": at in wrong, "kind": verdict["kind"]})
    out["buffers"] = sorted(rows, key=lambda row: not row["wrong"])[:MOST_BUFFERS]
    called = [built.kernels[key] for key in run.keys if key in built.kernels]
    out["kernels"] = [{"key": k.key, "name": k.name, "nodes": k.nodes, "given": given(k.nodes)}
                      for k in called[:MOST_BUFFERS]]


def set_memory(out: dict[str, Any], built: Any, run: Any, guilty: list[dict[str, Any]], outputs_wrong: bool) -> None:
    """A buffer that is overwritten while it is still needed."""
    out.update(verdict="memory", stage="code", evidence=run.overwritten + guilty)
    out["kernel"] = describe_kernel(built, guilty[0]["kernel"], run.keys) if guilty else None
    first = run.overwritten[0]
    out["node"] = {**describe_node(built, first["node"]), "sure": False}
    out["sure"] = bool(guilty) and outputs_wrong
    if not out["sure"]:
        out["reason"] = "a buffer changed before it was read, but " + (
            "the results are right" if guilty else "the kernel that wrote into it was not found")


def set_layout(out: dict[str, Any], built: Any, run: Any, bad: list[dict[str, Any]]) -> None:
    """Right values in wrong strides."""
    first = bad[0]
    out.update(verdict="layout", stage="code", sure=True, wrong_outputs=bad)
    writers = [k.key for k in built.kernels.values() if first["node"] in k.nodes]
    if writers:
        out["kernel"] = describe_kernel(built, writers[-1], run.keys)
    if first["node"]:
        set_node(out, built, first["node"], True)


def set_stage(out: dict[str, Any], stage: str, bad: list, found: Optional[dict[str, Any]]) -> None:
    """The graph after a stage gives other results in eager."""
    doubtful = all(v.doubtful for _, v in bad)
    out.update(verdict="stage", stage=stage, sure=not doubtful)
    out["wrong_outputs"] = [{"what": w, **v.as_json()} for w, v in bad]
    if doubtful:
        out["reason"] = "there was no double-precision value to compare with"
    if found and found.get("node"):
        out["node"] = {"node": found["node"], "op": "", "given": [found["node"]], "stack": [], "sure": True}
    elif found:
        out["pass"] = found


def pass_json(name: str, before: str, after: str) -> dict[str, Any]:
    """A pass, and the lines of the graph that it changed."""
    old, new = before.splitlines(), after.splitlines()
    return {"pass": name, "removed": [line.strip() for line in old if line not in new][:20],
            "added": [line.strip() for line in new if line not in old][:20]}


def rename_given(out: dict[str, Any], names: dict[str, Optional[str]]) -> None:
    """Says the names of dynamo's graph in place of those of the graph made of it."""
    def renamed(given: list[str]) -> list[str]:
        return list(dict.fromkeys(names[g] for g in given if names.get(g)))
    rows = [out["node"], *(out["kernel"] or {}).get("nodes", []), *out["buffers"], *out["kernels"]]
    for row in rows:
        if row:
            row["given"] = renamed(row["given"])


def set_no_kernel(out: dict[str, Any], built: Any, run: Any, bad: list, views: list[int],
                  overwrites: list[dict[str, Any]]) -> None:
    """Results are wrong though every kernel and every graph is right."""
    if views:
        out.update(verdict="wrapper", stage="code", sure=not run.tally.unmatched)
        out["reason"] = f"outputs {views} are not what the buffers behind them hold" + (
            "; not certain, because some buffers could not be judged" if run.tally.unmatched else "")
        return
    if overwrites:
        out.update(verdict="memory", stage="code", evidence=overwrites)
        out["kernel"] = describe_kernel(built, overwrites[0]["kernel"], run.keys)
        out["reason"] = "results are wrong in sequence, and a buffer that was still named was overwritten"
        return
    out["reason"] = "the results differ, but no kernel is wrong on right inputs" + (
        f"; {len(run.tally.unmatched)} buffers could not be judged" if run.tally.unmatched else "")
    kinds = {v.kind for _, v in bad}
    if kinds <= {"rms", "bias", "peak"} and all(v.ratio < 50 for _, v in bad):
        out["reason"] += "; the differences are small, and may be rounding that adds up"

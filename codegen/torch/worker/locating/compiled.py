"""One compilation by inductor, with all that is needed to judge its kernels.

Relied on (checked with torch 2.13; older names are looked for where known):
torch._inductor.compile_fx.compile_fx_inner, GraphLowering (run, run_node,
codegen, compile_to_module, buffers, module),
torch._inductor.debug.set_kernel_post_grad_provenance_tracing,
torch._inductor.decomposition.select_decomp_table, make_fx, and node.meta
["custom"], which survives tracing and inductor's pattern matcher.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

import torch
import torch.fx.traceback as fx_traceback
from torch import fx

from .sizes import fake_inputs
from .eager_values import is_random, mutated_args

Progress = Callable[[str], None]
NAME_KEY = "partita_node"


@dataclass
class Kernel:
    """One call in the generated wrapper: its key is NAME:HANDLE."""

    key: str
    extern: bool
    nodes: list[str] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)  # (buffer that holds it, buffer of the operation)
    reads: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.key.rsplit(":", 1)[0]


@dataclass
class Compiled:
    """What one compilation left behind; error is set when it raised."""

    traced: Optional[fx.GraphModule] = None
    fakes: list[Any] = field(default_factory=list)
    post: Optional[fx.GraphModule] = None
    lowering: Any = None
    text: str = ""
    module: Any = None
    kernels: dict[str, Kernel] = field(default_factory=dict)
    final: Any = None
    seconds: float = 0.0
    error: Optional[BaseException] = None
    stage: str = "trace"
    node: str = ""
    notes: list[str] = field(default_factory=list)

    def source_of(self, node_name: str) -> list[str]:
        """Nodes of the given graph that a node after inductor's passes comes from."""
        given = self.sources().get(node_name)
        return [given] if given else []

    def sources(self) -> dict[str, str]:
        """Node after inductor's passes -> the given graph's node that it comes from, where that is known."""
        found: dict[str, str] = {}
        for graph in (self.traced, self.post):
            for n in graph.graph.nodes if graph is not None else ():
                given = (n.meta.get("custom") or {}).get(NAME_KEY)
                found.pop(n.name, None)
                if given:
                    found[n.name] = given
        return found


def label_nodes(module: fx.GraphModule) -> None:
    """Writes each node's name into its metadata, where tracing copies it on."""
    for n in module.graph.nodes:
        n.meta["custom"] = {**(n.meta.get("custom") or {}), NAME_KEY: given_name(n)}


def given_name(node: fx.Node) -> str:
    """A node's name in the file: FX renames some of them, "sum" for instance."""
    return node.meta.get("partita_name", node.name)


def mutates_early(module: fx.GraphModule) -> bool:
    """Whether a node other than a final copy_ into an input writes to an argument."""
    for n in module.graph.nodes:
        if n.op != "call_function":
            continue
        for target in mutated_args(n):
            last = n.target is torch.ops.aten.copy_.default and target.op == "placeholder" and all(
                user.op == "output" for user in n.users)
            if not last:
                return True
    return False


def trace_or_fix(module: fx.GraphModule, inputs: list[Any], notes: list[str]) -> tuple[fx.GraphModule, list[Any]]:
    """Traces with symbols; where that raises, with the sizes as numbers, and says so."""
    if not any(type(x) is int for x in inputs):
        return trace(module, inputs, notes)
    try:
        return trace(module, inputs, notes)
    except Exception as e:  # often a guess of ours about which sizes are symbols
        notes.append(f"traced with fixed sizes, because symbols failed: {type(e).__name__}: {str(e)[:200]}")
        return trace(module, inputs, notes, symbols=False)


def trace(module: fx.GraphModule, inputs: list[Any], notes: list[str],
          symbols: bool = True) -> tuple[fx.GraphModule, list[Any]]:
    """The graph that inductor would get: make_fx with its decompositions, on
    fake inputs; integers among the inputs become symbols."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx
    label_nodes(module)
    mode, fakes = fake_inputs(module, inputs, symbols)
    call = fx.Interpreter(module).run
    if mutates_early(module):
        notes.append("the graph writes in place; it was made functional first")
        call = torch.func.functionalize(call, remove="mutations")
    with torch.no_grad(), mode, enable_python_dispatcher(), fx_traceback.preserve_node_meta():
        traced = make_fx(_flat(call), decomposition_table=select_decomp_table())(*fakes)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return traced, fakes


def _flat(call):
    """Lets a graph return what inductor requires: a tuple, without plain numbers."""
    def run(*args):
        out = call(*args)
        out = out if isinstance(out, (tuple, list)) else (out,)
        return tuple(None if type(o) in (int, float, bool) else o for o in out)
    return run


def patches(module: fx.GraphModule, options: dict, notes: list[str]) -> dict[str, Any]:
    """Inductor settings of a compilation that is looked at: one process, no
    cache in front of the lowering, provenance on, then the caller's."""
    import torch._inductor.config as config
    wanted = {"compile_threads": 1, "fx_graph_cache": False, "fx_graph_remote_cache": False,
              "trace.provenance_tracking_level": 1}
    if any(is_random(n) for n in module.graph.nodes) and "fallback_random" not in options:
        wanted["fallback_random"] = True
        notes.append("the graph draws random numbers: compiled with fallback_random, so that eager draws the same")
    wanted.update(options)
    known = config.get_config_copy() if hasattr(config, "get_config_copy") else config.to_dict()
    own = {k for k in wanted if k in known or k in options}
    return {k: v for k, v in wanted.items() if k in own}


def compile_graph(module: fx.GraphModule, inputs: list[Any], is_inference: bool, options: dict,
                  progress: Progress) -> Compiled:
    """Compiles once as inductor would; an exception is a result."""
    import torch._dynamo  # noqa: F401  inductor's modules expect both to be loaded
    import torch._inductor.config as config
    import torch._inductor.lowering  # noqa: F401
    out = Compiled()
    began = time.perf_counter()
    try:
        with config.patch(patches(module, options, out.notes)):
            progress("trace")
            traced, out.fakes = trace_or_fix(module, inputs, out.notes)
            out.traced = fx.GraphModule(traced, copy.deepcopy(traced.graph))
            _inner(out, traced, is_inference, progress)
    except Exception as e:  # a compiler that raises is a finding, not our failure
        out.error = e
    out.seconds = time.perf_counter() - began
    return out


def lower(traced: fx.GraphModule, fakes: list[Any], is_inference: bool) -> Any:
    """What compile_fx_inner makes of a traced graph: a function that takes a list, which it empties."""
    from torch._guards import TracingContext, tracing
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.virtualized import V
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    mode = next((f.fake_mode for f in fakes if hasattr(f, "fake_mode")), None)
    result = next(n for n in traced.graph.nodes if n.op == "output")
    if is_inference:
        result.meta["user_visible_output_idxs"] = [
            i for i, a in enumerate(result.args[0]) if isinstance(a, fx.Node)]
    guard = contextlib.nullcontext() if mode is None else tracing(TracingContext(mode))
    faked = contextlib.nullcontext() if mode is None else V.set_fake_mode(mode)
    with torch.no_grad(), guard, faked:
        return compile_fx_inner(traced, [n.meta["val"] for n in holders], is_inference=is_inference)


def _inner(out: Compiled, traced: fx.GraphModule, is_inference: bool, progress: Progress) -> None:
    out.stage = "post-grad passes"
    progress("compile: post-grad passes")
    with watched(out, progress):
        out.final = lower(traced, out.fakes, is_inference)
    out.stage = "done"


@contextlib.contextmanager
def watched(out: Compiled, progress: Progress) -> Iterator[None]:
    """Replaces a few functions of inductor by ones that also tell us what
    they do, for the length of one compilation."""
    import torch._inductor.debug as debug
    from torch._inductor.graph import GraphLowering
    saved = {name: getattr(GraphLowering, name)
             for name in ("run", "run_node", "codegen", "compile_to_module") if hasattr(GraphLowering, name)}

    def run(self, *args):
        if out.lowering is None:
            out.lowering, out.stage = self, "lowering"
            out.post = self.module
            progress("compile: lowering")
        return saved["run"](self, *args)

    def run_node(self, n):
        out.node = n.name
        return saved["run_node"](self, n)

    def codegen(self, *args, **kwargs):
        out.stage, out.node = "code generation", ""
        progress("compile: code generation")
        result = saved["codegen"](self, *args, **kwargs)
        wrapper = result[0] if isinstance(result, tuple) else result
        out.text = getattr(wrapper, "value", wrapper)
        return result

    def compile_to_module(self, *args, **kwargs):
        result = _load_module(out, saved["compile_to_module"], progress, self, *args, **kwargs)
        out.module = result
        return result

    hooked = _hook_provenance(debug, out)
    for name, replacement in (("run", run), ("run_node", run_node), ("codegen", codegen),
                              ("compile_to_module", compile_to_module)):
        setattr(GraphLowering, name, replacement)
    try:
        yield
    finally:
        for name, original in saved.items():
            setattr(GraphLowering, name, original)
        for module, original in hooked:
            module.set_kernel_post_grad_provenance_tracing = original


def _load_module(out: Compiled, original, progress: Progress, lowering, *args, **kwargs):
    """Writes and loads the wrapper; PyCodeCache.load_by_key_path is the point
    after which g++ runs."""
    from torch._inductor.codecache import PyCodeCache
    load = PyCodeCache.__dict__["load_by_key_path"]

    def load_by_key_path(cls, *a, **k):
        out.stage = "compilation of kernels"
        progress("compile: kernels")
        return load.__func__(cls, *a, **k)
    PyCodeCache.load_by_key_path = classmethod(load_by_key_path)
    try:
        return original(lowering, *args, **kwargs)
    finally:
        PyCodeCache.load_by_key_path = load


def _hook_provenance(debug: Any, out: Compiled) -> list[tuple[Any, Any]]:
    """Wraps the function that numbers kernels wherever inductor imported it."""
    original = getattr(debug, "set_kernel_post_grad_provenance_tracing", None)
    if original is None:
        out.notes.append("this torch numbers no kernels: kernels are known by their buffers only")
        return []

    def numbered(node_schedule, kernel_name, is_extern=False):
        handle = original(node_schedule, kernel_name, is_extern)
        key = f"{kernel_name}:{handle}"
        kernel = out.kernels.setdefault(key, Kernel(key, is_extern))
        for op in [node_schedule] if is_extern else node_schedule:
            _describe(kernel, op if is_extern else getattr(op, "node", None))
        return handle
    hooked = []
    for name, module in list(sys.modules.items()):
        if name.startswith("torch._inductor") and \
                getattr(module, "set_kernel_post_grad_provenance_tracing", None) is original:
            hooked.append((module, original))
            module.set_kernel_post_grad_provenance_tracing = numbered
    return hooked


def own_node(op: Any) -> Any:
    """The node whose value an operation or buffer of inductor's is.  Inductor names one that only writes into a buffer
    later, too; that is not among its origins."""
    node = op.get_origin_node() if hasattr(op, "get_origin_node") else None
    wrong = node is not None and mutated_args(node) and node not in getattr(op, "origins", ())
    return None if wrong else node


def _describe(kernel: Kernel, op: Any) -> None:
    """Adds what one inductor operation reads and writes."""
    if op is None or not hasattr(op, "get_outputs"):
        return
    own = own_node(op) if kernel.extern else None
    # An extern call is one node; its origins also hold what was fused into what it reads.
    for origin in getattr(op, "origins", ()) if own is None else [own]:
        if origin.name not in kernel.nodes:
            kernel.nodes.append(origin.name)
    for buffer in op.get_outputs():
        kernel.writes.append((_storage_name(buffer), buffer.get_name()))
    mutated = [m for m in (op.get_mutation_names() if hasattr(op, "get_mutation_names") else [])]
    for name in mutated:
        if name not in [w for w, _ in kernel.writes]:
            kernel.writes.append((name, op.get_name() if hasattr(op, "get_name") else ""))
    names = op.get_read_names() if hasattr(op, "get_read_names") else []
    kernel.reads.extend(n for n in names if n not in kernel.reads)


def _storage_name(buffer: Any) -> str:
    """The buffer whose memory an operation's result lives in: itself, or the
    one that a MutationLayout writes to."""
    seen = 0
    while seen < 50 and type(getattr(buffer, "layout", None)).__name__.startswith("MutationLayout"):
        buffer = buffer.layout.get_buffer()
        seen += 1
    return buffer.get_name()

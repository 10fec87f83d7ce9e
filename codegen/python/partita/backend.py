"""torch.compile(model, backend="partita"): PyTorch's AOTAutograd around Partita's compiler.

What the compiler refuses PyTorch runs, told once and counted in partita.stats(). A fault of the compiler is an exception
with the graph's name, never another result.
"""

import functools
import time

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from . import _library
from . import _stats as stats
from .compiled import CompiledGraph, Described, NotPlain
from .graph_json import Writer
from .split import Split, draws, is_light


@functools.cache
def decompositions():
    """PyTorch's decompositions of operators that the compiler lacks. Those that draw random numbers stay whole: their
    decompositions draw others."""
    table = torch._decomp.core_aten_decompositions()
    return {
        op: how for op, how in table.items()
        if isinstance(op, torch._ops.OpOverload) and not draws(op) and not _library.knows(str(op))
    }


def eagerly(module):
    """The module as a function of a list, which PyTorch runs."""
    forward = module.forward
    return lambda args: list(forward(*args))


# Errors of arguments of other sizes, strides or dtypes than the graph's. Dynamo's guards let none through; who calls
# AOTAutograd himself has none.
NOT_AS_COMPILED = "run.input", "interp.symbols"


class Guarded:
    """A compiled graph, and PyTorch for calls whose arguments or sizes the compiler does not take."""

    def __init__(self, compiled, module):
        self.compiled = compiled
        self.eager = eagerly(module)
        self.reasons = set()  # that were counted

    def __call__(self, args):
        try:
            return self.compiled(args)
        except NotPlain as why:
            reason = str(why)
        except _library.Unsupported as why:
            reason = why.message
        except _library.PartitaError as why:
            if why.code not in NOT_AS_COMPILED:
                raise
            reason = f"arguments that are not as it was compiled for ({why.code})"
        if reason not in self.reasons:
            self.reasons.add(reason)
            stats.run_eagerly(self.compiled.name, reason)
        stats.add("eager_calls")
        return self.eager(args)


def leaves_values(node):
    """Does a call return memory that it has not written?"""
    name = node.target._schema.name if isinstance(node.target, torch._ops.OpOverload) else ""
    return name.startswith(("aten::empty", "aten::new_empty", "aten::resize"))


def find_refused(module, name):
    """Node -> (operator, why), of what the compiler does not take of the module."""
    writer = Writer(module, name)
    by_name = {node.name: node for node in module.graph.nodes}
    if writer.cannot:  # such calls have no words; what reads them can be looked at when they are inputs
        return {node: (operator_name(node), why) for node, why in writer.cannot.items()}
    described = Described(writer.attributes)
    calls = _library.refused_calls(writer.text(), described.values, len(writer.attributes))
    refused = {by_name[call["node"]]: (call["op"], call["why"]) for call in calls}
    if torch.are_deterministic_algorithms_enabled() and torch.utils.deterministic.fill_uninitialized_memory:
        why = "PyTorch fills its memory with a value in its deterministic mode"
        refused.update({n: (operator_name(n), why) for n in module.graph.nodes if leaves_values(n)})
    if not draws_alike():
        why = "it draws random numbers, which PyTorch draws in another way on this processor"
        refused.update({n: (operator_name(n), why) for n in module.graph.nodes if draws(n.target)})
    return refused


@functools.cache
def draws_alike():
    """Does the compiler draw the numbers that PyTorch draws? Its order depends on the processor's vectors."""
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def operator_name(node):
    """What a call calls; of a higher-order operator also the operator that it is given."""
    inner = [str(a) for a in node.args if isinstance(a, torch._ops.OpOverload)]
    return f"{node.target} of {', '.join(inner)}" if inner else str(node.target)


def compile_whole(module, name, config):
    """A function of a list. Errors: PartitaError."""
    begun = time.perf_counter()
    compiled = CompiledGraph(module, name, config)
    stats.note_compiled(compiled, time.perf_counter() - begun)
    return Guarded(compiled, module)


def compile_graph(module, name, config):
    """The module as a function of a list: compiled where that can be."""
    refused = find_refused(module, name)
    calls = [n for n in module.graph.nodes if n.op == "call_function"]
    if all(is_light(n) for n in calls if n not in refused):
        for operator, why in refused.values():
            stats.refuse(operator, why, name)
        return eagerly(module)
    if not refused:
        try:
            return compile_whole(module, name, config)
        except _library.Unsupported as error:
            node = next((n for n in calls if n.name == error.node), None)
            if node is None:
                stats.run_eagerly(name, error.message)
                return eagerly(module)
            refused[node] = str(node.target), error.message
    for operator, why in refused.values():
        stats.refuse(operator, why, name)

    def make(part):
        make.parts += 1
        return eagerly(part.module) if part.eager else compile_graph(part.module, f"{name} part {make.parts}", config)

    make.parts = 0
    return Split(module, refused, make)


def compiler(kind, config):
    """What AOTAutograd calls for a graph."""

    def compile(module, example_inputs):
        compile_id = torch._guards.CompileContext.current_compile_id()
        name = f"{kind} {compile_id}" if compile_id is not None else kind
        stats.add("graphs")
        run = compile_graph(module, name, config)

        def boxed(args):
            found = run(args)
            args.clear()
            return found

        boxed._boxed_call = True
        return boxed

    return compile


def partita(module, example_inputs, *, options=None, mode=None):
    """The backend. `options`: rows of `partita config`, {"fuse": False}."""
    if mode not in (None, "default"):
        raise ValueError(f"partita has no mode {mode!r}; options={{...}} sets rows of `partita config`")
    config = dict(options or {})
    _library.load()
    return aot_autograd(
        fw_compiler=compiler("forward", config),
        bw_compiler=compiler("backward", config),
        inference_compiler=compiler("inference", config),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )(module, example_inputs)

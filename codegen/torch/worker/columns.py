"""The ways in which PyTorch runs a graph: eager, inductor, and whatever backend is registered.

Each column is a function of (module, inputs, request) that returns the flat results and notes in `times` how long its
parts took, in seconds.
"""

import ast
import contextlib
import importlib.util
import os
import shlex
import time

import torch
import torch.fx

import random_numbers
from locating.eager_values import mutated_args
from values import Refused


class Eager(torch.fx.Interpreter):
    """Calls node by node, and remembers at which it is."""

    at = ""

    def run_node(self, node):
        self.at = node.meta.get("partita_name", node.name)
        try:
            return super().run_node(node)
        except Exception as error:
            error.partita_node = self.at
            raise


def timed(times, name):
    @contextlib.contextmanager
    def measure():
        begin = time.perf_counter()
        yield
        times[name] = times.get(name, 0.0) + time.perf_counter() - begin

    return measure()


def symbolic(module):
    """Has an input a size that is a symbol?"""
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    return any(n.meta["symbol"] != n.name or any(isinstance(d, str) for d in n.meta["dims"] or ()) for n in holders)


def is_aten(module):
    """Does the graph call operators and arithmetic on numbers only, as inductor takes it?"""
    for graph in (m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule)):
        for node in graph.nodes:
            if node.op in ("call_method", "call_module"):
                return False
            if node.op != "call_function" or isinstance(
                node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
            ):
                continue
            space = getattr(node.target, "__module__", None)
            of_numbers = space in ("_operator", "operator", "math", "builtins", "torch.fx.experimental.sym_node")
            if not of_numbers and not (space == "torch" and node.target.__name__.startswith("sym_")):
                return False
    return True


def written_inputs(module):
    """The inputs that calls write to, as numbers; those that are written through a view are not among them."""
    holders = {n: i for i, n in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
    calls = (n for n in module.graph.nodes if n.op == "call_function")
    return {holders[n] for call in calls for n in mutated_args(call) if n in holders}


def elements_share_memory(value):
    """Are two elements of the tensor at one place, as those of an expanded one are?"""
    if value.is_contiguous():
        return False
    places = torch.zeros(1, dtype=torch.int64)
    for stride, size in zip(value.stride(), value.shape):
        if stride == 0 and size > 1:
            return True
        places = (places[:, None] + stride * torch.arange(size)).flatten()
    return places.unique().numel() < places.numel()


def refuse_shared_writes(module, inputs):
    """Inductor takes it that inputs do not share memory where one is written; AOTAutograd sees to that before it. What
    a write leaves where elements share memory is not defined."""
    if not any(n.op == "call_function" and getattr(getattr(n.target, "_schema", None), "is_mutable", False)
               for n in module.graph.nodes):  # fmt: skip
        return
    memory = [v.untyped_storage().data_ptr() for v in inputs if isinstance(v, torch.Tensor) and v.numel()]
    if len(set(memory)) < len(memory):
        raise Refused("the graph writes to inputs, and inputs share memory, which inductor does not take")
    for i in written_inputs(module):
        if isinstance(inputs[i], torch.Tensor) and inputs[i].numel() and elements_share_memory(inputs[i]):
            raise Refused(f"the graph writes to input {i}, whose elements share memory: what that leaves is not defined")


def take_out_handed_on(module, inputs):
    """Takes inputs that are only handed on, such as a device mesh, out of a graph of ATen operators, since inductor has
    none of that kind. Returns the other inputs, and by result what is handed on."""
    holders = [n for n in module.graph.nodes if n.op == "placeholder"]
    output = next(n for n in module.graph.nodes if n.op == "output")
    others = [(holder, value) for holder, value in zip(holders, inputs) if value is None or isinstance(value, str)]
    handed_on = {holder: value for holder, value in others if not set(holder.users) - {output}}
    if any(isinstance(value, str) and holder not in handed_on for holder, value in others):
        raise Refused("a call takes an input that is neither a tensor nor a number")
    returned = list(output.args[0])
    results = {i: handed_on[n] for i, n in enumerate(returned) if n in handed_on}
    output.args = ([None if i in results else n for i, n in enumerate(returned)],)
    for holder in handed_on:
        module.graph.erase_node(holder)
    module.recompile()
    return [value for holder, value in zip(holders, inputs) if holder not in handed_on], results


def eager(module, inputs, request, times):
    with timed(times, "run"):
        return Eager(module).run(*inputs)


def inductor(module, inputs, request, times):
    import torch._inductor.config
    from locating.compiled import lower, trace

    with torch._inductor.config.patch(inductor_options(request["options"], module)):
        if not is_aten(module):
            return compiled("inductor", module, inputs, times)
        inputs, handed_on = take_out_handed_on(module, inputs)
        refuse_shared_writes(module, inputs)
        with timed(times, "trace"):
            traced, fakes = trace(module, inputs, notes=[])
        with timed(times, "compile"):
            call = lower(traced, fakes, request["is_inference"])
        with timed(times, "run"), torch.no_grad():
            found = list(call(list(inputs)))
    # Inductor returns None for what is no node.
    returned = next(n for n in module.graph.nodes if n.op == "output").args[0]
    results = [value if isinstance(given, torch.fx.Node) else given for given, value in zip(returned, found)]
    return [handed_on.get(i, value) for i, value in enumerate(results)]


def inductor_options(texts, module):
    """{"cpp.simdlen": "1"} -> {"cpp.simdlen": 1}, for torch._inductor.config.patch.  Random numbers are drawn as eager
    draws them, but for those that the graph draws by inductor's own operators."""
    import torch._inductor.config as config

    known = config.get_config_copy() if hasattr(config, "get_config_copy") else config.shallow_copy_dict()
    options = {"fallback_random": not random_numbers.has_any(module), "compile_threads": 1}
    for name, text in texts.items():
        if name not in known:
            raise Refused(f"inductor of torch {torch.__version__} has no option {name!r}")
        try:
            options[name] = ast.literal_eval({"true": "True", "false": "False", "none": "None"}.get(text, text))
        except (ValueError, SyntaxError):
            options[name] = text
    return options


def keep_whole_files_only():
    """Lets compilers write beside their output and moves it there: a try that is killed while it compiles must not
    leave half a library in the cache that is kept."""
    import torch._inductor.cpp_builder as builder

    if not hasattr(builder, "run_compile_cmd") or hasattr(builder.run_compile_cmd, "by_partita"):
        return
    original = builder.run_compile_cmd

    def run_compile_cmd(command, cwd):
        words = shlex.split(command)
        if "-o" not in words[:-1]:
            return original(command, cwd)
        at = words.index("-o") + 1
        output, words[at] = words[at], f"{words[at]}.{os.getpid()}"
        result = original(shlex.join(words), cwd)
        os.replace(os.path.join(cwd, words[at]), os.path.join(cwd, output))
        return result

    run_compile_cmd.by_partita = True
    builder.run_compile_cmd = run_compile_cmd


def compiled(backend, module, inputs, times):
    """torch.compile of a graph of any level."""
    import torch._dynamo

    torch._dynamo.reset()
    call = torch.compile(module, backend=backend, dynamic=symbolic(module), fullgraph=True)
    with timed(times, "run"), torch.no_grad():
        return list(call(*inputs))


def backend_of_file(text):
    """FILE.py:FUNCTION, which the user names on the command line."""
    path, _, function = text.rpartition(":")
    specification = importlib.util.spec_from_file_location("partita_users_backend", path)
    if specification is None or specification.loader is None:
        raise Refused(f"{path} cannot be imported")
    loaded = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(loaded)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    if not callable(getattr(loaded, function, None)):
        raise Refused(f"{path} has no function {function!r}")
    return getattr(loaded, function)


def is_kernel(node):
    target = node.target
    return isinstance(target, torch._ops.HigherOrderOperator) and target.name().startswith("triton_kernel_wrapper_")


def run_column(name, module, inputs, request, times):
    """The flat results of a column: NAME of torch:NAME."""
    if name == "eager":
        return eager(module, inputs, request, times)
    if not request["device"] and any(is_kernel(node) for node in module.graph.nodes):
        raise Refused("compilers make no code for a CPU that calls Triton kernels; torch:eager runs them")
    if name == "inductor":
        return inductor(module, inputs, request, times)
    if request["options"]:
        raise Refused(f"torch:{name} takes no options; torch:inductor does")
    if ".py:" in name:
        return compiled(backend_of_file(name), module, inputs, times)
    import torch._dynamo

    if name not in torch._dynamo.list_backends(exclude_tags=()):
        names = ", ".join(sorted(torch._dynamo.list_backends(exclude_tags=())))
        raise Refused(f"torch {torch.__version__} has no backend {name!r}; there are eager, {names}")
    return compiled(name, module, inputs, times)

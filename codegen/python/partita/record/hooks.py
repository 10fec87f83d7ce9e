"""Where PyTorch calls the recorder.

compile_fx is the way of all graphs to inductor; ours gives the real one an inner_compile that records. What inductor
returns stays the object that it is, so that cudagraphs, caches and pickling find all they look for: only the function
in its field current_callable, which no cache keeps, is replaced. For other backends of torch.compile what the backend
returns is wrapped.
"""

from __future__ import annotations

import functools
import time

MARK = "_partita_recorder"


def records(inner) -> bool:
    """Is it an inner_compile of ours, below what functools and config.patch put around it?"""
    while inner is not None:
        if hasattr(inner, MARK):
            return True
        inner = getattr(inner, "func", None) or getattr(inner, "__wrapped__", None)
    return False


def recording(inner, current):
    """An inner_compile that records what `inner` compiles.  `current`: gives the recorder, or None."""

    @functools.wraps(inner)
    def inner_compile(gm, example_inputs, *args, **kwargs):
        recorder = current()
        if recorder is None or not hasattr(gm, "graph"):
            return inner(gm, example_inputs, *args, **kwargs)
        kind = "backward" if kwargs.get("is_backward") else "inference" if kwargs.get("is_inference") else "forward"
        graph = recorder.begin(gm, kind, example_inputs)
        if graph is None:
            return inner(gm, example_inputs, *args, **kwargs)
        begin = time.perf_counter()
        try:
            result = inner(gm, example_inputs, *args, **kwargs)
        except BaseException as error:
            recorder.not_compiled(graph, error)
            raise
        recorder.compiled(graph, result, time.perf_counter() - begin)
        return with_caller(recorder, graph, result)

    setattr(inner_compile, MARK, True)
    return inner_compile


def with_caller(recorder, graph, result):
    """The compiled graph, whose calls are recorded; as it is when they cannot be."""
    try:
        return _with_caller(recorder, graph, result)
    except Exception as error:
        recorder.failed(error)
        return result


def _with_caller(recorder, graph, result):
    from torch._inductor.output_code import CompiledFxGraph

    if isinstance(result, CompiledFxGraph):
        if result.current_callable is not None:
            result.current_callable = recorder.caller(graph, result.current_callable)
    elif callable(result) and getattr(result, "_boxed_call", False) and hasattr(result, "__name__"):
        # A graph without calls is its own compiled form: a function.
        return functools.update_wrapper(recorder.caller(graph, result), result)
    else:
        recorder.note("not_recorded", graph=graph.number, reason=f"compiled to a {type(result).__name__}")
    return result


def hook_compile_fx(module, current) -> None:
    """Puts the recorder into torch._inductor.compile_fx."""
    original = module.compile_fx
    if hasattr(original, MARK):
        return

    @functools.wraps(original)
    def compile_fx(model_, example_inputs_, *args, **kwargs):
        if current() is None:
            return original(model_, example_inputs_, *args, **kwargs)
        if args:
            given, args = args[0], args[1:]
        else:
            given = kwargs.pop("inner_compile", module.compile_fx_inner)
        inner = given if records(given) else recording(given, current)
        return original(model_, example_inputs_, inner, *args, **kwargs)

    setattr(compile_fx, MARK, True)
    module.compile_fx = compile_fx


def hook_other_backends(torch, current) -> None:
    """Puts the recorder into torch.compile(backend=...) of all backends but inductor, whose own class goes past this."""
    wrapper = torch._TorchCompileWrapper
    original = wrapper.__call__
    if hasattr(original, MARK):
        return

    @functools.wraps(original)
    def call(self, model_, inputs_):
        recorder = current()
        graph = recorder.begin(model_, "dynamo", inputs_) if recorder is not None and hasattr(model_, "graph") else None
        if graph is None:
            return original(self, model_, inputs_)
        begin = time.perf_counter()
        try:
            result = original(self, model_, inputs_)
        except BaseException as error:
            recorder.not_compiled(graph, error)
            raise
        graph.row["backend"] = self.compiler_name
        recorder.compiled(graph, result, time.perf_counter() - begin)
        boxed = recorder.caller(graph, lambda inputs: result(*inputs))

        @functools.wraps(result, updated=())
        def recorded(*inputs):
            return boxed(list(inputs))

        return recorded

    setattr(call, MARK, True)
    wrapper.__call__ = call

"""Records what PyTorch compiles in a program: its graphs, and the values that they were called with.

    import partita.record
    partita.record.start("recording")          # before the first call of what torch.compile made
    ...
    partita.record.stop()
    partita.record.save_repro(fn, args, "repro")

`partita record -- python train.py` does the same for a program as it is.  `partita open FOLDER` shows a recording.
It needs PyTorch 2.6 or later and imports nothing but that and the standard library.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

from . import folder as _folder
from .settings import Settings

__all__ = ["save_repro", "start", "stop"]

OLDEST = (2, 6)
_settings: Settings | None = None
_recorder = None
_undo: list = []


def _current():
    """The recorder of this process; None when nothing is to be recorded.  A fork gets one of its own."""
    global _recorder, _settings
    if _settings is None:
        return None
    if _recorder is None or _recorder.pid != os.getpid():
        try:
            from .recorder import Recorder

            _recorder = Recorder(_settings)
        except Exception as error:
            _folder.tell("hook", f"nothing is recorded: {type(error).__name__}: {error}", _settings.home)
            _settings = None
            return None
    return _recorder if _recorder.active else None


def _version(torch) -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def _after_torch(torch) -> None:
    from . import hooks

    if _version(torch) < OLDEST:
        home = _settings.home if _settings else ""
        _folder.tell("old", f"torch {torch.__version__} is older than 2.6; nothing of this program is recorded", home)
        return
    _note_import(torch)
    hooks.hook_other_backends(torch, _current)
    _watch("torch._inductor.compile_fx", lambda module: hooks.hook_compile_fx(module, _current))
    _watch("torch._functorch.config", lambda module: setattr(module, "enable_autograd_cache", False))


def _note_import(torch) -> None:
    """Tells `partita record` that the program has PyTorch, though it may compile nothing."""
    if _settings is not None and _settings.home:
        with open(os.path.join(_settings.home, "torch"), "w") as file:
            file.write(torch.__version__)


class _Watch:
    """Finds a module as Python would, and calls `then` when it has run."""

    def __init__(self, name: str, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        else:
            return None
        loader = spec.loader
        if not isinstance(loader, importlib.machinery.SourceFileLoader):
            _folder.tell("loader", f"{name} is loaded in a way of its own; it is not recorded")
            return spec
        run = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            run(module)
            _guarded(self.then, module)

        loader.exec_module = exec_module
        return spec


def _guarded(then, module) -> None:
    try:
        then(module)
    except Exception as error:
        _folder.tell("hook", f"nothing is recorded: {type(error).__name__}: {error}", _settings.home if _settings else "")


def _watch(name: str, then) -> None:
    if name in sys.modules:
        _guarded(then, sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, then))


def start_with_torch(text: str) -> None:
    """What sitecustomize calls: recording begins when the program imports torch.  `text`: Settings as JSON."""
    global _settings
    _settings = Settings.from_json(text)
    rank = _folder.rank_of_environment()
    if _settings.own_trace and rank is not None:
        os.environ["TORCH_TRACE"] = os.path.join(_folder.folder_of_rank(_settings.dir, rank), "trace")
    _watch("torch", _after_torch)


def _own_trace(torch, folder: str) -> None:
    """Writes the trace of compilations from here on, and what tells kernels from nodes, unless the program does."""
    logging, config = torch._logging._internal, torch._inductor.config.trace
    if os.environ.get("TORCH_TRACE"):
        _settings.own_trace = False
        return
    old_handler = logging.LOG_TRACE_HANDLER
    handler = logging.LazyTraceHandler(folder)
    handler.setFormatter(logging.TorchLogsFormatter(trace=True))
    logging.trace_log.addHandler(handler)
    level = logging.trace_log.level
    logging.trace_log.setLevel("DEBUG")
    logging.LOG_TRACE_HANDLER = handler
    provenance = getattr(config, "provenance_tracking_level", None)
    if provenance == 0:
        config.provenance_tracking_level = 1

    def undo():
        logging.trace_log.removeHandler(handler)
        handler.close()
        logging.trace_log.setLevel(level)
        logging.LOG_TRACE_HANDLER = old_handler
        if provenance == 0:
            config.provenance_tracking_level = 0

    _undo.append(undo)


def start(dir, *, values="inputs,outputs", limit="1G", per_graph="64M", calls=1, until_nan=False, until_exception=False,
          graph=None) -> str:  # fmt: skip
    """Records from here on; returns the folder.

    What was compiled before is not recorded: start before the first call.  `values`: "inputs,outputs", one of them, or
    "none".  `limit`, `per_graph`: bytes of values in all and of one call of a graph ("1G", "64M", a number); beyond
    them only sizes, strides, extremes, mean, number of NaNs and a hash are kept.  `calls`: of each graph, the first
    ones.  `until_nan`: all calls are watched, and the first one with a NaN or an infinity in its outputs is the last
    that is kept.  `until_exception`: the last call of each graph before an exception is kept.  `graph`: a compile id
    ("3/1") or several; the values of others are not kept.

    A folder that has something in it is left alone, and "DIR_2" is taken.  Raises ValueError for arguments, OSError
    when the folder cannot be made, RuntimeError when this program is recorded already or PyTorch is older than 2.6.
    """
    global _settings, _recorder
    import torch
    import torch._functorch.config
    import torch._inductor.compile_fx
    import torch._inductor.config

    from . import hooks

    settings = Settings.of(os.path.abspath(dir), values, limit, per_graph, calls, until_nan, until_exception, graph)
    if _version(torch) < OLDEST:
        raise RuntimeError(f"torch {torch.__version__} is older than 2.6")
    if _settings is not None:
        raise RuntimeError(f"{_settings.dir} is being recorded already")
    if os.environ.get("PARTITA_RECORD") and hasattr(torch._inductor.compile_fx.compile_fx, hooks.MARK):
        foreign = Settings.from_json(os.environ["PARTITA_RECORD"])
        raise RuntimeError(f"this program runs below `partita record`, which writes {foreign.dir}")
    settings.dir = _free(settings.dir)
    os.makedirs(settings.dir, exist_ok=True)
    _settings, _recorder = settings, None
    _own_trace(torch, os.path.join(settings.dir, "trace"))
    cached = torch._functorch.config.enable_autograd_cache
    torch._functorch.config.enable_autograd_cache = False
    _undo.append(lambda: setattr(torch._functorch.config, "enable_autograd_cache", cached))
    hooks.hook_compile_fx(torch._inductor.compile_fx, _current)
    hooks.hook_other_backends(torch, _current)
    return settings.dir


def _free(path: str) -> str:
    found, n = path, 1
    while os.path.lexists(found) and (not os.path.isdir(found) or os.listdir(found)):
        n += 1
        found = f"{path}_{n}"
    return found


def stop() -> None:
    """Ends what start() began.  What was compiled meanwhile stays as it is, and is recorded no more."""
    global _settings, _recorder
    recorder, _recorder, _settings = _recorder, None, None
    if recorder is not None:
        recorder.close()
    while _undo:
        _undo.pop()()


def save_repro(fn, args, path, kwargs=None, *, limit="4G") -> str:
    """Writes a folder with what torch.compile makes of fn(*args, **kwargs) and the values of that call, by running it
    once; returns the folder.  `partita open`, `compare`, `locate` and `minify` take it.

    Where the result depends on what requires a gradient, the backward runs, too, with ones for gradients of the
    results; no .grad is changed.  Buffers of a module and the random numbers that torch draws next are as before.
    Raises what fn raises, and what start() raises.
    """
    from .repro import save

    return save(fn, args, path, dict(kwargs or {}), limit)

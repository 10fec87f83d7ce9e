"""Partita for PyTorch.

    torch.compile(model, backend="partita")     its compiler, through PyTorch's AOTAutograd
    partita.stats()                             what it compiled, and what PyTorch ran
    partita.compare(model, args, against=[...]) results of several compilers side by side
    partita.locate(model, args)                 the kernel and node of inductor's that is wrong
    partita.minify(model, args)                 the small part of a graph that fails
    partita.aot(model, args)                    AOTAutograd's graphs
    partita.show(x), partita.open(x)            a page in a notebook, the window
    partita.save_repro(fn, args, path)          a graph with its values, to open elsewhere

Nothing here imports torch before it is needed.
"""

import importlib

from ._library import PartitaError, Unsupported
from ._program import VerbError
from ._stats import PartitaWarning, stats

_LAZY = {
    "compare": "verbs", "locate": "verbs", "minify": "verbs", "aot": "verbs", "show": "verbs", "open": "verbs",
    "save_repro": "record",
}  # fmt: skip
__all__ = ["PartitaError", "PartitaWarning", "Unsupported", "VerbError", "stats", *_LAZY]


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module 'partita' has no attribute {name!r}")


def __dir__():
    return __all__

"""Partita for PyTorch.

    torch.compile(model, backend="partita")     its compiler, through PyTorch's AOTAutograd
    partita.stats()                             what it compiled, and what PyTorch ran

Nothing here imports torch before it is needed.
"""

from ._library import PartitaError, Unsupported
from ._stats import PartitaWarning, stats

__all__ = ["PartitaError", "PartitaWarning", "Unsupported", "stats"]

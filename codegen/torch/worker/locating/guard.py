"""Buffers with guard bytes around them, so that a kernel that writes past the
end of a buffer is caught in the act, and does not bring the process down.

Relied on: the wrapper allocates CPU buffers with empty_strided_cpu(size,
stride, dtype).
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

GUARD_BYTES = 256
PATTERN = 0xA5


class Guards:
    """Stands in for empty_strided_cpu in one run of the wrapper."""

    def __init__(self) -> None:
        self.live: list[weakref.ref] = []

    def allocate(self, size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        """A buffer of the asked size and strides between two guards."""
        count = 0 if 0 in tuple(size) else 1 + sum((n - 1) * s for n, s in zip(size, stride))
        width = torch.empty(0, dtype=dtype).element_size()
        guard = GUARD_BYTES // width
        memory = torch.empty((count + 2 * guard) * width, dtype=torch.uint8)
        memory[:GUARD_BYTES] = PATTERN
        memory[memory.numel() - GUARD_BYTES:] = PATTERN
        out = torch.empty(0, dtype=dtype).set_(memory.untyped_storage(), guard, tuple(size), tuple(stride))
        self.live.append(weakref.ref(out))
        return out

    def broken(self) -> list[torch.Tensor]:
        """The living buffers whose guards have been written to; the guards are put right again."""
        found, alive = [], []
        for reference in self.live:
            buffer = reference()
            if buffer is None:
                continue
            alive.append(reference)
            memory = torch.empty(0, dtype=torch.uint8).set_(buffer.untyped_storage())
            ends = (memory[:GUARD_BYTES], memory[memory.numel() - GUARD_BYTES:])
            if any(bool((end != PATTERN).any()) for end in ends):
                found.append(buffer)
                for end in ends:
                    end.fill_(PATTERN)
        self.live = alive
        return found

"""Which kernel writes into a buffer that is still needed.

A free run of the wrapper, in which every finished buffer's contents are
summed up after each kernel.  A live buffer that changes though the kernel
has no business with it was overwritten: a fault of memory planning.
"""

from __future__ import annotations

import zlib
from typing import Any

import torch

from . import eager_values
from . import probe
from .compiled import Compiled


class Overwrites(probe.Watcher):
    """Watches the contents of all finished buffers."""

    def __init__(self, built: Compiled):
        self.built = built
        self.sums: dict[str, int] = {}
        self.found: list[dict[str, Any]] = []

    def after(self, key: str, names: dict[str, Any]) -> None:
        kernel = self.built.kernels.get(key)
        written = {s for s, _ in kernel.writes} if kernel is not None else set()
        for name in [n for n in self.sums if n not in names]:
            del self.sums[name]
        for name, value in names.items():
            if not isinstance(value, torch.Tensor) or (name not in self.sums and name not in written):
                continue
            now = checksum(value)
            if name in self.sums and name not in written and self.sums[name] != now:
                self.found.append({"buffer": name, "kernel": key, "shares_memory_with": [
                    w for w in written if share(value, names.get(w))]})
            self.sums[name] = now


def checksum(value: torch.Tensor) -> int:
    """A checksum of a tensor's values."""
    flat = value.detach().resolve_conj().contiguous().flatten()
    if flat.numel() == 0:
        return 0
    return zlib.crc32(flat.view(torch.uint8).numpy())


def share(a: Any, b: Any) -> bool:
    """Whether two tensors have one storage."""
    return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and \
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def find_overwrites(built: Compiled, inputs: list[Any]) -> list[dict[str, Any]]:
    """Buffers that change while they are still needed, with the kernel behind which they had changed."""
    watcher = Overwrites(built)
    call, _ = probe.instrumented(built.text, built.module, set(), watcher)
    torch.manual_seed(eager_values.SEED)
    with torch.no_grad():
        call(eager_values.copy_inputs(inputs))
    return [f for f in watcher.found if f["shares_memory_with"]]

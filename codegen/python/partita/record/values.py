"""Values of a graph's call in files: safetensors with the conventions of Partita's IO files.

An inputs file of a graph that draws random numbers has generator.cpu, torch.get_rng_state() before the call.  Beside
these, the metadata of a file may have

    elsewhere  {"input.3": ["000.forward.inputs.safetensors", "input.1", true]}: bit for bit the value that another
               file of the folder has, or an earlier key of this one; true: it requires a gradient
    left_out   {"input.4": {"dtype", "sizes", "strides", "min", "max", "mean", "nans", "infs", "hash", "why"}}: beyond
               a limit
    other      {"input.5": "None"}: the repr of what is neither tensor nor number
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import struct

import torch

from .folder import whole_file, write_all

NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
    torch.complex64: "F32", torch.complex128: "F64", torch.complex32: "F16",
}  # fmt: skip
for _name, _stored in (("uint16", "U16"), ("uint32", "U32"), ("uint64", "U64"), ("float8_e4m3fn", "F8_E4M3"),
                       ("float8_e5m2", "F8_E5M2"), ("float8_e4m3fnuz", "F8_E4M3FNUZ"), ("float8_e5m2fnuz", "F8_E5M2FNUZ"),
                       ("float8_e8m0fnu", "F8_E8M0")):  # fmt: skip
    if isinstance(getattr(torch, _name, None), torch.dtype):
        NAMES[getattr(torch, _name)] = _stored


class Left(Exception):
    """A value that cannot be written, with the reason."""


def row_major(sizes) -> list[int]:
    strides, step = [], 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]


def byte_count(t: torch.Tensor) -> int:
    return t.numel() * t.element_size()


def is_plain(t: torch.Tensor) -> bool:
    return type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout is torch.strided and not t.is_quantized


def on_host(t: torch.Tensor) -> torch.Tensor:
    """Its elements in row-major order in this process's memory.  Raises Left."""
    if not is_plain(t):
        raise Left(f"a {type(t).__name__} of layout {t.layout}")
    if t.dtype not in NAMES:
        raise Left(f"of dtype {t.dtype}")
    if t.device.type == "meta":
        raise Left("on the device meta")
    return t.detach().resolve_conj().resolve_neg().cpu().contiguous()


def memory_of(t: torch.Tensor) -> memoryview:
    """The bytes of a row-major tensor, which must outlive it."""
    n = byte_count(t)
    return memoryview((ctypes.c_char * n).from_address(t.data_ptr())).cast("B") if n else memoryview(b"")


def hash_of(t: torch.Tensor) -> str:
    """Of the bytes of a tensor that on_host() gave."""
    return hashlib.blake2b(memory_of(t), digest_size=16).hexdigest()


def are_finite(values, but=()) -> list[tuple[int, tuple[bool, bool]]]:
    """The places of tensors that have a NaN or an infinity, each with (no NaN?, no infinity?).  `but`: addresses that
    are not looked at."""
    groups: dict[tuple, list[tuple[int, torch.Tensor]]] = {}
    for i, t in enumerate(values):
        if not isinstance(t, torch.Tensor) or not is_plain(t) or t.numel() == 0 or t.data_ptr() in but:
            continue
        if t.is_floating_point() or t.is_complex():
            groups.setdefault((t.device, t.dtype), []).append((i, t))
    odd = [place for group in groups.values() for place in _not_summable(group)]
    return [(i, finite) for i, t in odd if (finite := _is_finite(t)) != (True, True)]


SMALL = 1 << 16  # elements


def _not_summable(group: list[tuple[int, torch.Tensor]]) -> list[tuple[int, torch.Tensor]]:
    """Those of a group of one device and dtype that have no finite sum, or sum of squares: what has a NaN or an infinity,
    and what overflows.  One pass over memory and one wait for a device, as this is done after each call of a graph."""
    tensors = [_real(t) for _, t in group]
    wide = torch.float64 if tensors[0].dtype == torch.float64 else torch.float32
    sums: list[torch.Tensor] = [None] * len(tensors)
    # A call for each small one would take longer than its elements; the norm of a large one takes one thread.
    small = [i for i, t in enumerate(tensors) if t.numel() < SMALL]
    for i, norm in zip(small, torch._foreach_norm([tensors[i] for i in small], 2, dtype=wide) if small else ()):
        sums[i] = norm
    sums = torch.stack([t.sum(dtype=wide) if s is None else s for t, s in zip(tensors, sums)])
    if math.isfinite(sums.sum().item()):
        return []
    return [place for place, finite in zip(group, torch.isfinite(sums).tolist()) if not finite]


def _real(t: torch.Tensor) -> torch.Tensor:
    t = t.detach()
    if t.dtype.is_complex:
        t = torch.view_as_real(t.resolve_conj())
    return t.float() if t.element_size() == 1 else t


def _is_finite(t: torch.Tensor) -> tuple[bool, bool]:
    wide = t.float() if t.element_size() == 1 else t
    return not bool(torch.isnan(wide).any()), not bool(torch.isinf(wide).any())


def statistics(t: torch.Tensor) -> dict:
    """What is kept of a value whose elements are not."""
    out = {"dtype": str(t.dtype).removeprefix("torch."), "sizes": list(t.shape)}
    if t.layout is torch.strided:
        out["strides"] = list(t.stride())
    if not is_plain(t) or t.numel() == 0 or t.device.type == "meta":
        return out
    flat = t.detach()
    if t.dtype.is_complex:
        flat = torch.view_as_real(flat.resolve_conj())
    if flat.is_floating_point():
        wide = flat if flat.element_size() >= 4 else flat.float()
        finite = wide[torch.isfinite(wide)]
        out["nans"], out["infs"] = int(torch.isnan(wide).sum()), int(torch.isinf(wide).sum())
    else:
        finite = flat.flatten()
    if finite.numel():
        # No other dtype has all three on every device; int64 holds all others but half of uint64.
        numbers = finite if finite.is_floating_point() else finite.to(torch.int64)
        out["min"], out["max"] = numbers.min().item(), numbers.max().item()
        mean = float(numbers.mean(dtype=torch.float64))
        out["mean"] = mean if math.isfinite(mean) else repr(mean)
    return out


class Written:
    """What a folder's files have so far, and how much more they may have."""

    def __init__(self, limit: int):
        self.limit = limit
        self.bytes = 0
        self.places: dict[tuple, tuple[str, str]] = {}  # content -> file, key


def key_of_content(t: torch.Tensor, host: torch.Tensor, digest: str) -> tuple:
    return digest, str(t.dtype), tuple(t.shape), tuple(t.stride())


class ValueFile:
    """The values of one side of a call, which write() puts into a file.  `budget`: [bytes that may still be taken]."""

    def __init__(self, path: str, written: Written, budget: list[int], per_graph: int):
        self.path, self.written, self.budget, self.per_graph = path, written, budget, per_graph
        self.name = os.path.basename(path)
        self.tensors: list[tuple[str, torch.Tensor, torch.Tensor, tuple]] = []  # key, as it was, on the host, content
        self.elsewhere: dict[str, list[str]] = {}
        self.left_out: dict[str, dict] = {}
        self.other: dict[str, str] = {}
        self.requires_grad: list[str] = []
        self.own: dict[tuple, str] = {}
        self.taken = 0

    def add(self, key: str, value) -> None:
        if isinstance(value, bool):
            value = torch.tensor(value)
        elif isinstance(value, int):
            value = torch.tensor(value, dtype=torch.int64)
        elif isinstance(value, float):
            value = torch.tensor(value, dtype=torch.float64)
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.add(key, value.node.hint)
        if not isinstance(value, torch.Tensor):
            self.other[key] = repr(value)[:200]
            return
        if value.requires_grad and not key.startswith("output."):
            self.requires_grad.append(key)
        self.add_tensor(key, value)

    def add_tensor(self, key: str, t: torch.Tensor) -> None:
        n = byte_count(t)
        try:
            if t.device.type != "cpu" and n > 4 * self.per_graph:
                raise Left("beyond the limit of one graph")  # even to copy it would take too long
            host = on_host(t)
        except Left as left:
            self.left_out[key] = {**statistics(t), "why": str(left)}
            return
        content = key_of_content(t, host, hash_of(host))
        if place := self.written.places.get(content):
            self.elsewhere[key] = list(place)
            return
        if same := self.own.get(content):
            self.elsewhere[key] = [self.name, same]
            return
        why = ""
        if n > self.budget[0]:
            why = "beyond the limit of one graph"
        elif n > self.written.limit - self.written.bytes - self.taken:
            why = "beyond the limit of the folder"
        if why:
            self.left_out[key] = {**statistics(t), "hash": content[0], "why": why}
            return
        self.budget[0] -= n
        self.taken += n
        self.own[content] = key
        self.tensors.append((key, t, host, content))

    def header(self) -> bytes:
        entries: dict[str, object] = {}
        strides, complexes, at = {}, [], 0
        # The widest first, so that all are aligned.
        self.tensors.sort(key=lambda row: -row[1].element_size())
        for key, t, _, _ in self.tensors:
            shape = list(t.shape)
            if list(t.stride()) != row_major(shape):
                strides[key] = list(t.stride())
            if t.dtype.is_complex:
                complexes.append(key)
                shape.append(2)
            entries[key] = {"dtype": NAMES[t.dtype], "shape": shape, "data_offsets": [at, at + byte_count(t)]}
            at += byte_count(t)
        own = [key for key in self.requires_grad if key in entries]
        notes = {"strides": strides, "complex": complexes, "requires_grad": own,
                 "elsewhere": {k: [*place, k in self.requires_grad] for k, place in self.elsewhere.items()}, "left_out": self.left_out, "other": self.other}  # fmt: skip
        entries["__metadata__"] = {name: json.dumps(note) for name, note in notes.items() if note}
        text = json.dumps(entries).encode()
        return text + b" " * (-len(text) % 8)

    def write(self) -> None:
        """The file is there whole or not at all.  Raises OSError."""
        header = self.header()
        with whole_file(self.path) as file:
            for piece in (struct.pack("<Q", len(header)), header, *(memory_of(row[2]) for row in self.tensors)):
                write_all(file, piece)
        self.written.bytes += self.taken
        for key, _, _, content in self.tensors:
            self.written.places[content] = (self.name, key)
        self.tensors = []

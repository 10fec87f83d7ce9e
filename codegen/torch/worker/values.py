"""Values that travel between Partita and this process.

A message describes each value as JSON; the bytes of tensors lie in one memory file, storage after storage, each at a
multiple of 64 bytes. Tensors here are made over that memory itself, so that what a graph writes to an input, Partita
sees. A described value is one of

    None, true, 3, "text"       itself; floats that JSON lacks are {"float": "nan"}
    {"complex": [re, im]}
    {"list": [...]}             lists and tuples
    {"dtype": "float32"}, {"device": "cpu"}, {"layout": "strided"}, {"memory_format": "channels_last"}
    {"tensor": {"storage": 0, "dtype": "float32", "sizes": [2], "strides": [1], "offset": 0}}
"""

import mmap
import os

import torch

ALIGNMENT = 64
LAYOUTS = {"strided": torch.strided}
MEMORY_FORMATS = {
    name: getattr(torch, name) for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
}


class Refused(Exception):
    """What this process does not do, with a reason for the user."""


def dtype_named(name):
    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype):
        raise Refused(f"torch {torch.__version__} has no dtype {name!r}")
    return found


def number(value):
    """A JSON number, or one that JSON lacks."""
    return float(value["float"]) if isinstance(value, dict) else value


def plain(value):
    """A number as JSON has it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"float": repr(value)}
    return value


def aligned(count):
    return (count + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


class Memory:
    """The storages of a request, and those that the answer adds."""

    def __init__(self, sizes, fd):
        self.storages = []
        self.known = {}
        self.new = []
        total = sum(aligned(size) for size in sizes)
        if total:
            if fd is None or os.fstat(fd).st_size < total:
                raise Refused("a message without the memory that it describes")
            mapped = mmap.mmap(fd, total)
        at = 0
        for size in sizes:
            if size:
                storage = torch.frombuffer(mapped, dtype=torch.uint8, count=size, offset=at).untyped_storage()
                self.known[storage.data_ptr()] = len(self.storages)
            else:
                storage = torch.empty(0, dtype=torch.uint8).untyped_storage()
            self.storages.append(storage)
            at += aligned(size)

    def value(self, described):
        """The value that is described."""
        if not isinstance(described, dict):
            return described
        (kind, content), = described.items()
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(number(content[0]), number(content[1]))
        if kind == "list":
            return [self.value(item) for item in content]
        if kind == "dtype":
            return dtype_named(content)
        if kind == "device":
            return torch.device(content)
        if kind == "layout":
            return LAYOUTS[content]
        if kind == "memory_format":
            return MEMORY_FORMATS[content]
        if kind == "tensor":
            return self.tensor(content)
        raise Refused(f"a value of an unknown kind {kind!r}")

    def tensor(self, content):
        empty = torch.empty(0, dtype=dtype_named(content["dtype"]))
        storage = self.storages[content["storage"]]
        return empty.set_(storage, content["offset"], content["sizes"], content["strides"])

    def describe(self, value):
        """The description of a result. Tensors that share memory are described over one storage."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self.describe_tensor(value)}
        if isinstance(value, (list, tuple)):
            return {"list": [self.describe(item) for item in value]}
        if isinstance(value, complex):
            return {"complex": [plain(value.real), plain(value.imag)]}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.SymInt):
            return int(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return plain(value)
        raise Refused(f"a result of type {type(value).__name__}, which is no tensor, number or text")

    def describe_tensor(self, value):
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided or value.is_quantized:
            raise Refused(f"a result that is no plain tensor: {type(value).__name__}, {value.layout}, {value.dtype}")
        value = value.detach().resolve_conj().resolve_neg().cpu()
        storage = value.untyped_storage()
        key = storage.data_ptr() if storage.nbytes() else None
        if key is None or key not in self.known:
            place = len(self.storages)
            self.storages.append(storage)
            self.new.append(storage)
            if key is not None:
                self.known[key] = place
        else:
            place = self.known[key]
        return {
            "storage": place,
            "dtype": str(value.dtype).removeprefix("torch."),
            "sizes": list(value.shape),
            "strides": list(value.stride()),
            "offset": value.storage_offset(),
        }

    def write_new(self):
        """A memory file with the storages that the receiver does not have, and their sizes."""
        sizes = [storage.nbytes() for storage in self.new]
        fd = os.memfd_create("partita-values", os.MFD_CLOEXEC)
        total = sum(aligned(size) for size in sizes)
        os.ftruncate(fd, total)
        if total:
            mapped = mmap.mmap(fd, total)
            at = 0
            for storage, size in zip(self.new, sizes):
                if size:
                    torch.frombuffer(mapped, dtype=torch.uint8, count=size, offset=at).untyped_storage().copy_(storage)
                at += aligned(size)
        return sizes, fd

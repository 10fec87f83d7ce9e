"""A model and its arguments as files that the command line opens: program.pt2 and inputs.safetensors."""

import json
import os
import pathlib
import struct
import tempfile

# As core/tensor/dtype.h has them.
SAFETENSORS = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip


def is_path(x):
    return isinstance(x, (str, os.PathLike))


def new_folder(folder):
    folder = pathlib.Path(folder) if folder is not None else pathlib.Path(tempfile.mkdtemp(prefix="partita-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_safetensors(path, tensors):
    """Tensors by name, row-major."""
    import torch

    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        kind = SAFETENSORS.get(str(tensor.dtype).removeprefix("torch."))
        if kind is None:
            raise TypeError(f"{name} is {tensor.dtype}, which a safetensors file cannot hold")
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        size = plain.numel() * plain.element_size()
        data = bytes(plain.reshape(-1).view(torch.uint8).numpy()) if size else b""
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        parts.append(data)
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def write_model(model, args, kwargs, folder):
    """[path of the program, --inputs, path of the values]. What torch.export refuses is its exception."""
    import torch

    if not isinstance(model, torch.nn.Module):
        model = as_module(model)
    program = torch.export.export(model, tuple(args), dict(kwargs or {}), strict=False)
    torch.export.save(program, folder / "program.pt2")
    leaves = torch.utils._pytree.tree_leaves((tuple(args), dict(kwargs or {})))
    values = {f"input.{i}": leaf for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    write_safetensors(folder / "inputs.safetensors", values)
    return [folder / "program.pt2", "--inputs", folder / "inputs.safetensors"]


def as_module(function):
    import torch

    class Module(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return function(*args, **kwargs)

    return Module()


def words_of(x, args, kwargs, folder):
    """What names `x` to a verb: a path is one already; a model is exported to `folder` with its arguments."""
    if is_path(x):
        return [pathlib.Path(x)]
    if args is None:
        raise TypeError("a model needs its arguments: args=(x, ...)")
    return write_model(x, args, kwargs, folder)

"""libpartita.so, the compiler's C interface (codegen/python/partita_compiler.h), by ctypes. It needs no PyTorch."""

import ctypes
import functools
import json
import os
import pathlib

ABI = 1
OK, BAD_INPUT, UNSUPPORTED, INTERNAL = 0, 2, 3, 4
DTYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float8_e4m3fn float8_e5m2 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128"
).split()


class ErrorFields(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32)] + [
        (name, ctypes.c_char_p) for name in ("code", "message", "graph", "node", "origin", "line")
    ]


Sizes = ctypes.POINTER(ctypes.c_int64)


class Value(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", Sizes),
        ("strides", Sizes),
        ("owner", ctypes.c_void_p),
        ("input", ctypes.c_int32),
        ("is_number", ctypes.c_int32),
    ]


class PartitaError(RuntimeError):
    """What the compiler says. `graph` and `node` name the place, `origin` the line of the program, `code` is stable."""

    def __init__(self, fields):
        text = {name: (getattr(fields, name) or b"").decode(errors="replace") for name, _ in ErrorFields._fields_[1:]}
        self.status = fields.status
        self.code, self.message, self.graph = text["code"], text["message"], text["graph"]
        self.node, self.origin = text["node"], text["origin"]
        super().__init__(text["line"])


class Unsupported(PartitaError):
    """The compiler does not have what the graph needs; PyTorch may run it."""


def find():
    """The library's path: $PARTITA_LIBRARY, else beside this file. None when there is none."""
    given = os.environ.get("PARTITA_LIBRARY")
    if given:
        return given
    beside = pathlib.Path(__file__).with_name("libpartita.so")
    return str(beside) if beside.exists() else None


@functools.cache
def load():
    path = find()
    if path is None:
        raise OSError("partita has no libpartita.so beside it; install its wheel, or name the library by $PARTITA_LIBRARY")
    library = ctypes.CDLL(path)
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    values = ctypes.POINTER(Value)
    signatures = {
        "partita_compiler_abi": (ctypes.c_int, []),
        "partita_compiler_version": (text, []),
        "partita_compiler_last_error": (ctypes.POINTER(ErrorFields), []),
        "partita_compiler_knows": (ctypes.c_int, [text]),
        "partita_compiler_check": (ctypes.c_int, [text, size, values, size, ctypes.POINTER(pointer)]),
        "partita_compiler_free_text": (None, [pointer]),
        "partita_graph_compile": (ctypes.c_int, [text, size, values, size, ctypes.POINTER(pointer)]),
        "partita_graph_free": (None, [pointer]),
        "partita_graph_report": (pointer, [pointer]),
        "partita_graph_run": (ctypes.c_int, [pointer, values, size, values, size, pointer]),
        "partita_graph_draws": (ctypes.c_int, [pointer]),
        "partita_graph_release": (None, [values, size]),
        "partita_call_prepare": (ctypes.c_int, [pointer, values, size, values, size, ctypes.POINTER(pointer)]),
        "partita_call_free": (None, [pointer]),
        "partita_call_run": (ctypes.c_int, [pointer, text, text, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.partita_compiler_abi() != ABI:
        raise OSError(f"{path} is of another version than this package; install both together")
    return library


def check(status):
    """Raises what the last call of this thread that failed says."""
    if status == OK:
        return
    fields = load().partita_compiler_last_error().contents
    raise (Unsupported if fields.status == UNSUPPORTED else PartitaError)(fields)


def take_text(library, address):
    """The text at an address, which is freed."""
    try:
        return ctypes.string_at(address).decode()
    finally:
        library.partita_compiler_free_text(address)


@functools.cache
def knows(operator):
    """Does the compiler have the operator, "aten.add.Tensor"?"""
    return bool(load().partita_compiler_knows(operator.encode()))


def refused_calls(text, attributes=(), count=0):
    """The calls that the compiler refuses of a graph as JSON: [{"node", "op", "why"}]."""
    library = load()
    found = ctypes.c_void_p()
    values = attributes if count else (Value * 1)()
    check(library.partita_compiler_check(text, len(text), values, count, ctypes.byref(found)))
    return json.loads(take_text(library, found.value))

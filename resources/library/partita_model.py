"""Libraries that `partita compile` makes, from Python with ctypes and numpy.

As a program it runs one on the inputs of an IO file, and compares the results with the file's:

  partita compile resources/samples/mlp/program.pt2 -o model.so
  python resources/library/partita_model.py model.so resources/samples/mlp/io.safetensors
"""
import ctypes
import json
import os
import struct
import sys
import time

import numpy

# By PARTITA_BOOL ...: numpy has no bfloat16 and no float8, whose bits are passed instead.
DTYPES = [None, "bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "u1", "u1", "f2", "u2", "f4", "f8", None, "c8",
          "c16"]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("owner", ctypes.c_void_p)]


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("size_names", ctypes.POINTER(ctypes.c_char_p)),
                ("strides", ctypes.POINTER(ctypes.c_int64))]


class Value:
    """What is known of an input, a result, a weight or a gradient: its name, dtype, and sizes, in which a text is an
    expression of sizes that may change."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.code = info.dtype
        self.sizes = [info.size_names[d].decode() if info.sizes[d] < 0 else info.sizes[d] for d in range(info.rank)]

    def __repr__(self):
        return f"{self.name}: {DTYPES[self.code]}{self.sizes}"


class PartitaError(Exception):
    pass


class Model:
    def __init__(self, library, weights=None):
        self.c = ctypes.CDLL(os.path.abspath(library))
        self.c.partita_load.restype = ctypes.c_void_p
        self.c.partita_load.argtypes = [ctypes.c_char_p]
        self.c.partita_last_error.restype = ctypes.c_char_p
        for name in ("partita_guard", "partita_isa"):
            getattr(self.c, name).restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p(self.c.partita_load(weights.encode() if weights else None))
        if not self.handle:
            raise PartitaError(self.c.partita_last_error().decode())
        self.inputs, self.outputs = self._values("input"), self._values("output")
        self.weights, self.gradients = self._values("weight"), self._values("gradient")
        self.isa = self.c.partita_isa(self.handle).decode()
        self.guards = []
        while (text := self.c.partita_guard(self.handle, ctypes.c_size_t(len(self.guards)))) is not None:
            self.guards.append(text.decode())

    def close(self):
        if self.handle:
            self.c.partita_free(self.handle)
            self.handle = None

    def _check(self, status):
        if status:
            raise PartitaError(self.c.partita_last_error().decode())

    def _values(self, kind):
        count = getattr(self.c, f"partita_{kind}_count")
        count.restype = ctypes.c_size_t
        out = []
        for i in range(count(self.handle)):
            info = Info()
            self._check(getattr(self.c, f"partita_{kind}_info")(self.handle, ctypes.c_size_t(i), ctypes.byref(info)))
            out.append(Value(info))
        return out

    def _tensors(self, arrays, values):
        """Structs over the arrays' memory. A dtype that does not fit is the library's to refuse."""
        tensors = (Tensor * max(len(arrays), 1))()
        kept = []
        for i, given in enumerate(arrays):
            if given is None:
                continue
            array = numpy.asarray(given)
            code = values[i].code if i < len(values) else 0
            if numpy.dtype(DTYPES[code]) != array.dtype:
                code = next(k for k, d in enumerate(DTYPES) if d and numpy.dtype(d) == array.dtype)
            sizes = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
            strides = (ctypes.c_int64 * max(array.ndim, 1))(*[s // array.itemsize for s in array.strides])
            tensors[i] = Tensor(array.ctypes.data, code, array.ndim, sizes, strides, None)
            kept.append((array, sizes, strides))
        return tensors, kept

    def _results(self, tensors, count):
        out = []
        for t in tensors[:count]:
            if t.dtype == 0:
                out.append(None)
                continue
            dtype = numpy.dtype(DTYPES[t.dtype])
            sizes, strides = t.sizes[:t.rank], [s * dtype.itemsize for s in t.strides[:t.rank]]
            if 0 in sizes:
                out.append(numpy.empty(sizes, dtype))
                continue
            span = sum((n - 1) * s for n, s in zip(sizes, strides)) + dtype.itemsize
            memory = (ctypes.c_char * span).from_address(t.data)
            out.append(numpy.ndarray(sizes, dtype, memory, 0, strides).copy())
        self.c.partita_release(tensors, ctypes.c_size_t(count))
        return out

    def _forward(self, arrays, more):
        inputs, kept = self._tensors(arrays, self.inputs)
        results = (Tensor * max(len(self.outputs), 1))()
        run = self.c.partita_forward if more else self.c.partita_run
        self._check(run(self.handle, inputs, ctypes.c_size_t(len(arrays)), results, ctypes.c_size_t(len(self.outputs)),
                        *more))
        del kept
        return self._results(results, len(self.outputs))

    def run(self, *arrays):
        return self._forward(arrays, [])

    def forward(self, *arrays):
        """The results, and what backward() takes."""
        saved = ctypes.c_void_p()
        return self._forward(arrays, [ctypes.byref(saved)]), saved

    def backward(self, saved, tangents=None):
        """The gradients by their names. Without tangents that of a single number is one."""
        given, kept = self._tensors(tangents or [None] * len(self.outputs), self.outputs)
        results = (Tensor * max(len(self.gradients), 1))()
        try:
            self._check(self.c.partita_backward(self.handle, saved, given, ctypes.c_size_t(len(self.outputs)), results,
                                                ctypes.c_size_t(len(self.gradients))))
        finally:
            self.c.partita_free_saved(saved)
        del kept
        return dict(zip([v.name for v in self.gradients], self._results(results, len(self.gradients))))

    def weight(self, index):
        """The weight itself: writing the array changes the model. Of a model with --train, while it is open."""
        t = Tensor()
        self._check(self.c.partita_weight(self.handle, ctypes.c_size_t(index), ctypes.byref(t)))
        dtype = numpy.dtype(DTYPES[t.dtype])
        sizes, strides = t.sizes[:t.rank], [s * dtype.itemsize for s in t.strides[:t.rank]]
        span = sum((n - 1) * s for n, s in zip(sizes, strides)) + dtype.itemsize
        return numpy.ndarray(sizes, dtype, (ctypes.c_char * span).from_address(t.data), 0, strides)


def read_safetensors(path):
    """The tensors of a file without Partita's conventions for strides and complex numbers."""
    names = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8", "F16": "f2", "BF16": "u2",
             "F32": "f4", "F64": "f8"}
    bytes_ = open(path, "rb").read()
    size = struct.unpack("<Q", bytes_[:8])[0]
    header = json.loads(bytes_[8:8 + size])
    return {name: numpy.frombuffer(bytes_[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]],
                                   names[e["dtype"]]).reshape(e["shape"])
            for name, e in header.items() if name != "__metadata__"}


def main():
    library, io = sys.argv[1:3]
    start = time.perf_counter()
    model = Model(library)
    loaded = time.perf_counter()
    file = read_safetensors(io)
    arrays = [file[f"input.{i}"] for i in range(len(model.inputs))]
    first = time.perf_counter()
    results = model.run(*arrays)
    times = [time.perf_counter() - first]
    for _ in range(20):
        begin = time.perf_counter()
        results = model.run(*arrays)
        times.append(time.perf_counter() - begin)
    print(f"{model.isa}: loaded in {1e3 * (loaded - start):.1f} ms, first run {1e3 * times[0]:.1f} ms, "
          f"median of the others {1e3 * sorted(times[1:])[10]:.2f} ms")
    differ = False
    for value, result in zip(model.outputs, results):
        if value.name in file:
            expected = file[value.name]
            error = float(numpy.max(numpy.abs(result.astype("f8") - expected.astype("f8")), initial=0))
            bound = 1e-3 * max(1.0, float(numpy.max(numpy.abs(expected.astype("f8")), initial=0)))
            differ |= not error <= bound
            print(f"{value}: largest difference {error:.3g}{'' if error <= bound else ', too large'}")
    model.close()
    return differ


if __name__ == "__main__":
    sys.exit(main())

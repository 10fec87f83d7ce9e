"""One compiled graph as a function of PyTorch's tensors.

The first call with tensors of some layout describes them to the compiler; later ones, which one check of PyTorch's own
recognises, hand over addresses only. Results lie in memory that PyTorch allocates.
"""

import contextlib
import ctypes
import json
import operator
import struct
import threading

import torch

from . import _library
from .graph_json import Writer, flat
from .shared import Views, view_of

CODES = {getattr(torch, name): i + 1 for i, name in enumerate(_library.DTYPES) if hasattr(torch, name)}
DTYPES = {code: dtype for dtype, code in CODES.items()}
NUMBERS = {bool: CODES[torch.bool], int: CODES[torch.int64], float: CODES[torch.float64]}
HOLDERS = {bool: ctypes.c_bool, int: ctypes.c_int64, float: ctypes.c_double}
MOST_CALLS = 64  # layouts of arguments that are kept prepared
data_ptr = torch.Tensor.data_ptr
guards = torch._C._dynamo.guards
empty = guards._empty_strided_cpu


class NotPlain(Exception):
    """An argument whose memory does not hold its values: conjugated, negated, zeros without memory, another layout."""


class Described:
    """Arguments as the compiler takes them; lives until the call is over."""

    def __init__(self, args):
        self.values = (_library.Value * max(len(args), 1))()
        self.kept = []
        for value, arg in zip(self.values, args):
            value.input = -1
            if isinstance(arg, torch.Tensor):
                self.tensor(value, arg)
            elif arg is not None:
                self.number(value, arg)

    def tensor(self, value, t):
        if t.layout != torch.strided or t.is_conj() or t.is_neg() or t._is_zerotensor() or t.dtype not in CODES:
            raise NotPlain(f"an argument of {t.dtype} and layout {t.layout} whose memory does not hold its values")
        if t.device.type != "cpu":
            raise NotPlain(f"an argument on {t.device}")
        describe(value, data_ptr(t), t.dtype, t.shape, t.stride(), self.kept)

    def number(self, value, arg):
        kind = next((k for k in NUMBERS if isinstance(arg, k)), None)
        if kind is None:
            raise NotPlain(f"an argument that is a {type(arg).__name__}")
        holder = HOLDERS[kind](arg)
        self.kept.append(holder)
        value.data, value.dtype, value.is_number = ctypes.addressof(holder), NUMBERS[kind], 1


def describe(value, address, dtype, sizes, strides, kept):
    rank = len(sizes)
    sizes, strides = (ctypes.c_int64 * rank)(*sizes), (ctypes.c_int64 * rank)(*strides)
    kept += (sizes, strides)
    value.data, value.dtype, value.rank = address, CODES[dtype], rank
    value.sizes, value.strides = ctypes.cast(sizes, _library.Sizes), ctypes.cast(strides, _library.Sizes)


def reach(sizes, strides):
    """How many elements of memory a tensor spans."""
    return 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, strides))


class Memory:
    """A result in memory of its own."""

    def __init__(self, sizes, strides, dtype):
        self.spec = sizes, strides, dtype


class View:
    """A result that is a view of an argument."""

    def __init__(self, argument, sizes, strides, offset):
        self.argument, self.layout = argument, (sizes, strides, offset)

    def of(self, args):
        return view_of(args[self.argument], *self.layout)


class Argument(View):
    """A result that is an argument itself."""

    def __init__(self, argument):
        self.argument = argument

    def of(self, args):
        return args[self.argument]


class Known:
    """A result that the sizes decide: a number, None."""

    def __init__(self, value):
        self.value = value

    def of(self, args):
        return self.value


class Call:
    """A call that comes again: arguments of the same layouts, the same numbers."""

    def __init__(self, graph, described, args, results, show):
        """`show`: makes the call's results of `results` and of the arguments; None when they are these."""
        self.graph = graph  # keeps the handle alive
        self.show = show
        places = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        self.all = len(places) == len(args)
        self.pick = operator.itemgetter(*places) if len(places) > 1 else lambda args: tuple(args[i] for i in places)
        tensors = self.pick(args)
        self.guards = guards.TensorGuards(
            *tensors,
            dynamic_dims_sizes=[list(t.shape) for t in tensors],
            dynamic_dims_strides=[list(t.stride()) for t in tensors],
        ).check if tensors else None
        self.pack_inputs = struct.Struct(f"{len(tensors)}Q").pack
        self.results = results
        self.specs = [r.spec for r in results if isinstance(r, Memory)]
        self.pack_outputs = struct.Struct(f"{len(self.specs)}Q").pack
        self.only_memory = len(self.specs) == len(results)
        outputs, kept = (_library.Value * max(len(results), 1))(), []
        for value, result in zip(outputs, results):
            if isinstance(result, Memory):
                sizes, strides, dtype = result.spec
                describe(value, 64, dtype, sizes, strides, kept)
        library = _library.load()
        self.handle = ctypes.c_void_p()
        _library.check(library.partita_call_prepare(
            graph.handle, described.values, len(args), outputs, len(results), ctypes.byref(self.handle)))
        self.run, self.free = library.partita_call_run, library.partita_call_free

    def __del__(self):
        if getattr(self, "handle", None):
            self.free(self.handle)

    def fits(self, args):
        return self.guards is None or self.guards(*(args if self.all else self.pick(args)))

    def __call__(self, args):
        made = [empty(*spec) for spec in self.specs]
        inputs = self.pack_inputs(*map(data_ptr, args if self.all else self.pick(args)))
        outputs = self.pack_outputs(*map(data_ptr, made))
        if self.graph.draws:
            with random_state() as state:
                status = self.run(self.handle, inputs, outputs, state)
        else:
            status = self.run(self.handle, inputs, outputs, None)
        if status:
            _library.check(status)
        if not self.only_memory:
            made = iter(made)
            made = [next(made) if isinstance(r, Memory) else r.of(args) for r in self.results]
        return made if self.show is None else self.show(args, made)


@contextlib.contextmanager
def random_state():
    """The address of the state of PyTorch's generator, which goes on from what is there at the end."""
    state = torch.get_rng_state()
    yield data_ptr(state)
    torch.set_rng_state(state)


class Handle:
    """A graph of the library."""

    def __init__(self, text, attributes):
        self.library = _library.load()
        described = Described(attributes)
        self.attributes = attributes  # whose memory the graph reads
        self.handle = ctypes.c_void_p()
        _library.check(self.library.partita_graph_compile(
            text, len(text), described.values, len(attributes), ctypes.byref(self.handle)))
        self.draws = bool(self.library.partita_graph_draws(self.handle))

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.partita_graph_free(self.handle)

    def report(self):
        address = self.library.partita_graph_report(self.handle)
        return json.loads(_library.take_text(self.library, address))["compilations"] if address else []


class CompiledGraph:
    """Takes a list of arguments and returns a list of results, as the module does.

    Errors: PartitaError, with the graph's name; NotPlain for arguments that PyTorch has to run.
    """

    def __init__(self, module, name, config=()):
        self.name = name
        self.config = dict(config)
        self.views = Views.of(module)
        if self.views is not None:
            module = self.views.module
        self.writer = Writer(module, name)
        self.own_threads = "threads" in self.config
        self.lock = threading.Lock()
        self.threads = self.graph = None
        self.calls = {}
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        places = {node: i for i, node in enumerate(placeholders)}
        returned = flat(next(n for n in module.graph.nodes if n.op == "output").args[0])
        self.handed_on = [places.get(value) if isinstance(value, torch.fx.Node) else None for value in returned]
        self.numbers = [i for i, n in enumerate(placeholders) if not isinstance(n.meta.get("val"), torch.Tensor)]
        self.compile(torch.get_num_threads())

    def compile(self, threads):
        """Compiles for a number of threads, which code is made for."""
        config = self.config if self.own_threads else {**self.config, "threads": threads}
        self.graph = Handle(self.writer.text(config), self.writer.attributes)
        self.threads, self.calls = threads, {}

    def report(self):
        """What was compiled for sizes that are symbols: [{"number", "kind", "sizes", "guards", ...}]."""
        return self.graph.report()

    def __call__(self, args):
        if torch.get_num_threads() != self.threads:
            with self.lock:
                if torch.get_num_threads() != self.threads:
                    self.compile(torch.get_num_threads())
        numbers = tuple(args[i] for i in self.numbers) if self.numbers else ()
        known = self.calls.get(numbers)
        if known is not None:
            for call in known:
                if call.fits(args):
                    return call(args)
        return self.first(args, numbers)

    def first(self, args, numbers):
        """Runs with tensors that lie otherwise than before, and learns where results lie."""
        library, graph = _library.load(), self.graph
        described = Described(args)
        count = len(self.handed_on)
        outputs = (_library.Value * max(count, 1))()
        with random_state() if graph.draws else contextlib.nullcontext() as state:
            _library.check(library.partita_graph_run(graph.handle, described.values, len(args), outputs, count, state))
        try:
            results = [self.result(outputs[i], i, args) for i in range(count)]
            values = [self.value(outputs[i], result, args) for i, result in enumerate(results)]
        finally:
            library.partita_graph_release(outputs, count)
        show = None if self.views is None else self.views.learn(args, values)
        shown = values if show is None else show(args, values)
        if self.writer.by_values:
            return shown  # the next call's results may have other sizes
        call = Call(graph, described, args, results, show)
        with self.lock:
            if graph is self.graph:
                if sum(map(len, self.calls.values())) >= MOST_CALLS:
                    self.calls = {}
                self.calls.setdefault(numbers, []).append(call)
        return shown

    def result(self, value, index, args):
        if self.handed_on[index] is not None:
            return Argument(self.handed_on[index])
        if not value.data:
            return Known(None)
        if value.is_number:
            kind = next(k for k, code in NUMBERS.items() if code == value.dtype)
            return Known(HOLDERS[kind].from_address(value.data).value)
        sizes, strides = tuple(value.sizes[: value.rank]), tuple(value.strides[: value.rank])
        dtype = DTYPES[value.dtype]
        if value.input >= 0 and args[value.input].dtype == dtype and 0 not in sizes:
            distance = value.data - data_ptr(args[value.input])
            return View(value.input, sizes, strides, distance // dtype.itemsize)
        return Memory(sizes, strides, dtype)

    def value(self, value, result, args):
        if not isinstance(result, Memory):
            return result.of(args)
        sizes, strides, dtype = result.spec
        made = empty(sizes, strides, dtype)
        ctypes.memmove(data_ptr(made), value.data, reach(sizes, strides) * dtype.itemsize)
        return made

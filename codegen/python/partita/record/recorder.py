"""Records the graphs that are compiled in this process, and the values of some of their calls.

Nothing that goes wrong here may reach the program: what the recorder does of its own runs in guarded(), which turns an
error into a line on stderr and an event in session.json.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import functools
import math
import os
import platform
import shutil
import sys
import threading
import time

import torch

from . import folder as folders
from .laid_out import runnable
from .settings import Settings
from .values import ValueFile, Written, are_finite, byte_count, is_plain

SECONDS_BETWEEN_WRITES = 2.0
CACHE_STATES = ("hit", "miss", "bypass")


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


@contextlib.contextmanager
def alone():
    """What the recorder computes is seen by no mode, no tape and no trace of the program."""
    # What takes the modes off takes longer than most of what is done here, and there are seldom any.
    any_modes = torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack()
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass(), _without_modes() if any_modes else _NOTHING:
        yield


_NOTHING = contextlib.nullcontext()


def _without_modes():
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def guarded(method):
    """An error of the recorder's own is told, and does not go on.  Returns None then."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            with alone():
                return method(self, *args, **kwargs)
        except Exception as error:
            self.failed(error)
            return None

    return call


def compile_id() -> str:
    from torch._guards import CompileContext

    found = CompileContext.current_compile_id()
    return str(found) if found is not None else ""


def cache_counts() -> dict[str, int]:
    from torch._dynamo.utils import counters

    return {state: counters["inductor"][f"fxgraph_cache_{state}"] for state in CACHE_STATES}


# Options that say where and when inductor works, and not what code it makes.
OTHER_OPTIONS = ("trace.", "fx_graph_", "compile_threads", "worker_", "force_disable_caches", "quiesce_", "debug")


def inductor_options() -> dict[str, object]:
    """What the program set of torch._inductor.config, as far as it is numbers and words."""
    from torch._inductor import config

    out = {}
    for name, entry in getattr(config, "_config", {}).items():
        if name.startswith(OTHER_OPTIONS) or config._is_default(name):
            continue
        value = functools.reduce(getattr, name.split("."), config)
        if value == entry.default:  # inductor sets some to what they are
            continue
        if value is None or isinstance(value, (bool, int, float)) or isinstance(value, str) and value.isidentifier():
            out[name] = value
    return out


def is_fake(values) -> bool:
    from torch._subclasses import FakeTensor

    return any(isinstance(v, FakeTensor) for v in values)


def is_capturing() -> bool:
    """A CUDA graph is being captured, which takes no copies to the host."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def draws(gm: torch.fx.GraphModule) -> bool:
    """Does the graph draw from a random generator?"""
    return any(node.op == "call_function" and ("inductor_seed" in str(node.target)
                                               or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()))
               for node in gm.graph.nodes)  # fmt: skip


def holds(copy, value: torch.Tensor) -> bool:
    """Can `value` be copied into the memory of an earlier copy?"""
    return (isinstance(copy, torch.Tensor) and is_plain(copy) and copy.shape == value.shape and copy.dtype == value.dtype
            and copy.stride() == value.stride() and copy.device == value.device
            and (not copy.is_inference() or torch.is_inference_mode_enabled())
            and not any(n > 1 and s == 0 for n, s in zip(value.shape, value.stride())))  # fmt: skip


def copies(values: list, old: list | None) -> list:
    """Copies of tensors, in the memory of earlier copies where they fit: new memory is dear for each call."""
    out, into, fitting = [], [], []
    for value, before in zip(values, old or [None] * len(values)):
        if holds(before, value):
            into.append(before)
            fitting.append(value)
            out.append(before)
        else:
            out.append(value.detach().clone())
    if into:
        torch._foreach_copy_(into, fitting)
    return out


def written_by(gm: torch.fx.GraphModule) -> set[int]:
    """The places of the inputs that the graph's own calls write to."""
    places = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
    out = set()
    for node in gm.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op == "call_function" and schema is not None and schema.is_mutable:
            for argument, value in zip(schema.arguments, node.args):
                if argument.alias_info is not None and argument.alias_info.is_write and value in places:
                    out.add(places[value])
    return out


class RecordedGraph:
    """A graph that was compiled, and how often it ran."""

    def __init__(self, number: int, kind: str, compile_id: str, stem: str):
        self.number, self.kind, self.compile_id, self.stem = number, kind, compile_id, stem
        self.calls = 0
        self.seconds = 0.0  # of all calls, without what recording took
        self.first_seconds = 0.0
        self.watched = 0  # calls below and at this number are watched
        self.draws = False  # from torch's generators
        self.mutated: set[int] = set()  # inputs that a call writes to, as the program wants it
        self.before: list | None = None  # with until_nan: memory for copies of inputs
        self.donated: set[int] = set()  # inputs whose memory a call may use for other things
        self.cache_before: dict[str, int] = {}
        self.infinite: set[int] = set()  # outputs that had an infinity in the first call, as masks do
        self.constants: dict[str, torch.Tensor] = {}
        # With until_exception: the last call, copies of its inputs and the generator's state.
        self.slot: tuple[int, list, torch.Tensor | None] | None = None
        self.row: dict = {}
        self.recorded: list[dict] = []

    def as_json(self) -> dict:
        first = self.recorded[0] if self.recorded else {}
        return {**self.row, "inputs": first.get("inputs"), "outputs": first.get("outputs"), "calls": self.calls,
                "seconds": round(self.seconds, 6), "first_seconds": round(self.first_seconds, 6),
                "recorded": self.recorded}  # fmt: skip


class Recorder:
    """A recording of this process.  Its folder is made when the first graph is compiled."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self.active = True
        self.path = ""
        self.graphs: list[RecordedGraph] = []
        self.events: list[dict] = []
        self.written = Written(settings.limit)
        self.values_end = ""  # why no more values are written; empty: they are
        self.started = now()
        self.next_write = 0.0
        self.session: dict = {}
        self.trace_to_copy: tuple[str, str] | None = None

    # The folder

    def claim(self) -> bool:
        """Has this process a folder?  Makes it at the first call."""
        if self.path or not self.active:
            return self.active
        rank = folders.rank_of_environment()
        distributed = torch.distributed
        if rank is None and distributed.is_available() and distributed.is_initialized():
            rank = distributed.get_rank()
        self.path = folders.claim(self.settings.dir, rank)
        self.session = {
            "format": folders.FORMAT, "torch": torch.__version__, "python": platform.python_version(),
            "argv": [sys.executable, *sys.argv], "pid": self.pid, "rank": rank,
            "world_size": int(os.environ["WORLD_SIZE"]) if os.environ.get("WORLD_SIZE", "").isdigit() else None,
            "started": self.started, "ended": None,
            "environment": {k: v for k, v in os.environ.items() if k.startswith(("TORCH", "INDUCTOR"))},
            "settings": {"values": ",".join(n for n in ("inputs", "outputs") if getattr(self.settings, n)) or "none",
                         "limit": self.settings.limit, "per_graph": self.settings.per_graph,
                         "calls": self.settings.calls, "until_nan": self.settings.until_nan,
                         "until_exception": self.settings.until_exception, "graphs": list(self.settings.graphs)},
        }  # fmt: skip
        atexit.register(self.close)
        self.take_trace()
        return True

    def take_trace(self) -> None:
        """The log of this process's compilations is in the folder: it is written there, or has a second name there."""
        stream = getattr(torch._logging._internal.LOG_TRACE_HANDLER, "stream", None)
        if stream is None:
            return
        path = os.readlink(f"/proc/self/fd/{stream.fileno()}")
        inside = os.path.join(self.path, "trace")
        name = os.path.basename(path)
        if os.path.abspath(os.path.dirname(path)) != os.path.abspath(inside):
            os.makedirs(inside, exist_ok=True)
            try:
                os.link(path, os.path.join(inside, name))
            except OSError:
                self.trace_to_copy = (path, os.path.join(inside, name))
        self.session["trace"] = f"trace/{name}"
        if not self.settings.own_trace:
            self.session["trace_of_user"] = os.path.abspath(path)

    def note(self, kind: str, **more) -> None:
        with self.lock:
            if len(self.events) < 1000:
                self.events.append({"kind": kind, "at": now(), **more})

    def write(self) -> None:
        """Raises OSError."""
        with self.lock:
            begin = time.perf_counter()
            folders.write_session(self.path, {**self.session, "bytes": self.written.bytes, "events": self.events,
                                              "graphs": [g.as_json() for g in self.graphs]})  # fmt: skip
            took = time.perf_counter() - begin
            self.next_write = time.perf_counter() + max(SECONDS_BETWEEN_WRITES, 100 * took)

    def failed(self, error: Exception) -> None:
        """Told once; no more values are written, as the next would fail in the same way."""
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        first = not self.values_end
        self.values_end = self.values_end or what
        if not first:
            return
        lost = "nothing is recorded" if not self.path else "no more values are recorded"
        folders.tell("failed", f"{lost}; the program goes on: {what}", self.settings.home)
        self.note("failed", reason=what)
        if not self.path:
            self.active = False
            return
        try:
            self.write()
        except OSError:
            pass  # it was told, and the session.json of before stands

    # Compilations

    def is_mine(self) -> bool:
        """False in a fork, which has a recorder of its own for what it compiles itself."""
        return self.active and self.pid == os.getpid()

    @guarded
    def begin(self, gm: torch.fx.GraphModule, kind: str, inputs: list) -> RecordedGraph | None:
        """Before a graph is compiled, which changes it.  `inputs`: the fake ones that it is compiled for."""
        with self.lock:
            if not self.claim():
                return None
            number = len(self.graphs)
            graph = RecordedGraph(number, kind, compile_id(), f"{number:03d}.{kind}")
            graph.mutated = written_by(gm)
            graph.draws = draws(gm)
            graph.cache_before = cache_counts()
            for node in gm.graph.nodes:
                if node.op == "get_attr":
                    value = functools.reduce(lambda m, part: getattr(m, part, None), node.target.split("."), gm)
                    if isinstance(value, torch.Tensor) and not is_fake([value]):
                        graph.constants[node.target] = value
            graph.row = {"id": number, "compile_id": graph.compile_id, "kind": kind,
                         "file": f"graphs/{graph.stem}.py", "fx_key": None, "cache": None,
                         "compile_seconds": None}  # fmt: skip
            if kind != "dynamo":
                graph.row["options"] = inductor_options()
            text = runnable(gm, inputs).print_readable(print_output=False, include_stride=True, include_device=True)
            folders.write_text(os.path.join(self.path, graph.row["file"]), text + "\n")
            self.graphs.append(graph)
            if self.settings.wanted(graph.compile_id):
                watching = self.settings.until_nan or self.settings.until_exception
                graph.watched = sys.maxsize if watching else self.settings.calls
            self.write()
            return graph

    @guarded
    def compiled(self, graph: RecordedGraph, result, seconds: float) -> None:
        graph.row["compile_seconds"] = round(seconds, 6)
        graph.row["fx_key"] = getattr(result, "_fx_graph_cache_key", None)
        after = cache_counts()
        graph.row["cache"] = next((s for s in CACHE_STATES if after[s] > graph.cache_before[s]), "off")
        graph.mutated |= set(getattr(result, "mutated_input_idxs", None) or ())
        context = torch._guards.TracingContext.try_get()
        if graph.kind == "backward":
            graph.donated = set(getattr(getattr(context, "fw_metadata", None), "bw_donated_idxs", None) or ())
        self.write()

    @guarded
    def not_compiled(self, graph: RecordedGraph, error: BaseException) -> None:
        graph.row["error"] = f"{type(error).__name__}: {str(error)[:500]}"
        self.note("compilation_failed", graph=graph.number, reason=graph.row["error"])
        self.write()

    # Calls

    def caller(self, graph: RecordedGraph, run):
        """A function in the place of `run`, which takes a list of inputs and may empty it."""
        clock = time.perf_counter

        def call(inputs):
            graph.calls += 1
            if graph.calls <= graph.watched and self.is_mine():
                return self.watched_call(graph, graph.calls, run, inputs)
            begin = clock()
            try:
                return run(inputs)
            finally:
                end = clock()
                graph.seconds += end - begin
                if end > self.next_write:
                    self.write_counts()

        call._boxed_call = True
        return call

    def write_counts(self) -> None:
        if not self.is_mine() or not self.path:
            if self.active:
                folders.tell("forked", "a forked process calls graphs that its parent compiled; only what it compiles "
                             "itself is recorded", self.settings.home)  # fmt: skip
            self.next_write = math.inf
            return
        self.next_write = time.perf_counter() + SECONDS_BETWEEN_WRITES
        try:
            self.write()
        except OSError as error:
            self.failed(error)

    def watched_call(self, graph: RecordedGraph, number: int, run, inputs):
        if self.values_end or is_fake(inputs) or is_capturing():
            return run(inputs)
        first = number <= self.settings.calls
        kept = None
        state = torch.get_rng_state() if graph.draws else None
        if first:
            budget = [self.settings.per_graph]
            record = self.keep_inputs(graph, number, "first", list(inputs), state, budget)
        elif self.settings.until_nan:
            kept = self.refer(graph, list(inputs), state)
        if self.settings.until_exception:
            self.fill_slot(graph, number, list(inputs), state)
        begin = time.perf_counter()
        try:
            out = run(inputs)
        except Exception as error:
            self.call_failed(graph, number, error, kept)
            raise
        finally:
            seconds = time.perf_counter() - begin
            graph.seconds += seconds
            if number == 1:
                graph.first_seconds = seconds
        if first and record is not None:
            self.keep_outputs(graph, record, out, budget)
        if self.settings.until_nan:
            self.look(graph, number, kept, out)
        if time.perf_counter() > self.next_write:
            self.write_counts()
        return out

    def value_file(self, graph: RecordedGraph, call: int, side: str, budget: list[int]) -> ValueFile:
        stem = graph.stem if call == 1 else f"{graph.stem}.call{call}"
        path = os.path.join(self.path, "graphs", f"{stem}.{side}.safetensors")
        return ValueFile(path, self.written, budget, self.settings.per_graph)

    @guarded
    def keep_inputs(self, graph: RecordedGraph, call: int, why: str, inputs: list, state: torch.Tensor | None,
                    budget: list[int]) -> dict:  # fmt: skip
        """Writes the inputs of a call, and the generator's state; returns its row, with the inputs that the call may
        write to."""
        with self.lock:
            record = {"call": call, "why": why, "inputs": None, "outputs": None, "left_out": 0}
            if self.settings.inputs:
                file = self.value_file(graph, call, "inputs", budget)
                for i, value in enumerate(inputs):
                    file.add(f"input.{i}", value)
                for name, value in graph.constants.items():
                    file.add(f"constant.{name}", value)
                if state is not None:
                    file.add("generator.cpu", state)
                file.write()
                record["inputs"] = f"graphs/{file.name}"
                record["left_out"] = len(file.left_out)
            graph.recorded.append(record)
            self.write()
            tensors = {i: v for i, v in enumerate(inputs) if isinstance(v, torch.Tensor)}
            if graph.kind != "dynamo":
                return {"row": record, "mutable": {i: v for i, v in tensors.items() if i in graph.mutated}}
            # A graph of torch calls does not say what it writes to.
            versions = {i: v._version for i, v in tensors.items() if not v.is_inference()}
            return {"row": record, "mutable": tensors, "versions": versions}

    @guarded
    def keep_outputs(self, graph: RecordedGraph, record: dict, out, budget: list[int]) -> None:
        with self.lock:
            row = record["row"]
            if self.settings.outputs:
                file = self.value_file(graph, row["call"], "outputs", budget)
                outputs = out if isinstance(out, (tuple, list)) else (out,)
                for i, value in enumerate(outputs):
                    file.add(f"output.{i}", value)
                versions = record.get("versions", {})
                for i, value in record["mutable"].items():
                    if i not in versions or versions[i] != value._version:
                        file.add(f"input_after.{i}", value)
                file.write()
                row["outputs"] = f"graphs/{file.name}"
                row["left_out"] += len(file.left_out)
            self.write()

    # The first NaN, and an exception

    @guarded
    def refer(self, graph: RecordedGraph, inputs: list, state: torch.Tensor | None) -> tuple:
        """The inputs as they are before the call, with copies of those that it may write to; those that it writes to;
        the generator's state; and the copies, if the next call may have their memory."""
        may_change = graph.mutated | graph.donated if graph.kind != "dynamo" else range(len(inputs))
        places = [i for i, v in enumerate(inputs) if i in may_change and isinstance(v, torch.Tensor) and is_plain(v)]
        values = [inputs[i] for i in places]
        reused = sum(map(byte_count, values)) <= self.settings.per_graph
        old, graph.before = graph.before, None  # a call of another thread has memory of its own
        copied = copies(values, old)
        before = list(inputs)
        for i, value in zip(places, copied):
            before[i] = value
        return before, {i: inputs[i] for i in graph.mutated if i < len(inputs)}, state, copied if reused else None

    @guarded
    def look(self, graph: RecordedGraph, number: int, kept: tuple | None, out) -> None:
        """Ends the recording of values at the first output that has a NaN, or an infinity where the first call had
        none: a mask has them always."""
        outputs = out if isinstance(out, (tuple, list)) else (out,)
        # A forward hands on some of its inputs for the backward.
        inputs, after, state, copied = kept or ((), {}, None, None)
        given = {v.data_ptr() for v in inputs if isinstance(v, torch.Tensor) and is_plain(v)}
        bad = []
        for i, (no_nan, no_inf) in are_finite(outputs, given):
            if number == 1 and not no_inf:
                graph.infinite.add(i)
            if not no_nan or (not no_inf and i not in graph.infinite):
                bad.append(i)
        if not bad:
            graph.before = copied
            return
        if kept is not None:  # else it is one of the first calls, which is written already
            budget = [self.settings.per_graph]
            record = self.keep_inputs(graph, number, "nan", inputs, state, budget)
            if record is not None:
                record["mutable"], record["versions"] = after, {}
                self.keep_outputs(graph, record, out, budget)
        elif graph.recorded:
            graph.recorded[-1]["why"] = "nan"
        in_inputs = [i for i, (no_nan, _) in are_finite(inputs) if not no_nan]
        self.note("nan", graph=graph.number, call=number, outputs=bad, nan_in_inputs=in_inputs)
        where = "; its inputs have some already" if in_inputs else ""
        folders.tell("nan", f"call {number} of graph {graph.stem} ({graph.compile_id}) has a NaN or an infinity in its "
                     f"outputs{where}", self.settings.home)  # fmt: skip
        self.stop_watching()
        self.write()

    def stop_watching(self) -> None:
        for graph in self.graphs:
            graph.watched = min(graph.watched, self.settings.calls)
            graph.slot = graph.before = None

    @guarded
    def fill_slot(self, graph: RecordedGraph, number: int, inputs: list, state: torch.Tensor | None) -> None:
        """Copies the inputs into the memory of the copies of the call before, where they fit."""
        plain = [isinstance(v, torch.Tensor) and is_plain(v) for v in inputs]
        if sum(byte_count(v) for v, is_tensor in zip(inputs, plain) if is_tensor) > self.settings.per_graph:
            graph.slot = None
            return
        places = [i for i, is_tensor in enumerate(plain) if is_tensor]
        old = [graph.slot[1][i] for i in places] if graph.slot else None
        graph.slot = None
        kept = list(inputs)
        for i, value in zip(places, copies([inputs[i] for i in places], old)):
            kept[i] = value
        graph.slot = (number, kept, state)

    @guarded
    def keep_slot(self, graph: RecordedGraph, why: str) -> None:
        if graph.slot is None:
            return
        (number, inputs, state), graph.slot = graph.slot, None
        if all(record["call"] != number for record in graph.recorded):
            self.keep_inputs(graph, number, why, inputs, state, [self.settings.per_graph])

    @guarded
    def call_failed(self, graph: RecordedGraph, number: int, error: Exception, kept: tuple | None) -> None:
        self.note("exception", graph=graph.number, call=number, type=type(error).__name__, message=str(error)[:500])
        if graph.slot is None and kept is not None:
            self.keep_inputs(graph, number, "exception", kept[0], kept[2], [self.settings.per_graph])
        self.keep_slot(graph, "exception")
        self.write()

    @guarded
    def close(self) -> None:
        """The end of the program, or of the recording."""
        atexit.unregister(self.close)
        if not self.is_mine():
            return
        error = getattr(sys, "last_value", None)  # of the exception that ends the program
        if error is not None:
            self.note("exception", type=type(error).__name__, message=str(error)[:500])
            for graph in self.graphs:
                self.keep_slot(graph, "exception")
        self.active = False
        if not self.path:
            return
        if self.trace_to_copy:
            shutil.copyfile(*self.trace_to_copy)
        self.session["ended"] = now()
        self.write()

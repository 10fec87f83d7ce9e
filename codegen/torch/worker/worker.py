"""Runs graphs in PyTorch for Partita: python worker.py CONTROL_FD.

One process imports PyTorch once and forks a child for each try, so that a crash, a hang or a lack of memory is the
result of one try. Each packet that comes through CONTROL, "eager" or "warm" where inductor is to be warm, carries a
socket, which is one try: its request is one message and its answer another. A message is its length in 8 bytes,
little-endian, which may carry one descriptor, and JSON. Who closes the socket, ends the try. This process ends when
nobody holds the other end of CONTROL.
"""

import importlib.util
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

LOG_BYTES = 16000
OLDEST = (2, 6)


def send(connection, message, fd=None):
    body = json.dumps(message).encode()
    header = struct.pack("<Q", len(body))
    if fd is None:
        connection.sendall(header)
    else:
        socket.send_fds(connection, [header], [fd])
    connection.sendall(body)


def receive(connection):
    header, fds, _, _ = socket.recv_fds(connection, 8, 1)
    while header and len(header) < 8:
        header += connection.recv(8 - len(header))
    if len(header) < 8:
        sys.exit(0)  # the other side is gone
    body = bytearray(struct.unpack("<Q", header)[0])
    view = memoryview(body)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            sys.exit(0)
        view = view[count:]
    return json.loads(body), fds[0] if fds else None


def tail(path):
    with open(path, "rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_BYTES))
        return log.read().decode(errors="replace")


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0]


def what_failed(error):
    """The first line of an exception, with what inductor writes further below: a C++ error, the operator that it
    lowered."""
    text = str(error)
    more = re.search(r"^\S+: ((?:fatal )?error: .*)$", text, re.M) or re.search(r"^ *target: (\S+)$", text, re.M)
    return first_line(error) + (f" ({more[1].strip()})" if more else "")


def limit_memory(count):
    """More than `count` bytes beyond what this process has are refused; 0: none are."""
    if count:
        with open("/proc/self/statm") as pages:
            now = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + count, now + count))


def run(request, memory, times, progress):
    """The results of a graph, run as its column says."""
    import torch

    import columns
    import graphs
    import ranks
    import values

    device = request["device"]
    if device and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise values.Refused(f"this machine's PyTorch has no device {device!r}")
    with columns.timed(times, "build"):
        given = [memory.value(v) for v in request["inputs"]]
        inputs = [v.to(device) if device and isinstance(v, torch.Tensor) else v for v in given]
        module = graphs.Builder(request["graph"], memory, device).module
    progress("running" if request["column"] == "eager" else "compiling")
    with ranks.place_in(request["job"]):
        found = columns.run_column(request["column"], module, inputs, request, times)
        if request["job"]:
            ranks.wait_for(found)
    for value, there in zip(given, inputs):  # what was written on a device
        if there is not value and not torch.equal(value, there.cpu()):
            value.copy_(there)
    return found


def call(request, memory, times, progress):
    """The result of one operator."""
    import graphs

    operator = graphs.operator_named(request["target"])
    args = [memory.value(v) for v in request["args"]]
    progress("running")
    return [operator(*args, **{key: memory.value(v) for key, v in request["kwargs"].items()})]


def locate(request, memory, times, progress):
    """No values; the report goes into the answer."""
    import columns
    import graphs
    from locating.locate import locate as search

    inputs = [memory.value(v) for v in request["inputs"]]
    module = graphs.Builder(request["graph"], memory, "").module
    columns.refuse_shared_writes(module, inputs)
    request["report"] = search(module, inputs, is_inference=request["is_inference"],
                               options=columns.inductor_options(request["options"], module), progress=progress,
                               want_switches=request["switches"])  # fmt: skip
    return []


def locate_program(request, memory, times, progress):
    """No values; the reports go into the answer."""
    import columns
    import graphs
    from locating import program, program_search

    def built(described):
        try:
            return graphs.Builder(described, memory, "").module
        except values.Refused as error:  # a graph of the log; the others are looked at
            return str(error)

    import values

    inputs = [memory.value(v) for v in request["inputs"]]
    for value, wanted in zip(inputs, request["requires_grad"]):
        if wanted:
            value.requires_grad_()
    log = []
    for one in request["log"]:
        back = one["backward"]
        log.append(program.LogGraph(one["role"], one["id"], built(one["graph"]), back and back["id"],
                                    back and built(back["graph"])))  # fmt: skip
    module = graphs.Builder(request["graph"], memory, "").module
    asked = program.Program(module, inputs, [memory.value(v) for v in request["tangents"]], not request["is_inference"],
                            columns.inductor_options(request["options"], module), request["kind"], log)  # fmt: skip
    if asked.kind != "program":
        columns.refuse_shared_writes(asked.module, inputs)
    request["report"] = program_search.locate_program(asked, progress, request["switches"])
    return []


VERBS = {"run": run, "call": call, "locate": locate, "locate_program": locate_program}


def answer(request, fd, progress):
    """The answer to a request, and the memory that goes with it. `progress` tells what the try is at."""
    import torch

    import values

    times = {}
    try:
        limit_memory(request["memory_bytes"])
        torch.set_num_threads(request["threads"])
        memory = values.Memory(request["storages"], fd)
        draws = request["random_state"] is not None
        if draws:
            torch.set_rng_state(memory.value(request["random_state"]).clone())
        found = VERBS[request["verb"]](request, memory, times, progress)
        described = [memory.describe(v) for v in found]
        state = memory.describe(torch.get_rng_state()) if draws else None
        sizes, out = memory.write_new()
        answer = {"status": "ok", "values": described, "storages": sizes, "times": times, "random_state": state}
        return answer | {"report": request.get("report")}, out
    except values.Refused as error:
        return {"status": "refused", "message": str(error)}, None
    except Exception as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            return {"status": "memory"}, None
        return {
            "status": "exception",
            "type": type(error).__name__,
            "message": what_failed(error),
            "node": getattr(error, "partita_node", ""),
            "trace": traceback.format_exc()[-LOG_BYTES:],
        }, None


def child(connection, log):
    """What a fork does; it never returns."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        out = os.open(log, os.O_WRONLY | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        found, fd = answer(*receive(connection), lambda at: send(connection, {"status": "progress", "at": at}))
        found["log"] = tail(log)
        send(connection, found, fd)
        code = 0
    except (BrokenPipeError, SystemExit):
        code = 0  # nobody waits any more
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def warm_up():
    """Compiles a tiny graph, so that forks find inductor's modules loaded and its precompiled header made."""
    import torch

    import columns

    columns.keep_whole_files_only()
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ops.aten.add.Tensor, (x, 1)),))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    x.meta.update({"dims": [4], "symbol": x.name})
    try:
        columns.inductor(module, [torch.zeros(4)], {"options": {}, "is_inference": True}, {})
    except Exception:
        traceback.print_exc()  # each try finds the same, and answers it


class Zygote:
    """Forks the tries, and tells those who wait how a child died."""

    def __init__(self, control, folder):
        self.control, self.folder = control, folder
        self.children = {}  # by pid: connection, log
        self.warm = False
        self.tries = 0

    def serve(self):
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            poll = select.poll()
            poll.register(self.control, select.POLLIN)
            poll.register(wake, select.POLLIN)
            for connection, _ in self.children.values():
                poll.register(connection, select.POLLRDHUP)
            ready = {fd for fd, _ in poll.poll()}
            if wake in ready:
                os.read(wake, 4096)
            self.reap()
            for pid, (connection, _) in self.children.items():
                if connection.fileno() in ready:
                    self.kill(pid)
            if self.control.fileno() in ready and not self.begin():
                break
        for pid in self.children:
            self.kill(pid)

    def begin(self):
        """Takes the next try. False when there will be none."""
        kind, fds, _, _ = socket.recv_fds(self.control, 16, 1)
        if not kind:
            return False
        connection = socket.socket(fileno=fds[0])
        if kind == b"warm" and not self.warm:
            warm_up()
            self.warm = True
        self.tries += 1
        log = os.path.join(self.folder, f"try-{self.tries}.log")
        open(log, "w").close()
        pid = os.fork()
        if pid == 0:
            child(connection, log)
        self.children[pid] = (connection, log)
        return True

    def kill(self, pid, ends=(os.killpg, os.kill)):  # it may not have made its group yet
        for end in ends:
            try:
                end(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def reap(self):
        while self.children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid not in self.children:
                continue
            connection, log = self.children.pop(pid)
            self.kill(pid, [os.killpg])  # what the try started, compilers for instance, ends with it
            if status != 0:
                self.tell_death(connection, status, log)
            connection.close()
            os.unlink(log)

    def tell_death(self, connection, status, log):
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        try:
            send(connection, {"status": "died", "signal": number, "code": os.waitstatus_to_exitcode(status), "log": tail(log)})
        except OSError:
            pass  # nobody waits any more


def set_environment(cache, imports):
    """Inductor keeps its files with ours. The user's switches of PyTorch do not reach a comparison."""
    for name in list(os.environ):
        if name.startswith(("TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "AOT_", "PYTORCH_")):
            del os.environ[name]
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cache, "inductor")
    os.environ["TMPDIR"] = os.path.join(cache, "tmp")  # kept: inductor's precompiled header is there
    os.environ["OMP_NUM_THREADS"] = "1"  # a pool of threads does not survive a fork
    if imports:  # a module may change how inductor compiles, which the key of its cache of graphs does not know
        os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TMPDIR"):
        os.makedirs(os.environ[name], exist_ok=True)


def compiler():
    """The C++ compiler that inductor would start, as "g++ 12.2.0"; empty: none is there."""
    try:
        words = subprocess.run([os.environ.get("CXX", "g++"), "--version"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = (words.stdout.splitlines() or [""])[0].split()
    return " ".join(said[:1] + said[1:][-1:])


def hello(imports):
    """Imports PyTorch and the user's modules, and says what there is."""
    begin = time.perf_counter()
    try:
        import torch
    except ImportError as error:
        return {"status": "refused", "message": f"{sys.executable} has no PyTorch: {first_line(error)}"}
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST:
        return {"status": "refused", "message": f"{sys.executable} has torch {torch.__version__}; 2.6 or later is needed"}
    torch.set_num_threads(1)
    sys.path.append(os.getcwd())
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels of the user's own, in Triton, run on a CPU
    for module in imports:
        try:
            __import__(module)
        except Exception as error:
            return {"status": "refused", "message": f"--python-import {module}: {type(error).__name__}: {first_line(error)}"}
    import graphs

    graphs.functions()
    return {
        "status": "ok",
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "devices": f"{torch.cuda.device_count()} GPUs" if torch.cuda.is_available() else "CPU",
        "compiler": compiler(),
        "triton": "triton" if importlib.util.find_spec("triton") else "",
        "pid": os.getpid(),
        "seconds": time.perf_counter() - begin,
    }


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    setup, _ = receive(control)
    folder = os.path.dirname(os.path.abspath(__file__))
    set_environment(setup["cache"], setup["imports"])
    found = hello(setup["imports"])
    send(control, found)
    if found["status"] == "ok":
        Zygote(control, folder).serve()


if __name__ == "__main__":
    main()

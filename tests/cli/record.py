"""`partita record`: a program runs as it does without, and leaves a folder that every verb takes.

  record.py PARTITA SOURCE_DIR; without $PARTITA_TEST_PYTHON, a Python with PyTorch, only what needs none is tried."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PYTHON = os.environ.get("PARTITA_TEST_PYTHON")

TRAIN = """import hashlib, sys, torch
torch.manual_seed(0)
steps, nan_at, fault = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if fault:
    setattr(torch._inductor.config.cpp, fault, "accuracy")
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b = torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 4)
    def forward(self, x):
        return self.b(torch.log1p(torch.relu(self.n(self.a(x)))))
model = M()
compiled, optimizer = torch.compile(model), torch.optim.SGD(model.parameters(), 0.1)
for step in range(steps):
    x = torch.randn(8, 16)
    if step == nan_at:
        x[3, 5] = float("nan")
    loss = compiled(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(hashlib.md5(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
print(dict(torch._dynamo.utils.counters["frames"]), flush=True)
"""
EAGER = """import os, sys, torch
f = torch.compile(lambda x, y: (x * y).sin() + 1, backend="eager")
for k in range(4):
    out = f(torch.full((300, 1000), float(k)), torch.ones(300, 1000))
print(out.sum().item(), flush=True)
"""
KILLED = EAGER + "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"
FORKS = """import os, sys, torch
f = torch.compile(lambda x: x.sin(), backend="eager")
class D(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.full((4,), float(i))
print(sum(f(b).sum().item() for b in torch.utils.data.DataLoader(D(), num_workers=1)), flush=True)
pid = os.fork()
if pid == 0:
    print(torch.compile(lambda x: x * 2, backend="eager")(torch.ones(3)).sum().item(), flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
if len(sys.argv) < 2:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
os._exit(7)
"""
DROPOUT = """import sys, torch
if len(sys.argv) > 1:
    torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = sys.argv[1]
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 4))
f = torch.compile(lambda x: model(x + torch.randn_like(x) * 0.1 + torch.randint(0, 9, x.shape)).square().mean())
torch.rand(5)  # so that the numbers of a seed are not those of the call
f(torch.randn(8, 16)).backward()
torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), backend="eager")(torch.ones(5))
"""
CONVOLUTIONS = """import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
                            torch.nn.MaxPool2d(2), torch.nn.Conv2d(16, 16, 3), torch.nn.ReLU())
torch.compile(model)(torch.randn(16, 3, 32, 32)).square().mean().backward()
"""
RAISES = """import torch
f = torch.compile(lambda x, i: (x[i] * 2).sin())
x = torch.randn(10)
for k in range(6):
    f(x, torch.tensor([k if k < 5 else 12, 2]))
"""
RANKS = """import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
f = torch.compile(lambda x: (x.cos() * 2, x.sum()), backend="eager")
x, _ = f(torch.full((4,), float(dist.get_rank())))
dist.all_reduce(x)
os.write(1, f"{os.environ['RANK']} {x.sum().item()}\\n".encode())  # at once, as both ranks write
dist.barrier()  # without it PyTorch aborts a rank at its end, one time in some twenty
dist.destroy_process_group()
"""

with tempfile.TemporaryDirectory() as folder:
    base = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "INDUCTOR", "PARTITA_RECORD"))}
    base |= {"XDG_CONFIG_HOME": folder, "PARTITA_STORE": f"{folder}/store.sqlite", "OMP_NUM_THREADS": "1"}
    base |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}

    def write(name, text):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
        return f"{folder}/{name}"

    def run(*words, env={}, **how):
        return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=base | env, **how)

    def record(out, *program, options=(), env={}, **how):
        return run(PARTITA, "record", *(["-o", out] if out else []), *options, "--", *program, env=env, **how)

    def session_of(out):
        with open(f"{folder}/{out}/session.json") as file:
            return json.load(file)

    def said(done):
        return [line for line in done.stderr.splitlines() if "record: " in line]

    # What needs no PyTorch: the program's streams, exit code and signals are its own.
    done = record("none", "sh", "-c", "cat; echo to stderr >&2; exit 3", input="through\n")
    assert (done.returncode, done.stdout) == (3, "through\n") and "to stderr\n" in done.stderr, done
    assert len(said(done)) == 1 and "no Python of this program imported PyTorch" in said(done)[0], done.stderr
    assert not os.path.exists(f"{folder}/none")
    assert record("none", "sh", "-c", "kill -9 $$").returncode == -signal.SIGKILL
    assert record("none", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    done = record("none", "nosuchprogram")
    assert done.returncode == 127 and "nosuchprogram cannot be started: No such file" in done.stderr, done
    done = record(None, "sh", "-c", "echo $PYTHONPATH; echo $INDUCTOR_PROVENANCE; echo $TORCH_TRACE")
    home, provenance, trace = done.stdout.split()
    assert not os.path.exists(home) and provenance == "1" and trace == f"{folder}/recording/trace", done.stdout
    done = record("none", "sh", "-c", "echo $TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", options=["--profile"])
    assert done.stdout == "1\n", done
    # A signal that is sent to partita reaches the program.
    child = subprocess.Popen([PARTITA, "record", "-o", "none", "--", "sh", "-c",
                              "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.1; done"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=base)  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.communicate(timeout=20)[0] == "got\n" and child.returncode == 5, child.returncode
    # A folder that cannot be made, and one that has something in it.
    done = record("/proc/none", "sh", "-c", "echo on; exit 4")
    assert (done.returncode, done.stdout) == (4, "on\n") and len(said(done)) == 1, done
    assert "nothing is recorded; the program runs all the same" in done.stderr, done.stderr
    os.mkdir(f"{folder}/full")
    write("full/file", "x")
    done = record("full", "sh", "-c", "echo on")
    assert done.returncode == 2 and not done.stdout and "something in it already" in done.stderr, done
    for options in (["--limit", "much"], ["--values", "some"], ["--calls", "-1"], ["--per-graph", ""]):
        done = record("none", "true", options=options)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (options, done)
    assert run(PARTITA, "record", "-o", "none").returncode == 2
    # An own sitecustomize, words that are verbs or -, and a torch that is too old.
    os.mkdir(f"{folder}/site")
    write("site/sitecustomize.py", "FLAG = 'own'\n")
    own = write("own.py", "import sitecustomize, sys\nprint(sitecustomize.FLAG, sitecustomize.__file__, sys.argv[1:])\n")
    words = [sys.executable, own, "list", "-", "--", "-o", "x"]
    plain = run(*words, env={"PYTHONPATH": f"{folder}/site"})
    done = record("none", *words, env={"PYTHONPATH": f"{folder}/site"})
    assert plain.stdout == done.stdout and plain.stdout.startswith("own "), (plain, done)
    assert record("none", sys.executable, "-", input="print(2 + 3)\n").stdout == "5\n"
    os.makedirs(f"{folder}/old/torch")
    write("old/torch/__init__.py", "__version__ = '2.3.1+cpu'\n")
    done = record("none", sys.executable, "-c", "import torch; print(torch.__version__)",
                  env={"PYTHONPATH": f"{folder}/old"})  # fmt: skip
    assert done.stdout == "2.3.1+cpu\n" and said(done) == [
        "partita record: torch 2.3.1+cpu is older than 2.6; nothing of this program is recorded"], done  # fmt: skip

    if not PYTHON:
        print("$PARTITA_TEST_PYTHON names no Python with PyTorch: the rest is skipped")
        sys.exit(77)

    def partita(*words, code=0):
        done = run(PARTITA, "--python", PYTHON, *words)
        assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    # Training, whose results and number of compiled frames are those of the unrecorded program.
    train = write("train.py", TRAIN)
    plain = run(PYTHON, train, "6", "-1", "")
    done = record("trained", PYTHON, train, "6", "-1", "")
    assert done.returncode == plain.returncode == 0 and done.stdout == plain.stdout, (plain, done)
    assert len(said(done)) == 1 and "2 graphs" in said(done)[0], done.stderr
    session = session_of("trained")
    assert session["end"] == {"exit_code": 0} and session["command"][0] == PYTHON and session["ended"], session
    rows = session["graphs"]
    assert [(g["kind"], g["compile_id"], g["calls"], g["cache"]) for g in rows] == [
        ("forward", "0/0", 6, "miss"), ("backward", "0/0", 6, "miss")], rows  # fmt: skip
    listed = json.loads(partita("list", "trained", "--json"))
    graphs = {g["id"]: g for g in listed["graphs"]}
    assert not listed["warnings"], listed["warnings"]
    assert graphs["000.forward"]["recorded"]["calls"] == 6 and graphs["000.forward"]["group"] == "0/0", graphs
    for name in ("aot_forward_graph", "aot_backward_graph", "inductor_post_grad_graph"):
        assert graphs[f"0_0.{name}"]["recorded"]["inputs"].endswith(".inputs.safetensors"), name
    assert "recorded" not in graphs["0_0.aot_joint_graph"]
    text = partita("list", "trained")
    assert "miss" in text and "inputs, outputs of call 1" in text, text
    for which in ("0", "001.backward", "0_0.aot_forward_graph"):
        partita("run", "trained", "--graph", which, "--backend", "cpu", "-o", "out.safetensors")
    answer = json.loads(partita("compare", "trained", "--json"))
    assert answer["ok"] and {r["graph"] for r in answer["reports"]} == {"000.forward", "001.backward"}, answer
    assert all(r["found"] == "stored" and r["rows"] for r in answer["reports"]), answer
    names = {row["name"] for row in answer["reports"][0]["rows"]}
    assert {"output.0", "input_after.4", "input_after.5"} <= names, names
    partita("compare", "trained", "--graph", "0", "--backends", "interp,cpu")
    # Once more from the caches.
    done = record("again", PYTHON, train, "2", "-1", "", options=["--values", "none"])
    assert [g["cache"] for g in session_of("again")["graphs"]] == ["hit", "hit"], session_of("again")
    assert not [name for name in os.listdir(f"{folder}/again/graphs") if "safetensors" in name]

    # A planted fault is found from the folder alone.
    record("wrong", PYTHON, train, "2", "-1", "inject_log1p_bug_TESTING_ONLY")
    answer = json.loads(partita("compare", "wrong", "--json", code=1))
    assert not answer["ok"] and not answer["reports"][0]["ok"], answer
    found = json.loads(partita("locate", "wrong", "--json", code=1))
    guilty = [g for g in found["graphs"] if g["verdict"] == "kernel"]
    assert guilty and all(g["node"]["given"] == ["log1p"] for g in guilty), found
    assert guilty[0]["compilation"] == "000.forward" and guilty[0]["sure"], guilty[0]
    assert not json.loads(partita("locate", "trained", "--json"))["found"]

    # The first NaN, in the middle of a run.
    done = record("nan", PYTHON, train, "9", "6", "", options=["--until-nan"])
    plain = run(PYTHON, train, "9", "6", "")
    assert done.stdout == plain.stdout and any("call 7 of graph 000.forward" in line for line in said(done)), done
    kept = session_of("nan")["graphs"][0]["recorded"]
    assert [(c["call"], c["why"]) for c in kept] == [(1, "first"), (7, "nan")], kept
    [event] = [e for e in session_of("nan")["events"] if e["kind"] == "nan"]
    assert event["call"] == 7 and event["nan_in_inputs"] == [2], event
    partita("compare", "nan", "--graph", "000.forward.call7")
    assert json.loads(partita("run", "nan", "--graph", "0", "--json"))  # the call with the NaN

    # The call before an exception.
    raises = write("raises.py", RAISES)
    done = record("raised", PYTHON, raises, options=["--until-exception"])
    assert done.returncode == 1 and "out of bounds" in done.stderr, done
    kept = session_of("raised")["graphs"][0]["recorded"]
    assert [(c["call"], c["why"]) for c in kept] == [(1, "first"), (6, "exception")], kept
    assert {e["kind"] for e in session_of("raised")["events"]} == {"exception"}, session_of("raised")["events"]

    # Limits: 0, small ones, another compilation's values.
    eager = write("eager.py", EAGER)
    plain = run(PYTHON, eager)
    for options, kept in ((["--limit", "0"], 0), (["--per-graph", "1200000"], 1), (["--graph", "7/0"], None)):
        out = "limit" + "".join(options)
        done = record(out, PYTHON, eager, options=options)
        assert (done.returncode, done.stdout) == (0, plain.stdout), done
        assert ("beyond --limit" in done.stderr) == (kept is not None), done.stderr
        recorded = session_of(out)["graphs"][0]["recorded"]
        assert [c["left_out"] for c in recorded] == ([] if kept is None else [3 - kept]), (options, recorded)
        if kept is not None:
            done = run(PARTITA, "run", out, "--graph", "0")
            assert done.returncode == 2 and "has no values of input." in done.stderr and done.stderr.count("\n") == 1, done
            partita("list", out)
    # A disk that takes no more: the program goes on.
    done = record("disk", "sh", "-c", 'ulimit -f 400; exec "$0" "$1"', PYTHON, eager)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done
    assert len([line for line in said(done) if "no more values are recorded" in line]) == 1, done.stderr
    assert not [name for name in os.listdir(f"{folder}/disk/graphs") if name.endswith((".safetensors", ".part"))]
    assert session_of("disk")["events"][0]["kind"] == "failed", session_of("disk")
    partita("list", "disk")

    # A program that is killed leaves a folder that opens, and that says so.
    killed = write("killed.py", KILLED)
    child = subprocess.Popen([PARTITA, "record", "-o", "killed", "--", PYTHON, killed],
                             stdout=subprocess.PIPE, text=True, cwd=folder, env=base)  # fmt: skip
    while child.stdout.readline() != "ready\n":
        pass
    with open(f"/proc/{child.pid}/task/{child.pid}/children") as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
    assert child.wait(timeout=20) == -signal.SIGKILL, child.returncode
    assert session_of("killed")["end"] == {"signal": 9} and session_of("killed")["ended"] is None
    partita("compare", "killed")

    # Forks, workers, exec, os._exit; each process that compiles has its own folder.
    forks = write("forks.py", FORKS)
    plain, done = run(PYTHON, forks), record("forked", PYTHON, forks)
    assert done.returncode == plain.returncode == 7 and done.stdout == plain.stdout, (plain, done)
    assert session_of("forked")["ranks"] == ["process_2", "process_3", "process_4"], session_of("forked")
    ids = [g["id"] for g in json.loads(partita("list", "forked", "--json"))["graphs"]]
    assert "process_2/000.dynamo" in ids, ids
    partita("run", "forked", "--graph", "process_2/0")

    # A result that was not kept is not passed over without a word.
    two = write("two.py", """import torch
f = torch.compile(lambda x: (torch.outer(x, x), x + 1), backend="eager")
f(torch.arange(64.0))
""")
    assert record("two", PYTHON, two, options=["--per-graph", "2000"]).returncode == 0
    assert "output.0 is not compared: beyond the limit of one graph" in partita("compare", "two"), "not told"
    [missed] = json.loads(partita("compare", "two", "--json"))["left_out"]
    assert missed["reason"].startswith("output.0 is not compared"), missed
    by_table = partita("compare", "two", "--graph", "0", "--reference", "interp", "--against", "stored")
    assert "output.0 is not compared" in by_table, by_table

    # What inductor draws by seeds of its own is drawn again, from the generator's state; else it is left out by name.
    dropout = write("dropout.py", DROPOUT)
    assert record("drawn", PYTHON, dropout).returncode == 0
    compared = json.loads(partita("compare", "drawn", "--json"))
    assert [r["graph"].split(":")[0] for r in compared["reports"]] == ["000.forward", "001.backward"], compared
    assert [r["graph"] for r in compared["left_out"]] == ["002.dynamo"], compared["left_out"]
    assert "draws random numbers" in compared["left_out"][0]["reason"], compared["left_out"]
    assert record("wrongly_drawn", PYTHON, dropout, "accuracy").returncode == 0
    found = json.loads(partita("locate", "wrongly_drawn", "--graph", "0", "--json", code=1))
    assert any("relu" in json.dumps(one["node"]) for one in found["graphs"]), found
    partita("compare", "wrongly_drawn", "--graph", "0", "--reference", "interp", "--against", "torch:inductor", code=1)

    # Inductor gives the backward of convolutions other strides than its views were traced with; a mean near zero rounds.
    assert record("images", PYTHON, write("images.py", CONVOLUTIONS)).returncode == 0
    compared = json.loads(partita("compare", "images", "--json"))
    assert len(compared["reports"]) == 2 and "left_out" not in compared, compared.get("left_out")
    partita("locate", "images", "--graph", "0")

    # The ranks of torchrun, and a trace that the user asked for.
    ranks = write("ranks.py", RANKS)
    words = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", ranks]
    plain, done = run(*words), record("ranks", *words)
    assert done.returncode == plain.returncode == 0, (plain, done)
    assert sorted(done.stdout.splitlines()) == sorted(plain.stdout.splitlines()), (plain, done)
    assert session_of("ranks")["ranks"] == ["rank_0", "rank_1"] and session_of("ranks/rank_1")["rank"] == 1
    partita("compare", "ranks")
    assert record("small_ranks", *words, options=["--per-graph", "24"]).returncode == 0
    # All of them together, each on what it was given.
    by_rank = partita("compare", "small_ranks", "--ranks", "--graph", "000.dynamo", "--backends", "interp,stored")
    assert "output.0 is not compared" in by_rank, by_rank
    partita("compare", "ranks", "--ranks", "--graph", "000.dynamo", "--backends", "interp,stored")
    done = record("traced", PYTHON, eager, env={"TORCH_TRACE": f"{folder}/theirs"})
    assert done.returncode == 0 and any(f"the trace goes to {folder}/theirs" in line for line in said(done)), done
    assert os.listdir(f"{folder}/theirs") == os.listdir(f"{folder}/traced/trace"), os.listdir(f"{folder}/traced")

    # In a program.
    own = write("program.py", f"""import sys, torch
sys.path.insert(0, "{SOURCE}/codegen/python/partita/record/..")
import record
f = torch.compile(lambda x: x.sin() + 1)
assert record.start("started") == "{folder}/started"
f(torch.ones(3))
try:
    record.start("twice")
except RuntimeError as error:
    print(error)
record.stop()
f(torch.ones(3))
weight = torch.nn.Parameter(torch.ones(3))
print(record.save_repro(lambda x: (x * weight).tanh(), (torch.ones(3, requires_grad=True),), "repro"), weight.grad)
print(record.start("started"))
try:
    record.start("x", limit="lots")
except ValueError as error:
    print(error)
""")  # fmt: skip
    done = run(PYTHON, own)
    assert done.stdout.splitlines() == [
        f"{folder}/started is being recorded already", f"{folder}/repro None", f"{folder}/started_2",
        "'lots' is no size; write 64M, 1G or a number of bytes"], done  # fmt: skip
    assert [g["calls"] for g in session_of("started")["graphs"]] == [1]
    assert [g["kind"] for g in session_of("repro")["graphs"]] == ["forward", "backward"]
    for name in ("started", "repro"):
        partita("compare", name)
print("ok")

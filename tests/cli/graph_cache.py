#!/usr/bin/env python3
"""What the caches of whole graphs do from one process to the next, and with a store that is damaged, full or newer:
never another result, and nothing that was reported as saved is lost.

  graph_cache.py PARTITA [LIBRARY]      exit 0 if so, 1 if not.  LIBRARY: libpartita.so, if the program's code is there
"""
import json, os, random, resource, signal, sqlite3, subprocess, sys, tempfile

partita, *library = sys.argv[1:]
failures = []

GRAPH = """class G(torch.nn.Module):
    def forward(self, x: "f32[{n}, 8][8, 1]cpu", p_w: "f32[8, 4][4, 1]cpu"):
        a: "f32[{n}, 4][4, 1]cpu" = torch.ops.aten.mm.default(x, p_w)
        b: "f32[{n}, 4][4, 1]cpu" = torch.ops.aten.tanh.default(a)
        c: "f32[][]cpu" = torch.ops.aten.sum.default(b)
        return (c, b)
"""


# In training the statistics of batch norm are saved, which in evaluation are empty: its plan has kernels without text.
EVAL_NORM = """class G(torch.nn.Module):
    def forward(self, x: "f32[2, 3, 4, 4][48, 16, 4, 1]cpu", m: "f32[3][1]cpu", v: "f32[3][1]cpu", p_w: "f32[3][1]cpu", p_b: "f32[3][1]cpu"):
        n: "f32[2, 3, 4, 4][48, 16, 4, 1]cpu" = torch.nn.functional.batch_norm(x, m, v, p_w, p_b, False, 0.1, 1e-05)
        return (torch.nn.functional.relu(n),)
"""


def check(what, true):
    if not true:
        failures.append(what)


class Home:
    """A folder with a store of its own."""

    def __init__(self, work, name):
        self.path = f"{work}/{name}"
        os.makedirs(self.path)
        self.graph, self.out, self.db = f"{work}/g.py", f"{self.path}/out", f"{self.path}/store.sqlite"

    def run(self, *words, graph=None, limit=None):
        """The events of the caches, the results, and other lines of stderr."""
        def bounded():
            if limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        done = subprocess.run([partita, "run", graph or self.graph, "--random-weights", "1", "--backend", "cpu",
                               "--cache", "-o", self.out, *words], preexec_fn=bounded, capture_output=True, text=True,
                              env={**os.environ, "PARTITA_STORE": self.db, "XDG_CONFIG_HOME": f"{self.path}/config"})
        lines = done.stderr.splitlines()
        events = [line.split(":")[0] for line in lines if line.split("_cache ")[0] in ("autograd", "fxgraph")]
        others = [line for line in lines if line.split("_cache ")[0] not in ("autograd", "fxgraph")]
        return events, open(self.out, "rb").read() if done.returncode == 0 else None, others

    def rows(self):
        with sqlite3.connect(self.db) as db:
            return db.execute("SELECT id, kind FROM compiled").fetchall()

    def store(self, *words):
        return subprocess.run([partita, "store", *words], capture_output=True, text=True,
                              env={**os.environ, "PARTITA_STORE": self.db, "XDG_CONFIG_HOME": f"{self.path}/config"})


MISSED = ["fxgraph_cache miss", "fxgraph_cache saved"]
MISSED_ALL = {False: sorted([*MISSED, "autograd_cache miss", "autograd_cache saved"]),
              True: sorted([*MISSED, *MISSED, "autograd_cache miss", "autograd_cache saved"])}
HIT_ALL = {False: ["autograd_cache hit", "fxgraph_cache hit"],
           True: ["autograd_cache hit", "fxgraph_cache hit", "fxgraph_cache hit"]}


def found_again(home):
    for train in (False, True):
        words = ["--train"] if train else []
        events, first, others = home.run(*words)
        check(f"train {train}: first {events} {others}", sorted(events) == MISSED_ALL[train] and not others)
        events, second, others = home.run(*words)
        check(f"train {train}: again {events} {others}", sorted(events) == HIT_ALL[train] and not others)
        check(f"train {train}: other results", first == second and first)
    for config, expected in (("force_disable_caches", []), ("fresh_cache", MISSED_ALL[False])):
        events, _, _ = home.run("--config", f"{config}=true")
        check(f"{config}: {events}", sorted(events) == expected)
    events, _, _ = home.run("--config", "fuse=false")
    check(f"another configuration: {events}", sorted(events) == MISSED_ALL[False])


def explained(home):
    rows = [f"compiled/{number}" for number, kind in home.rows() if kind == "autograd_cache"]
    done = home.store("explain", rows[0], rows[-1], "--json")
    parts = {d["part"]: d["lines"] for d in json.loads(done.stdout or "{}").get("differs", [])}
    check(f"explain: {done.stdout} {done.stderr}", parts == {"configuration": ["- fuse=true", "+ fuse=false"]})
    done = home.store("explain", rows[0], rows[0])
    check(f"explain of one: {done.stdout}", done.returncode == 0 and "equal" in done.stdout)
    done = home.store("explain", rows[-1], "--json")  # the nearest before it
    nearest = json.loads(done.stdout or "{}")
    check(f"explain of one alone: {done.stdout} {done.stderr}",
          nearest.get("b") == rows[-1] and nearest.get("a") == rows[0] and
          nearest["differs"] == [{"part": "configuration", "lines": ["- fuse=true", "+ fuse=false"]}])
    done = home.store("explain", rows[0])
    check(f"explain of the first: {done.stderr}", done.returncode == 2 and "no entry" in done.stderr)
    elf = next(f"compiled/{number}" for number, kind in home.rows() if kind == "elf")
    done = home.store("explain", rows[0], elf)
    check(f"explain of machine code: {done.stderr}", done.returncode == 2)


def recompiled(home):
    done = home.store("verify", "--recompile", "9")
    check(f"verify --recompile: {done.stdout} {done.stderr}",
          done.returncode == 0 and "0 graphs" not in done.stdout and "0 problems" in done.stdout)


def of_another_build(home):
    """A copy of the program with another build ID finds no entries of this one, and does not call them damaged."""
    global partita
    this, (code,) = partita, library or [partita]  # the file whose build ID counts
    other = f"{home.path}/{os.path.basename(code)}"
    program = open(code, "rb").read()
    at = program.index(b"\3\0\0\0GNU\0") + 8  # the note of the build ID
    with open(other, "wb") as out:
        out.write(program[:at] + bytes([program[at] ^ 1]) + program[at + 1:])
    os.chmod(other, 0o755)

    def use(is_other):
        global partita
        if not library:
            partita = other if is_other else this
        elif is_other:
            os.environ["LD_LIBRARY_PATH"] = home.path
        else:
            del os.environ["LD_LIBRARY_PATH"]

    use(True)
    events, _, others = home.run()
    check(f"another build: {events} {others}", sorted(events) == MISSED_ALL[False] and not others)
    home.store("clear")
    use(False)
    home.run()
    use(True)
    done = home.store("verify", "--recompile", "9")
    check(f"verify of another build: {done.stdout} {done.stderr}",
          done.returncode == 0 and "0 graphs compiled again" in done.stdout and "1 graph(s) left out" in done.stdout)
    use(False)


def random_bytes(home):
    """Every kind of entry, at random places."""
    random.seed(1)
    _, expected, _ = home.run("--train")
    for round in range(24):
        with sqlite3.connect(home.db) as db:
            number, kind, code = random.choice(db.execute("SELECT id, kind, object FROM compiled").fetchall())
            code = bytearray(code)
            for _ in range(random.choice([1, 1, 16])):
                code[random.randrange(len(code))] = random.randrange(256)
            if random.random() < 0.2:
                code = code[:random.randrange(len(code))]
            db.execute("UPDATE compiled SET object = ? WHERE id = ?", (bytes(code), number))
        db.close()
        events, found, others = home.run("--train")
        check(f"round {round}, {kind}: other results", found == expected)
        check(f"round {round}, {kind}: {others}", all("warning" in line for line in others))
    check(f"verify: {home.store('verify').stdout}", home.store("verify").returncode == 0)


def full_disk(home):
    """No write goes beyond a size of the file; what is reported as saved is found without that limit."""
    home.run(graph=home.graph)
    size = os.path.getsize(home.db)
    for extra in (0, 1 << 15, 1 << 16, 1 << 17, 1 << 20):
        graph = f"{home.path}/{extra}.py"
        open(graph, "w").write(GRAPH.format(n=64 + extra // (1 << 15)))
        events, found, others = home.run(graph=graph, limit=size + extra)
        check(f"full disk, {extra}: {others}", found and all("warning" in line for line in others))
        again, second, _ = home.run(graph=graph)
        check(f"full disk, {extra}: other results", found == second)
        for event in {e for e in events if e.endswith("saved")}:
            check(f"full disk, {extra}: {events}, then {again}", event.replace("saved", "hit") in again)
        # Room for SQLite's index of the log, and for no page of it.
        again, second, _ = home.run(graph=graph, limit=1 << 15)
        check(f"full disk, found {extra}: {again}", found == second and sorted(again) == HIT_ALL[False])


def two_ways(home):
    """What is compiled for one way of running is not taken for another."""
    graph = f"{home.path}/norm.py"
    open(graph, "w").write(EVAL_NORM)
    results = {}
    for order in (([], ["--train"]), (["--train"], [])):
        for words in (*order, *order):
            events, found, others = home.run(*words, graph=graph)
            check(f"two ways, {order}: {others}", found and not others)
            check(f"two ways, {order}: other results", results.setdefault(str(words), found) == found)
        home.store("clear")


def newer(home):
    _, expected, _ = home.run()
    with sqlite3.connect(home.db) as db:
        db.execute("PRAGMA user_version=1000")
    before = home.rows()
    events, found, others = home.run()
    check(f"newer: {others}", found == expected and len(others) == 1 and "version" in others[0])
    check(f"newer: {events}", "autograd_cache hit" not in events and not any(e.endswith("saved") for e in events))
    check("newer: the store was changed", home.rows() == before)


with tempfile.TemporaryDirectory() as work:
    open(f"{work}/g.py", "w").write(GRAPH.format(n=16))
    for test in (found_again, two_ways, random_bytes, full_disk, newer):
        home = Home(work, test.__name__)
        test(home)
        if test is found_again:
            explained(home)
            recompiled(home)
            of_another_build(home)

print("\n".join(f"FAIL: {f}" for f in failures) or "ok")
sys.exit(bool(failures))

#!/usr/bin/env python3
"""Compiled code that crashes or hangs is a row of a comparison and one line of a run; nothing it started is left.

  deaths.py PARTITA SOURCE_DIR"""
import json, os, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from processes import alive, children_of

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 8][8, 1]cpu", w: "f32[8, 8][8, 1]cpu"):
        mm: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(x, w);  x = w = None
        gelu: "f32[8, 8][8, 1]cpu" = torch.ops.aten.gelu.default(mm);  mm = None
        tanh: "f32[8, 8][8, 1]cpu" = torch.ops.aten.tanh.default(gelu);  gelu = None
        return (tanh,)
"""
IN_PLACE = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu"):
        exp: "f32[4][1]cpu" = torch.ops.aten.exp.default(x)
        add_: "f32[4][1]cpu" = torch.ops.aten.add_.Tensor(x, exp);  exp = None
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(add_, 2);  add_ = None
        return (mul, x)
"""
BRANCH = """
    class {name}(torch.nn.Module):
        def forward(self, x: "f32[4, 4][4, 1]cpu"):
            gelu: "f32[4, 4][4, 1]cpu" = torch.ops.aten.gelu.default(x)
            return (gelu,)
"""
REGION = """class GraphModule(torch.nn.Module):
    def forward(self, p: "b8[][]cpu", x: "f32[4, 4][4, 1]cpu"):
        yes = self.yes
        no = self.no
        cond = torch.ops.higher_order.cond(p, yes, no, (x,))
        getitem: "f32[4, 4][4, 1]cpu" = cond[0]
        return (getitem,)
""" + BRANCH.format(name="yes") + BRANCH.format(name="no")
CRASH, HANG = "aten.gelu.default:crash", "aten.gelu.default:hang"


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def main():
    partita = sys.argv[1]
    failures = []

    def check(ok, what):
        if not ok:
            failures.append(what)

    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "TMPDIR": work}
        for name, text in ("g", GRAPH), ("in_place", IN_PLACE), ("region", REGION):
            open(f"{work}/{name}.py", "w").write(text)

        def run(verb, *words, graph="g"):
            begun = time.monotonic()
            words = [partita, verb, f"{work}/{graph}.py", *words]
            done = subprocess.run(words, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            done.seconds = time.monotonic() - begun
            return done

        def rows(done):
            return [row for report in json.loads(done.stdout)["reports"] for row in report["rows"]]

        random = ("--random-weights", "0")
        for per_node in (), ("--per-node",):
            good = run("compare", *random, *per_node)
            check(good.returncode == 0, f"compare {per_node} without a plant: {good.stdout}{good.stderr}")
            died = run("compare", *random, *per_node, "--plant", CRASH, "--json")
            check(died.returncode == 1, f"compare {per_node} of a crash: exit code {died.returncode}: {died.stderr}")
            last = rows(died)[-1]
            check(last["name"] == "gelu" and "signal 11" in last["died"] and
                  "compiling aten.gelu.default (gelu)" in last["died"], f"compare {per_node} of a crash: {last}")
            hung = run("compare", *random, *per_node, "--plant", HANG, "--timeout", "2")
            check(hung.returncode == 1 and "still running after 2 s" in hung.stdout, f"hang: {hung.stdout}{hung.stderr}")
            check(hung.seconds < 2 * 2 + 10 and "gelu" in hung.stdout, f"a hang took {hung.seconds} s: {hung.stdout}")
        check([r["name"] for r in rows(died)] == ["mm", "gelu"], "the nodes before a crash are compared")
        wrong = run("compare", *random, "--plant", "aten.gelu.default:wrong")
        check(wrong.returncode == 1 and "signal" not in wrong.stdout, f"wrong: {wrong.stdout}")
        for per_node in (), ("--per-node",):
            done = run("compare", *random, *per_node, graph="in_place")
            check(done.returncode == 0, f"compare {per_node} of a graph that writes: {done.stdout}{done.stderr}")

        done = run("compare", *random, graph="region")
        check(done.returncode == 0, f"compare of a region: {done.stdout}{done.stderr}")
        done = run("compare", *random, "--plant", "aten.gelu.default:wrong", graph="region")
        check(done.returncode == 1 and "signal" not in done.stdout, f"wrong in a sub graph: {done.stdout}")
        done = run("compare", *random, "--plant", CRASH, "--json", graph="region")
        check(done.returncode == 1 and "gelu" in rows(done)[-1]["died"], f"crash in a sub graph: {done.stdout}")

        for compiler in "partita", "ts_compile", "debug_compile":
            there = ("--compiler", compiler, "--compiler-folder", work, *random)
            done = run("run", *there, "--plant", CRASH)
            lines = done.stderr.splitlines()
            check(done.returncode == 4 and len(lines) == 1 and "signal 11" in lines[0] and "gelu" in lines[0],
                  f"run --compiler {compiler} of a crash: {done.returncode} {done.stderr}")
            fine = run("run", *there)
            check(fine.returncode == 0, f"run --compiler {compiler}: {fine.stderr}")
        hung = run("run", "--compiler", "partita", *random, "--plant", HANG, "--timeout", "1")
        check(hung.returncode == 4 and "still running after 1 s" in hung.stderr, f"run of a hang: {hung.stderr}")
        done = run("run", "--compiler", "nop", *random, "--plant", CRASH)
        check(done.returncode == 2 and "nothing was planted" in done.stderr,
              f"nop compiles nothing, so nothing crashes, which is told: {done.stderr}")

        for kind in "accuracy", "crash":
            done = run("minify", "--check", f"{kind}:cpu", "--plant", CRASH, "-o", f"{work}/{kind}")
            check(done.returncode == 0 and "1 of 3 calls: signal 11" in done.stdout,
                  f"minify --check {kind} of a crash: {done.returncode} {done.stdout}{done.stderr}")
        done = run("minify", "--check", "accuracy:cpu", "--plant", HANG, "--timeout", "2", "-o", f"{work}/hang")
        check(done.returncode == 0 and "1 of 3 calls: timeout" in done.stdout,
              f"minify of a hang: {done.returncode} {done.stdout}{done.stderr}")

        # Whatever ends the program ends the process of the compiled code.
        for how in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
            words = [partita, "compare", f"{work}/g.py", *random, "--plant", HANG, "--timeout", "600"]
            program = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            check(wait_for(lambda: children_of(program.pid)), "a comparison starts another process")
            time.sleep(0.3)
            started = children_of(program.pid)
            begun = time.monotonic()
            program.send_signal(how)
            program.wait()
            check(wait_for(lambda: not any(map(alive, started)), 2), f"{how.name} leaves {started}")
            print(f"{how.name}: all gone after {1000 * (time.monotonic() - begun):.0f} ms")
        alone = subprocess.run([partita, "worker"], env=env, text=True, stderr=subprocess.PIPE)
        check(alone.returncode == 2 and "only partita itself" in alone.stderr, f"worker by hand: {alone.stderr}")
        for words in ["--help"], ["completion", "bash"]:
            shown = subprocess.run([partita, *words], text=True, stdout=subprocess.PIPE).stdout
            check("compare" in shown and "worker" not in shown.split(), f"the verb worker is in {words}")
    print("\n".join(failures) or "as it should")
    return 1 if failures else 0


sys.exit(main())

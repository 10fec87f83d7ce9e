#!/usr/bin/env python3
"""Minifications whose Python is killed 200 times at random moments: no answer is lost, none is wrong. A Python file
stands for PyTorch, so this needs none.

  minify_kills.py PARTITA SOURCE_DIR
"""
import json, os, random, signal, subprocess, sys, tempfile, threading, time

KILLS = 200
OPS = ["sin", "cos", "neg", "abs", "sigmoid", "relu"]


def graph():
    calls = [OPS[i % len(OPS)] for i in range(60)]
    calls[25], calls[40] = "tanh", "exp"
    lines = [f"        n{i} = torch.ops.aten.{op}.default({f'n{i - 1}' if i else 'x'})" for i, op in enumerate(calls)]
    return ('class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[4, 6][6, 1]cpu"):\n'
            + "\n".join(lines) + f"\n        return (n{len(calls) - 1},)\n")  # fmt: skip


class Killer(threading.Thread):
    """Kills the process that was started last, again and again."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.pids, self.kills, self.on = pids, 0, True

    def run(self):
        killed = None
        while self.on and self.kills < KILLS:
            time.sleep(random.uniform(0, 0.15))
            pid = open(self.pids).read().split()[-1:]
            if pid == killed or not pid:
                continue
            killed = pid
            try:
                os.kill(int(pid[0]), signal.SIGKILL)
                self.kills += 1
            except ProcessLookupError:
                pass


def main():
    partita, source = sys.argv[1:3]
    fake = f"{source}/tests/codegen/python/fake_python.py"
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/graph.py", "w") as file:
            file.write(graph())
        open(f"{work}/pids", "w").close()

        def minify(name, *more):
            args = [partita, "--python", fake, "--python-import", "tanh and exp fail", "minify", f"{work}/graph.py", "--check",
                    "crash:torch:eager", "--json", "-o", f"{work}/{name}", *more]  # fmt: skip
            env = {**os.environ, "PARTITA_STORE": f"{work}/{name}.sqlite", "PARTITA_TEST_PIDS": f"{work}/pids"}
            return subprocess.run(args, env=env, capture_output=True, text=True)

        def answer(done):
            assert done.returncode == 0, f"{done.returncode} {done.stderr}"
            return json.loads(done.stdout)

        whole = answer(minify("whole"))
        assert whole["calls"]["after"] == 2, whole["graph"]
        runs = stopped = kills = 0
        while kills < KILLS:
            killer = Killer(f"{work}/pids")
            killer.start()
            runs += 1
            done = minify(f"killed{runs}")
            while done.returncode != 0:  # it was killed too often: what was answered is kept
                stopped += 1
                assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
                assert "PyTorch" in done.stderr, done.stderr
                done = minify(f"killed{runs}", "--resume")
            killer.on = False
            killer.join()
            kills += killer.kills
            found = answer(done)
            assert found["graph"] == whole["graph"], found["graph"]
            assert found["failure"] == whole["failure"], found["failure"]
            assert found["tries"] + found["recalled"] == whole["tries"], (found, whole)
        left = [pid for pid in open(f"{work}/pids").read().split() if os.path.exists(f"/proc/{pid}")]
        assert not left, left
        print(f"{kills} kills in {runs} minifications of {whole['tries']} tries, {stopped} of which had to go on")


main()

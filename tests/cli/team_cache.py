#!/usr/bin/env python3
"""Machines that share a Redis server compile once: the second one's traces have cache hits only. When the server dies
in the middle, or hangs, all results stay right.

  team_cache.py PARTITA SOURCE_DIR
exit 0 if so, 1 if not, 77 where there is no redis-server (Debian: redis-tools)"""
import glob, json, os, re, shutil, signal, subprocess, sys, tempfile, time

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL, IO = f"{SOURCE}/resources/samples/mlp/program.pt2", f"{SOURCE}/resources/samples/mlp/io.safetensors"
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def start_server(work):
    program = shutil.which("redis-server")
    if not program and shutil.which("redis-check-rdb"):  # the same program, which goes by the name it is called by
        program = f"{work}/redis-server"
        if not os.path.exists(program):
            os.symlink(shutil.which("redis-check-rdb"), program)
    if not program:
        print("no redis-server")
        sys.exit(77)
    server = subprocess.Popen([program, "--port", "0", "--unixsocket", f"{work}/socket", "--save", "", "--appendonly",
                               "no"], stdout=subprocess.DEVNULL)
    for _ in range(1000):
        if os.path.exists(f"{work}/socket"):
            return server
        time.sleep(0.01)
    sys.exit("FAIL: redis-server does not start")


class Machine:
    def __init__(self, work, name):
        self.work, self.name = work, name
        os.makedirs(f"{work}/{name}")
        self.config = ["--config", f"team_cache={work}/socket", "--config", f"team_key={work}/key"]

    def start(self, out, *words):
        env = {**os.environ, "PARTITA_STORE": f"{self.work}/{self.name}/store.sqlite",
               "XDG_CONFIG_HOME": f"{self.work}/{self.name}"}
        self.trace = f"{self.work}/{self.name}/{out}.trace"
        return subprocess.Popen([PARTITA, "run", MODEL, "--inputs", IO, "--backend", "cpu", "--train", "-o",
                                 f"{self.work}/{self.name}/{out}", "--trace", self.trace, *self.config, *words],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)

    def run(self, out, *words):
        """What it said, its results, and what its cache did."""
        child = self.start(out, *words)
        said = child.communicate()[1]
        check(child.returncode == 0, f"{self.name}: exit {child.returncode}, {said}")
        log = "".join(open(f).read() for f in glob.glob(f"{self.trace}/*"))
        return said, open(f"{self.work}/{self.name}/{out}", "rb").read(), re.findall(r'"(?:fx_graph|aotautograd)_cache_(\w+)"', log)


with tempfile.TemporaryDirectory() as work:
    open(f"{work}/key", "w").write("0123456789abcdef" * 4)
    os.chmod(f"{work}/key", 0o600)
    server = start_server(work)
    said, expected, did = Machine(work, "first").run("out")
    check(said == "" and "miss" in did and "hit" not in did, f"first: {said} {did}")
    said, results, did = Machine(work, "second").run("out")
    check(said == "" and results == expected, f"second: {said}")
    check("hit" in did and "miss" not in did, f"second: it compiled: {did}")

    # With other options there is other code.
    said, results, did = Machine(work, "third").run("out", "--config", "fuse=false")
    check("miss" in did and "hit" not in did, f"third: {did}")

    # A stranger's key: told, compiled here.
    open(f"{work}/key", "w").write("fedcba9876543210" * 4)
    said, results, did = Machine(work, "stranger").run("out")
    check(results == expected and "hit" not in did and said.count("is not signed with the team's key") == 1 and said.count("\n") == 1,
          f"stranger: {said} {did}")

    # The server dies or hangs while machines use it.
    for number, how in enumerate([signal.SIGKILL, signal.SIGSTOP]):
        machines = [Machine(work, f"late{number}{i}") for i in range(4)]
        children = [m.start("out", "--config", f"fold_limit={1000 + number}") for m in machines]
        time.sleep(0.1)
        server.send_signal(how)
        for m, child in zip(machines, children):
            said = child.communicate()[1]
            check(child.returncode == 0 and said.count("\n") <= 1, f"{m.name}: exit {child.returncode}, {said}")
            check(open(f"{work}/{m.name}/out", "rb").read() == expected, f"{m.name}: other results")
        said, results, did = Machine(work, f"after{number}").run("out", "--config", f"fold_limit={2000 + number}")
        check(results == expected and said.count("the team's server fails") == 1 and said.count("\n") == 1, f"after: {said}")
        server.kill()
        server.wait()
        if number == 0:
            if os.path.exists(f"{work}/socket"):
                os.remove(f"{work}/socket")
            server = start_server(work)

for line in wrong:
    print(line)
sys.exit(bool(wrong))

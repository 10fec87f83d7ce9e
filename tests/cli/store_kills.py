#!/usr/bin/env python3
"""Processes that share one store are killed at random moments, and at the system calls by which they read and write it.
Afterwards nothing in it is damaged, and all runs give the same results as with a store that nobody disturbed.

  store_kills.py PARTITA SOURCE_DIR              some seconds
  store_kills.py PARTITA SOURCE_DIR --long       8 processes, 200 random kills, 100 at system calls
exit 0 if so, 1 if not. Where strace is missing, only random moments are tried.
"""
import os, random, re, shutil, signal, subprocess, sys, tempfile, time

PROCESSES = 8
GRAPHS = 12
CALLS = "openat,pwrite64,write,pread64,fdatasync,fsync,ftruncate,unlink,link,rename,mkdir,chmod,fchmod,mmap,fcntl,close"

GRAPH = """class G(torch.nn.Module):
    def forward(self, x: "f32[{n}, 8][8, 1]cpu"):
        a: "f32[{n}, 8][8, 1]cpu" = torch.ops.aten.sin.default(x);  x = None
        b: "f32[{n}][1]cpu" = torch.ops.aten.sum.dim_IntList(a, [1]);  a = None
        return (b,)
"""


class Trial:
    def __init__(self, partita, work):
        self.partita, self.work, self.failures, self.finished, self.number = partita, work, [], 0, 0
        self.expected = []
        for i in range(GRAPHS):
            open(f"{work}/{i}.py", "w").write(GRAPH.format(n=i + 3))
            done = subprocess.run(self.command(i, f"{work}/expected{i}"), env=self.env("calm"), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
            if done.returncode != 0 or done.stderr:
                sys.exit(f"FAIL: exit {done.returncode}: {done.stderr.decode()}")
            self.expected.append(open(f"{work}/expected{i}", "rb").read())

    def env(self, name):
        # LeakSanitizer does not work under strace.
        return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "PARTITA_STORE": f"{self.work}/{name}/store.sqlite",
                "XDG_CONFIG_HOME": f"{self.work}/{name}/config"}

    def command(self, i, out):
        return [self.partita, "run", f"{self.work}/{i}.py", "--random-weights", "1", "--backend", "cpu", "-o", out]

    def start(self, before=()):
        """Starts a process that uses the store; before: a program that runs it."""
        i, self.number = random.randrange(GRAPHS), self.number + 1
        out = f"{self.work}/out{self.number}"
        args = [self.partita, "store", random.choice(["clear", "list", "verify"])] if random.random() < 0.1 else \
            self.command(i, out)
        child = subprocess.Popen([*before, *args], env=self.env("shared"), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, start_new_session=True)
        child.graph, child.out, child.args_ = i, out, args
        return child

    def finish(self, child):
        """Whether it was killed. A process that ends by itself must have worked as if it were alone."""
        said = child.communicate()[1].decode().strip()
        killed = child.returncode == -signal.SIGKILL
        if not killed:
            self.finished += 1
            words = " ".join(child.args_[1:3])
            if child.returncode != 0 or said:
                self.failures.append(f"{words}: exit {child.returncode}: {said}")
            elif child.args_[1] == "run" and open(child.out, "rb").read() != self.expected[child.graph]:
                self.failures.append(f"{words}: other results")
        if os.path.exists(child.out):
            os.remove(child.out)
        return killed

    def random_kills(self, wanted):
        kills, children = 0, []
        while kills < wanted:
            while len(children) < PROCESSES:
                children.append(self.start())
            time.sleep(random.uniform(0, 0.1))
            victim = children.pop(random.randrange(len(children)))
            if victim.poll() is None:
                os.killpg(victim.pid, signal.SIGKILL)
            kills += self.finish(victim)
        for child in children:
            self.finish(child)
        return kills

    def system_calls(self):
        """What a run asks the system for of the store and its key, when there is none and when there is: names in order."""
        calls = []
        for _ in range(2):
            log = f"{self.work}/calls"
            subprocess.run(["strace", "-f", "-qq", "-e", f"trace={CALLS}", *self.paths("counted"), "-o", log,
                            *self.command(len(calls), f"{self.work}/out")], env=self.env("counted"), check=True,
                           stdout=subprocess.DEVNULL)
            calls.append(re.findall(r"^\d+ +(\w+)\(", open(log, errors="replace").read(), re.M))
        return calls

    def paths(self, name):
        for file in (f"{name}/store.sqlite", f"{name}/store.sqlite-wal", f"{name}/store.sqlite-shm", f"{name}",
                     f"{name}/config/partita/store.key", f"{name}/config/partita"):
            yield from ("-P", f"{self.work}/{file}")

    def kills_at_calls(self, wanted):
        calls = self.system_calls()
        kills = 0
        while kills < wanted:
            fresh = kills % 4 == 0
            if fresh:
                self.verify()
                shutil.rmtree(f"{self.work}/shared")
            names = calls[not fresh]
            at = random.randrange(len(names))
            inject = f"inject={names[at]}:signal=SIGKILL:when={names[:at + 1].count(names[at])}"
            victim = self.start(["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-e", inject, *self.paths("shared"), "-o",
                                 "/dev/null"])
            others = [self.start() for _ in range(PROCESSES - 1 if kills % 10 == 0 else 1)]
            kills += self.finish(victim)  # strace ends by the signal that ended its child
            for child in others:
                self.finish(child)
        return kills, [len(names) for names in calls]

    def verify(self):
        done = subprocess.run([self.partita, "store", "verify"], env=self.env("shared"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.stdout != "0 problems\n":
            self.failures.append(f"store verify: {done.stdout}")


def main():
    long = "--long" in sys.argv
    with tempfile.TemporaryDirectory() as work:
        trial = Trial(sys.argv[1], work)
        kills = trial.random_kills(200 if long else 15)
        trial.verify()
        print(f"{kills} kills at random moments")
        if shutil.which("strace"):
            kills, counts = trial.kills_at_calls(100 if long else 8)
            print(f"{kills} kills at system calls; a run makes {counts[0]} of them for a new store, {counts[1]} for an old")
        else:
            print("no strace: system calls are left out")
        for i in range(GRAPHS):
            child = trial.start()
            trial.finish(child)
        trial.verify()
        print(f"{trial.finished} of {trial.number} processes ended by themselves; {len(trial.failures)} failures")
        for failure in trial.failures[:20]:
            print("FAIL", failure)
        return 1 if trial.failures else 0


sys.exit(main())

#!/usr/bin/env python3
"""A minification that is killed at random moments can go on: same graph, hardly a try repeated.

  minify_resumes.py PARTITA SOURCE_DIR      exit 0 if so, 1 if not, 77 no corpus beside the checkout
"""
import json, os, random, signal, subprocess, sys, tempfile, time

KILLS, REPEATED = 10, 0.05


def main():
    partita, source = sys.argv[1:3]
    corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
    graph = f"{corpus}/models/gpt2/graphs/joint.py"
    if not os.path.exists(graph):
        print("skipped: no corpus")
        return 77
    with tempfile.TemporaryDirectory() as work:
        def command(name):
            # The oracle is a command that takes long enough to be killed, and writes a line when it finishes. A kill
            # between its end and the store would be bad luck for the test, not a fault of the program.
            judge = f"sleep 0.25; grep -q aten.tanh.default {{}}; code=$?; echo done >>{work}/{name}.log; exit $code"
            args = [partita, "minify", graph, "--command", judge, "--json", "-o", f"{work}/{name}"]
            return args, {**os.environ, "PARTITA_STORE": f"{work}/{name}.sqlite"}

        def answered(name):
            return sum(1 for _ in open(f"{work}/{name}.log"))

        def run(args, env):
            return json.loads(subprocess.run(args, env=env, check=True, stdout=subprocess.PIPE).stdout)

        args, env = command("whole")
        begun = time.time()
        whole = run(args, env)
        seconds = time.time() - begun
        args, env = command("killed")
        kills = 0
        while kills < KILLS:
            child = subprocess.Popen(args + ["--resume"], env=env, stdout=subprocess.DEVNULL)
            try:
                child.wait(random.uniform(0.02, 0.3) * seconds)
                subprocess.run([partita, "store", "clear"], env=env, check=True)  # it finished: start again
                os.remove(f"{work}/killed.log")
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                kills += 1
        done = run(args + ["--resume"], env)
        twice = answered("killed") - answered("whole")
        print(f"{kills} kills; {whole['tries']} tries; at last {done['recalled']} recalled, {done['tries']} asked; {twice} twice")
        if done["graph"] != whole["graph"]:
            print("FAIL: another graph")
            return 1
        if done["recalled"] + done["tries"] != whole["tries"]:
            print("FAIL: other tries")
            return 1
        if twice > REPEATED * whole["tries"]:
            print("FAIL: too many tries twice")
            return 1
    return 0


sys.exit(main())

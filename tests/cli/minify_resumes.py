#!/usr/bin/env python3
"""A minification that is killed at random moments can go on: same graph, no answer that was kept asked again.

  minify_resumes.py PARTITA SOURCE_DIR      exit 0 if so, 1 if not, 77 no corpus beside the checkout
"""
import json, os, random, signal, subprocess, sys, tempfile, time

KILLS = 10


def main():
    partita, source = sys.argv[1:3]
    corpus = os.environ.get("PARTITA_CORPUS", f"{source}/../shared/corpus")
    graph = f"{corpus}/models/gpt2/graphs/joint.py"
    if not os.path.exists(graph):
        print("skipped: no corpus")
        return 77
    with tempfile.TemporaryDirectory() as work:
        def command(name):
            # The oracle writes a line when it begins and when it ends, and takes long enough to be killed in between.
            log = f"{work}/{name}.log"
            judge = f"echo begin >>{log}; sleep 0.2; grep -q aten.tanh.default {{}}; code=$?; echo end >>{log}; exit $code"
            args = [partita, "minify", graph, "--command", judge, "--json", "-o", f"{work}/{name}"]
            return args, {**os.environ, "PARTITA_STORE": f"{work}/{name}.sqlite"}

        def lines(name, word):
            return open(f"{work}/{name}.log").read().split().count(word)

        def run(args, env):
            return json.loads(subprocess.run(args, env=env, check=True, stdout=subprocess.PIPE).stdout)

        whole = run(*command("whole"))
        args, env = command("killed")
        open(f"{work}/killed.log", "w").close()
        kills = 0
        while kills < KILLS:
            begun = lines("killed", "begin")
            child = subprocess.Popen(args + ["--resume"], env=env, stdout=subprocess.DEVNULL)
            while child.poll() is None and lines("killed", "begin") < begun + 2:
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.3))
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                child.wait()
                kills += 1
            else:  # it finished: start again
                subprocess.run([partita, "store", "clear"], env=env, check=True)
                open(f"{work}/killed.log", "w").close()
                kills = 0
        done = run(args + ["--resume"], env)
        # A kill between an oracle's end and the store's commit loses that one answer; a kill inside an oracle loses none.
        lost_at_most = kills - (lines("killed", "begin") - lines("killed", "end"))
        twice = lines("killed", "end") - lines("whole", "end")
        print(f"{kills} kills, {lost_at_most} of them between two oracles; {whole['tries']} tries; "
              f"at last {done['recalled']} recalled, {done['tries']} asked; {twice} twice")
        if done["graph"] != whole["graph"]:
            print("FAIL: another graph")
            return 1
        if done["recalled"] + done["tries"] != whole["tries"]:
            print("FAIL: other tries")
            return 1
        if twice > lost_at_most:
            print("FAIL: answers that were kept were asked again")
            return 1
    return 0


sys.exit(main())

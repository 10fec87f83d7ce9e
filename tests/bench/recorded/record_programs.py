"""Records programs: is the result that of the program alone, does the folder open, compare and, with a fault that
inductor has for tests, is the fault located; and the seconds of each.

  record_programs.py PARTITA SOURCE_DIR [PROGRAM...]      by a Python that has PyTorch, transformers and nbclient
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PARTITA, SOURCE, *names = sys.argv[1:]
PARTITA, SOURCE = os.path.abspath(PARTITA), os.path.abspath(SOURCE)
TRAIN = f"{SOURCE}/tests/bench/recorded/train.py"
RELU = "inject_relu_bug_TESTING_ONLY"
LARGE = ["--limit", "16G", "--per-graph", "8G"]
# program, steps, a fault that its graph meets (train.py), options of record
ROWS = {
    "mlp_train": (12, RELU, []), "resnet18_train": (4, RELU, []),
    "gpt2_train": (6, '{"op": "tanh", "kind": "value", "factor": 1.05}', LARGE),
    "llama_train": (6, '{"op": "rsqrt", "kind": "value", "factor": 1.05}', LARGE),
    "small": (60, RELU, []), "dropout": (30, RELU, []), "dynamic": (20, RELU, []), "convolutions": (20, RELU, []),
    "fine_tune": (12, RELU, []), "nan": (50, RELU, ["--until-nan"]), "torchrun": (20, RELU, []), "notebook": (10, RELU, []),
    "killed": (10, RELU, []),
}  # fmt: skip


def program(name, steps, fault, folder):
    if name == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", TRAIN, "small",
                str(steps), fault]  # fmt: skip
    if name == "notebook":
        path = f"{folder}/run.py"
        cell = f"import sys; sys.argv = ['train.py', 'small', '{steps}', '{fault}']; exec(open({TRAIN!r}).read())"
        with open(path, "w") as file:
            file.write("import nbclient, nbformat\n"
                       f"book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell({cell!r})])\n"
                       "nbclient.NotebookClient(book, timeout=600, kernel_name='python3').execute()\n"
                       "print('executed')\n")  # fmt: skip
        return [sys.executable, path]
    return [sys.executable, TRAIN, "small" if name == "killed" else name, str(steps), fault]


def timed(words, env, folder):
    begin = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=folder)
    return done, time.perf_counter() - begin


def steps_of(path):
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return statistics.median([float(s) for s in file.read().split()][1:])


for name in names or ROWS:
    steps, fault, options = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "INDUCTOR"))}
        env |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache", "PARTITA_STORE": f"{folder}/store.sqlite",
                "PARTITA_PYTHON": sys.executable, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
                "PYTHONPATH": f"{SOURCE}/tests/bench/locate",
                "BENCH_MODELS": os.path.abspath(f"{SOURCE}/../shared/bench")}  # fmt: skip
        if name == "killed":
            env["KILL"] = "1"
        plain, plain_seconds = timed(program(name, steps, "", folder), env | {"STEP_TIMES": f"{folder}/plain"}, folder)
        record = [PARTITA, "record", *options, "-o"]
        done, seconds = timed([*record, "right", "--", *program(name, steps, "", folder)],
                              env | {"STEP_TIMES": f"{folder}/recorded"}, folder)  # fmt: skip
        same = (sorted(plain.stdout.split("\n")), plain.returncode) == (sorted(done.stdout.split("\n")), done.returncode)
        times = [steps_of(f"{folder}/{which}") for which in ("plain", "recorded")]
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(f"{folder}/right") for f in files)
        print(f"{name}: exit {done.returncode}, {'the same result' if same else 'ANOTHER RESULT'}, {plain_seconds:.1f} s alone, "
              f"{seconds:.1f} s recorded, {size / 1e6:.0f} MB", end="")  # fmt: skip
        print(f", a step {times[1] / times[0]:.3f} of {times[0] * 1e3:.1f} ms" if None not in times else "", flush=True)
        if not same:
            print(plain.stdout, plain.stderr[-500:], done.stdout, done.stderr[-500:])
        timed([*record, "wrong", "--", *program(name, steps, fault, folder)], env, folder)
        planted = ["--python-import", "plant_by_environment"] if fault.startswith("{") else []
        for verb, what, more in (("list", "right", []), ("compare", "right", []), ("locate", "wrong", planted)):
            done, seconds = timed([PARTITA, verb, what, *more, "--json"], env | {"PARTITA_PLANT": fault if planted else ""}, folder)
            found = ""
            if verb == "locate" and done.stdout:
                answer = json.loads(done.stdout)
                found = "; ".join(f"{g['compilation']} {g['graph']}: {g['verdict']} {(g['node'] or {}).get('op', '')}" for g in answer["graphs"])
            print(f"  {verb} {what}: exit {done.returncode}, {seconds:.1f} s {done.stderr[-300:].strip()} {found}", flush=True)

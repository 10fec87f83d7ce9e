#!/usr/bin/env python3
"""With --trace or TORCH_TRACE the verbs write PyTorch's structured log: `partita list` reads it back, and `show` and
`run` work on what it lists. With tlparse, that program renders it without a complaint.

  trace.py PARTITA SOURCE_DIR [tlparse]
exit 0 if so, 1 if not, 77 when tlparse is asked for and missing (pip install tlparse)"""
import glob, hashlib, json, os, re, shutil, struct, subprocess, sys, tempfile

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TLPARSE = os.environ.get("PARTITA_TLPARSE") or shutil.which("tlparse") if sys.argv[3:] == ["tlparse"] else None
if sys.argv[3:] == ["tlparse"] and not TLPARSE:
    print("no tlparse in PATH; pip install tlparse")
    sys.exit(77)

MLP = f"{SOURCE}/resources/samples/mlp"
SYMBOLIC = """class GraphModule(torch.nn.Module):
    def forward(self, s0: "Sym(s0)", x: "f32[s0, 8][8, 1]cpu"):
        # File: /model.py:7 in forward, code: y = x.sin()
        sin: "f32[s0, 8][8, 1]cpu" = torch.ops.aten.sin.default(x);  x = None
        sum_1: "f32[8][1]cpu" = torch.ops.aten.sum.dim_IntList(sin, [0]);  sin = None
        return (sum_1,)
"""
WRONG = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2][1]cpu", y: "f32[3][1]cpu"):
        add = torch.ops.aten.add.Tensor(x, y)
        return (add,)
"""
PREFIX = re.compile(r"V\d{4} \d\d:\d\d:\d\d\.\d{6} (\d+) ([^: ]+):(\d+)\] (\{.*\})$")
NAME = re.compile(r"dedicated_log_torch_trace_\w+\.log$")
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def write_inputs(path, rows):
    header = json.dumps({"input.0": {"dtype": "F32", "shape": [rows, 8], "data_offsets": [0, rows * 32]}}).encode()
    open(path, "wb").write(struct.pack("<Q", len(header)) + header + struct.pack(f"<{rows * 8}f", *range(rows * 8)))


def records(path):
    """What the log holds, as (process, id, name, metadata, payload); all of it must be well formed."""
    out, lines = [], open(path, encoding="utf-8", newline="\n").read().split("\n")
    check(lines.pop() == "", f"{path}: the last line is not whole")
    while lines:
        line = lines.pop(0)
        parts = PREFIX.match(line)
        if not parts:
            check(False, f"{path}: no record: {line[:200]}")
            continue
        check(os.path.exists(f"{SOURCE}/{parts[2]}"), f"there is no {parts[2]}")
        metadata, payload = json.loads(parts[4]), []
        while lines and lines[0].startswith("\t"):
            payload.append(lines.pop(0)[1:])
        payload = "\n".join(payload)
        if "has_payload" in metadata:
            check(hashlib.md5(payload.encode()).hexdigest() == metadata["has_payload"], f"the sum of {line[:200]}")
        else:
            check(payload == "", f"a payload that is not announced: {line[:200]}")
        where = tuple(metadata.pop(k, None) for k in ("frame_id", "frame_compile_id", "attempt"))
        metadata.pop("has_payload", None)
        name = next(iter(metadata))
        check(len(metadata) == 1 and (name == "str" or None not in where), f"keys of {line[:200]}")
        out.append((parts[1], where[:2], metadata[name]["name"] if name == "artifact" else name, metadata[name], payload))
    return out


class Runs:
    def __init__(self, work):
        self.work, self.count = work, 0
        self.env = {**os.environ, "PARTITA_STORE": f"{work}/store.sqlite", "XDG_CONFIG_HOME": work,
                    "PARTITA_VERIFY": "0"}
        self.env.pop("TORCH_TRACE", None)

    def partita(self, *words, code=0, **env):
        done = subprocess.run([PARTITA, *words], capture_output=True, text=True, env={**self.env, **env})
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        return done

    def traced(self, *words, code=0, by_environment=False, files=1):
        """The records of a verb's log, after the checks that hold for every log."""
        self.count += 1
        folder = f"{self.work}/trace{self.count}/new"
        done = self.partita(*words, code=code, TORCH_TRACE=folder) if by_environment else \
            self.partita(*words, "--trace", folder, code=code, TORCH_TRACE=f"{self.work}/unused")
        logs = sorted(glob.glob(f"{folder}/*"))
        check(len(logs) == (files or max(len(logs), 2)) and all(NAME.search(log) for log in logs), f"{words}: {logs}")
        check(not os.path.exists(f"{self.work}/unused"), "--trace goes before TORCH_TRACE")
        found = []
        for log in logs:
            if TLPARSE:
                self.render(log, words)
            held = records(log)
            starts = [r[1] for r in held if r[2] == "dynamo_start"]
            check(len(starts) == len(set(starts)), f"{words}: compilations with one id: {starts}")
            found += held
        return logs[0], found

    def render(self, log, words):
        out = f"{self.work}/rendered"
        done = subprocess.run([TLPARSE, "--strict", "--strict-compile-id", "--no-browser", "--overwrite", "-o", out, log],
                              capture_output=True, text=True)
        said = done.stdout + done.stderr
        check(done.returncode == 0, f"tlparse on {words}: exit {done.returncode}, {said}")
        check(not re.search("fail|unknown|error|conflict", said, re.I), f"tlparse on {words}: {said}")
        check("[0/0]" in open(f"{out}/index.html").read(), f"tlparse on {words}: no compilation")

    def read_back(self, log, inputs):
        """`list` has no complaint, and `show` and `run` take every graph."""
        listed = json.loads(self.partita("list", log, "--json").stdout)
        check(listed["warnings"] == [], f"{listed['warnings']}")
        for graph in listed["graphs"]:
            self.partita("show", log, "--graph", graph["id"])
            if graph["id"].endswith("dynamo_output_graph") or not inputs:
                self.partita("run", log, "--graph", graph["id"], "--random-weights", "1", *inputs)
        return {graph["id"]: graph["kind"] for graph in listed["graphs"]}


def names(found, where=(0, 0)):
    return [r[2] for r in found if r[1] == where and r[2] not in ("chromium_event", "str")]


def payload(found, name):
    return next((r[4] for r in found if r[2] == name), "")


def check_metrics(found, stages):
    metrics = [r[3] for r in found if r[2] == "compilation_metrics" and r[1] == (0, 0)]
    check(len(metrics) == 1, f"{len(metrics)} compilation_metrics")
    times = metrics[0].get("stage_times_us", {})
    check(set(stages) <= set(times) and metrics[0]["fail_type"] is None, f"not {stages}: {metrics[0]}")
    check(0 < metrics[0]["inductor_compile_time_s"] <= metrics[0]["entire_frame_compile_time_s"], f"{metrics[0]}")
    begun = {}
    for event in [json.loads(r[4]) for r in found if r[2] == "chromium_event"]:
        check(event["ph"] in "BE", f"{event}")
        begun[event["name"]] = begun.get(event["name"], 0) + (1 if event["ph"] == "B" else -1)
    check(begun and not any(begun.values()), f"events that do not end: {begun}")


with tempfile.TemporaryDirectory() as work:
    runs = Runs(work)
    io = ["--inputs", f"{MLP}/io.safetensors"]
    stages = ["pre_grad_passes", "functional", "joint_passes", "partition", "post_grad_passes", "plan", "code_gen",
              "llvm_optimise", "link"]

    # Inference, cold and warm.
    log, found = runs.traced("run", f"{MLP}/program.pt2", *io, "--backend", "cpu")
    expected = ["dynamo_start", "partita.config", "exported_program", "before_pre_grad_graph", "after_pre_grad_graph",
                "before_joint_graph", "after_joint_graph", "aot_forward_graph_fw_metadata", "aot_inference_graph",
                "before_post_grad_graph", "inductor_post_grad_graph", "dynamo_guards", "inductor_output_code",
                "compilation_metrics"]
    check([n for n in names(found) if n in expected] == expected, f"inference: {names(found)}")
    check("fx_graph_cache_miss" in names(found) and "fx_graph_cache_hit" not in names(found), f"cold: {names(found)}")
    check("check_tensor(" in payload(found, "dynamo_guards"), payload(found, "dynamo_guards"))
    check("kernel" in payload(found, "inductor_output_code"), payload(found, "inductor_output_code"))
    check_metrics(found, stages)
    kinds = runs.read_back(log, [])
    check(kinds.get("0_0.aot_inference_graph") == "inference", f"{kinds}")
    check(kinds.get("0_0.exported_program") == "exported", f"{kinds}")
    log, found = runs.traced("run", f"{MLP}/program.pt2", *io, "--backend", "cpu", by_environment=True)
    check("fx_graph_cache_hit" in names(found) and "fx_graph_cache_miss" not in names(found), f"warm: {names(found)}")
    log, found = runs.traced("run", f"{MLP}/program.pt2", *io, "--backend", "cpu", "--config",
                             "force_disable_caches=true")
    check(not any("cache" in n for n in names(found)), f"no caches: {names(found)}")
    log, found = runs.traced("run", f"{MLP}/program.pt2", *io, "--backend", "cpu", "--config", "freezing=true",
                             "--config", "freezing_discard_parameters=true")
    reason = json.loads(payload(found, "aotautograd_cache_bypass") or "{}").get("cache_bypass_reason")
    check(reason == "Skipping graph with frozen constants", f"a bypass: {names(found)}, {reason}")

    # Training, here and in a worker, which writes into the same file.
    for how, processes in ((["--backend", "cpu"], 1), (["--compiler", "partita"], 2)):
        log, found = runs.traced("run", f"{MLP}/program.pt2", *io, *how, "--train", "--config",
                                 "force_disable_caches=true")
        expected = ["exported_program", "aot_joint_graph", "aot_forward_graph", "aot_backward_graph",
                    "inductor_post_grad_graph", "inductor_output_code", "inductor_post_grad_graph",
                    "inductor_output_code", "compilation_metrics"]
        check([n for n in names(found) if n in expected] == expected, f"training {how}: {names(found)}")
        check(len({r[0] for r in found}) == processes, f"training {how}: {len({r[0] for r in found})} processes")
        if processes == 1:
            check_metrics(found, stages + ["joint"])
        kinds = runs.read_back(log, [])
        check(kinds.get("0_0.aot_joint_graph") == "joint" and kinds.get("0_0.aot_backward_graph") == "backward", f"{kinds}")

    # Symbolic sizes.
    open(f"{work}/symbolic.py", "w").write(SYMBOLIC)
    write_inputs(f"{work}/io.safetensors", 5)
    io5 = ["--inputs", f"{work}/io.safetensors"]
    log, found = runs.traced("run", f"{work}/symbolic.py", *io5, "--backend", "cpu")
    start = next(r[3] for r in found if r[2] == "dynamo_start")
    files = dict(reversed(r[3]) for r in found if r[2] == "str")
    check([(files[f["filename"]], f["line"], f["name"]) for f in start["stack"]] == [("/model.py", 7, "forward")],
          f"{start}, {files}")
    graph = next(r for r in found if r[2] == "dynamo_output_graph")
    check(graph[3]["sizes"]["x"] == ["s0", 8], f"{graph[3]}")
    check("code_gen" in payload(found, "stage_times"), f"code made at the first call: {names(found)}")
    check("size=[s0, 8]" in json.loads(payload(found, "dynamo_guards"))[0]["code"], payload(found, "dynamo_guards"))
    runs.read_back(log, io5)

    # Other verbs.
    mlp = [f"{MLP}/program.pt2"]
    for words, entry in ((["compare", *mlp, *io, "--config", "force_disable_caches=true"], "inductor_output_code"),
                         (["aot", *mlp, "-o", f"{work}/aot"], "aot_joint_graph"),
                         (["bench", *mlp, *io, "--seconds", "0"], "inductor_output_code"),
                         (["compile", *mlp, "-o", f"{work}/mlp.so", "--isa", "baseline"], "inductor_output_code"),
                         (["export", *mlp], "exported_program")):
        log, found = runs.traced(*words, files=None if words[0] == "bench" else 1)
        check(entry in [r[2] for r in found], f"{words[0]}: {sorted({r[2] for r in found})}")
        runs.read_back(log, ["--config", "threads=1"])

    # What fails is told, and the log stays whole.
    open(f"{work}/wrong.py", "w").write(WRONG)
    log, found = runs.traced("run", f"{work}/wrong.py", "--random-weights", "1", "--backend", "cpu", code=2)
    metrics = next(r[3] for r in found if r[2] == "compilation_metrics")
    check(metrics["fail_type"] and metrics["fail_reason"], f"{metrics}")

    # A log that cannot be written, or not to its end (a file's size is limited, as a disk is), is told once, also by
    # the exit code, and the run goes on.
    for folder, limit in ((f"{work}/wrong.py/folder", ""), (f"{work}/full", "ulimit -f 8; ")):
        done = subprocess.run(["bash", "-c", limit + 'exec "$@"', "bash", PARTITA, "run", *mlp, *io, "--backend", "cpu",
                               "--train", "--trace", folder], capture_output=True, text=True, env=runs.env)
        check(done.returncode == 2 and done.stderr.count("no trace is written") == 1, f"{done}")
        check("output.0" in done.stdout, f"{done}")
    done = runs.partita("list", *mlp, "--trace", "-", code=2)
    check("standard output is no folder" in done.stderr, done.stderr)

for line in wrong:
    print(line)
sys.exit(bool(wrong))

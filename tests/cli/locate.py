"""What `partita locate` finds in inductor, which has faults of its own for tests: wrong values, code that does not
compile, code that does not run.

  locate.py PARTITA; $PARTITA_TEST_PYTHON names a Python with PyTorch, without which this is skipped."""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

PARTITA = os.path.abspath(sys.argv[1])
PYTHON = os.environ.get("PARTITA_TEST_PYTHON")
if not PYTHON:
    print("$PARTITA_TEST_PYTHON names no Python with PyTorch")
    sys.exit(77)

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[40, 24][24, 1]cpu", w: "f32[24, 24][24, 1]cpu"):
        mm = torch.ops.aten.mm.default(x, w)
        tanh = torch.ops.aten.tanh.default(mm)
        abs_1 = torch.ops.aten.abs.default(tanh)
        {name} = torch.ops.aten.{name}.default(abs_1)
        mm_1 = torch.ops.aten.mm.default({name}, w)
        sin = torch.ops.aten.sin.default(mm_1)
        return (sin,)
"""
GRADIENT = """class GraphModule(torch.nn.Module):
    def forward(self, grad: "f32[4, 3][3, 1]cpu", index: "i64[4][1]cpu"):
        embedding_dense_backward = torch.ops.aten.embedding_dense_backward.default(grad, index, 5, -1, False)
        mul = torch.ops.aten.mul.Tensor(embedding_dense_backward, 2)
        return (mul,)
"""
KNOBS = {"log1p": "cpp.inject_log1p_bug_TESTING_ONLY", "relu": "cpp.inject_relu_bug_TESTING_ONLY"}

with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "XDG_CONFIG_HOME": folder}

    def locate(name, fault, code, *more):
        path = f"{folder}/{name}.py"
        with open(path, "w") as file:
            file.write(GRAPH.format(name=name))
        against = "torch:inductor" + (f"+{KNOBS[name]}={fault}" if fault else "")
        words = [PARTITA, "--python", PYTHON, "locate", path, "--random-weights", "0", "--against", against, *more]
        done = subprocess.run([*words, "--json"], capture_output=True, text=True, env=env, cwd=folder)
        assert done.returncode == code, f"{name} {fault}: {done.returncode} {done.stderr} {done.stdout}"
        answer = json.loads(done.stdout)
        assert answer["found"] == bool(code), answer
        text = subprocess.run(words, capture_output=True, text=True, env=env, cwd=folder)
        assert text.returncode == code and text.stdout.startswith("forward: "), text.stdout + text.stderr
        return answer["graphs"][0], text.stdout

    report, text = locate("log1p", "", 0)
    assert report["verdict"] == "clean" and "nothing is wrong" in text, report
    report, text = locate("log1p", "accuracy", 1, "--switches")
    changed = [row["switch"] for row in report["switches"] if row["changes_verdict"]]
    assert len(report["switches"]) > 5 and changed == ["aten.log1p.default as a fallback"], changed
    assert "switch: no fusion: " in text, text
    assert report["verdict"] == "kernel" and report["sure"], report
    assert "log1p" in report["kernel"]["name"] and report["node"]["given"] == ["log1p"], report
    assert "is wrong; sure" in text and "in the graph: log1p" in text, text
    rows = {row["node"]: row for row in report["buffers"]}
    assert set(rows) == {"mm", "log1p", "mm_1", "sin"} and report["buffers"][0] == rows["log1p"], rows
    assert [name for name, row in rows.items() if row["wrong"]] == ["log1p"], rows
    assert rows["log1p"]["kind"] == "rms" and rows["log1p"]["rms_ratio"] > 100, rows["log1p"]
    assert rows["sin"]["kind"] == "ok" and rows["sin"]["rms_ratio"] < 2 and rows["sin"]["given"] == ["sin"], rows["sin"]
    kernels = {row["key"]: row for row in report["kernels"]}
    assert set(kernels) == {row["kernel"] for row in report["buffers"]}, kernels
    assert set(kernels[rows["log1p"]["kernel"]]["given"]) == {"tanh", "abs_1", "log1p"}, kernels
    assert kernels[rows["mm_1"]["kernel"]]["given"] == ["mm_1"], kernels
    report, text = locate("relu", "compile_error", 1)
    assert report["verdict"] == "exception" and "fails" in text, report

    # A log: dynamo's graph, what AOTAutograd made of it, and a second compilation that has a wrong graph.
    def record(kind, compile_id, text):
        text = text.rstrip()
        entry = {kind: {}, "frame_id": compile_id, "frame_compile_id": 0, "attempt": 0,
                 "has_payload": hashlib.md5(text.encode()).hexdigest()}  # fmt: skip
        lines = "".join(f"\t{line}\n" for line in text.splitlines())
        return f"V1129 09:00:00.000000 1 torch/_dynamo/output_graph.py:1] {json.dumps(entry)}\n{lines}"

    DYNAMO = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[40, 24][24, 1]cpu", L_w_: "f32[24, 24][24, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_
        mm: "f32[40, 24][24, 1]cpu" = l_x_ @ l_w_
        tanh: "f32[40, 24][24, 1]cpu" = torch.tanh(mm)
        abs_1: "f32[40, 24][24, 1]cpu" = tanh.abs()
        last: "f32[40, 24][24, 1]cpu" = torch.log1p(abs_1)
        return (last,)
"""
    ATEN = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[40, 24][24, 1]cpu", arg1_1: "f32[24, 24][24, 1]cpu"):
        mm: "f32[40, 24][24, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1)
        tanh: "f32[40, 24][24, 1]cpu" = torch.ops.aten.{op}.default(mm)
        abs_1: "f32[40, 24][24, 1]cpu" = torch.ops.aten.abs.default(tanh)
        log1p: "f32[40, 24][24, 1]cpu" = torch.ops.aten.log1p.default(abs_1)
        return (log1p,)
"""
    path = f"{folder}/trace.log"

    def search(*records, more=(), as_text=False):
        with open(path, "w") as file:
            file.write("".join(records))
        words = [PARTITA, "--python", PYTHON, "locate", path, "--random-weights", "0", *more]
        words += [] if as_text else ["--json"]
        done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=folder)
        if as_text:
            return done.returncode, done.stdout
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    right, wrong = ATEN.format(op="tanh"), ATEN.format(op="sigmoid")
    unknown = DYNAMO.replace("torch.tanh", "torch.nobody")
    records = (record("dynamo_output_graph", 0, DYNAMO), record("aot_inference_graph", 0, right),
               record("dynamo_output_graph", 1, unknown),
               record("dynamo_output_graph", 2, DYNAMO), record("aot_inference_graph", 2, wrong))  # fmt: skip
    code, answer, _ = search(*records)
    ids = [f"{k}_0.dynamo_output_graph" for k in range(3)]
    found = {(g["compilation"], g["graph"]): g for g in answer["graphs"]}
    assert code == 1 and set(found) == {(ids[k], g) for k in (0, 2) for g in ("stages", "forward")}, (code, answer)
    assert [(one["compilation"], "nobody" in one["reason"]) for one in answer["left_out"]] == [(ids[1], True)], answer
    assert all(found[ids[0], g]["verdict"] == "clean" for g in ("stages", "forward")), found
    assert found[ids[0], "forward"]["artefact"] == "0_0.aot_inference_graph", found
    report = found[ids[2], "stages"]  # PyTorch makes a right graph here: it is told, and not for sure
    assert report["verdict"] == "stage" and not report["sure"] and report["source"] == "2_0.aot_inference_graph", report
    assert [r["verdict"] for r in report["stages"] if r["source"]] == ["wrong"], report["stages"]
    code, text = search(*records, as_text=True)
    assert code == 1 and "the log's graph 2_0.aot_inference_graph (inference graph) is wrong; not sure" in text, text
    assert f"{ids[1]}: left out: " in text, text
    code, answer, _ = search(record("dynamo_output_graph", 0, DYNAMO), record("aot_inference_graph", 0, right),
                             more=("--against", f"torch:inductor+{KNOBS['log1p']}=accuracy"))  # fmt: skip
    report = answer["graphs"][1]
    assert code == 1 and report["verdict"] == "kernel" and report["node"]["given"] == ["log1p"], report
    code, answer, _ = search(record("dynamo_output_graph", 0, DYNAMO),
                             more=("--against", f"torch:inductor+{KNOBS['log1p']}=accuracy"))  # fmt: skip
    report = answer["graphs"][1]
    assert code == 1 and report["artefact"] == "" and report["node"]["given"] == ["last"], report
    code, answer, errors = search(record("dynamo_output_graph", 0, unknown), record("dynamo_output_graph", 1, unknown))
    assert code == 2 and errors.count("\n") == 1 and "nobody" in errors, errors

    # With an index that eager PyTorch does not check, its results are whatever lies beside the tensor: no verdict.
    gradient = f"{folder}/gradient.py"
    with open(gradient, "w") as file:
        file.write(GRADIENT)
    for last, code in ((4, 0), (5, 2)):
        values = struct.pack("<12f", *range(12)) + struct.pack("<4q", 0, 1, 2, last)
        header = json.dumps({"input.0": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]},
                             "input.1": {"dtype": "I64", "shape": [4], "data_offsets": [48, 80]}}).encode()  # fmt: skip
        with open(f"{folder}/io.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + values)
        done = subprocess.run([PARTITA, "--python", PYTHON, "locate", gradient, "--inputs", f"{folder}/io.safetensors"],
                              capture_output=True, text=True, env=env)  # fmt: skip
        said = "an index must lie between 0 and 4, and has 0 to 5" in done.stderr
        assert done.returncode == code and said == (code == 2), (last, done.returncode, done.stdout, done.stderr)

    broken = subprocess.run([PARTITA, "--python", PYTHON, "locate", f"{folder}/log1p.py", "--random-weights", "0",
                             "--against", "torch:eager"], capture_output=True, text=True, env=env)  # fmt: skip
    assert broken.returncode == 2 and broken.stderr.count("\n") == 1, broken.stderr
    for python in ("/nonexistent/python", sys.executable):  # the second has no PyTorch, where it is Debian's
        none = subprocess.run([PARTITA, "--python", python, "locate", f"{folder}/log1p.py", "--random-weights", "0"],
                              capture_output=True, text=True, env=env)  # fmt: skip
        assert none.returncode == 2 or (none.returncode == 0 and python == sys.executable), none.stderr
        assert none.stderr.count("\n") <= 1, none.stderr
print("ok")

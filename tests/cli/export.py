"""export.py PARTITA SOURCE_DIR: `partita export` against what aot_export_module and aot_export_joint_simple did with the
same functions. tests/torch/export_cases.py made the graphs and cases.json: signatures, and the first lines of refusals.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter

PARTITA, SOURCE = sys.argv[1:3]
FOLDER = f"{SOURCE}/tests/cli/export"
# Signatures whose names are not PyTorch's, with the reason. They are compared by the places of inputs and outputs.
OTHER_NAMES = {"exp_dynamic": "PyTorch's tracer counts multiplications of sizes, which it then drops: mul_5"}
# Operators that PyTorch's graph has and ours has not, or the other way round (with a minus).
OTHER_OPERATORS = {
    "exp_loss_second_output": ({"aten.detach.default": 1}, "PyTorch's has one without readers"),
}


def run(words, folder=None):
    done = subprocess.run([PARTITA, *words], capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1, 2, 3), (words, done.returncode, done.stderr)
    return done


def words_of(case, work):
    name = f"{FOLDER}/{case['name']}"
    path = f"{name}.pt2" if os.path.exists(f"{name}.pt2") else f"{name}.py"
    words = [case["words"][0], path, *case["words"][1:]]
    if os.path.exists(f"{name}.safetensors"):
        words += ["--inputs", f"{name}.safetensors"]
    return words + (["-o", work] if words[0] == "aot" else [])


def inputs_and_outputs(code):
    """The names in the signature and in the return of a printed graph."""
    inputs = re.findall(r"(\w+)(?:: \"[^\"]*\")?", re.search(r"def forward\(self, (.*)\)(?: ->.*)?:\n", code)[1])
    return inputs, re.findall(r"[^\s,()\[\]]+", code[code.rindex("return ") + 7:])


def by_place(value, places):
    """A signature in which each name of the graph is replaced by its place."""
    if isinstance(value, dict):
        return {places.get(k, k): by_place(v, places) for k, v in value.items()}
    if isinstance(value, list):
        return [by_place(v, places) for v in value]
    return places.get(value, value)


def places(code):
    inputs, outputs = inputs_and_outputs(code)
    found = {}
    for i, name in enumerate(outputs):
        found.setdefault(name, f"output {i}")
    for i, name in enumerate(inputs):
        found[name] = f"input {i}"
    return found


def operators(code):
    return Counter(re.findall(r"= torch\.ops\.([\w.]+)\(", code))


def check_export(case, made):
    name, expected = case["name"], case["signature"]
    missing = operators(case["code"])
    missing.subtract(operators(made["graph"]))
    missing = {op: n for op, n in missing.items() if n}
    assert missing == OTHER_OPERATORS.get(name, ({}, ""))[0], (name, missing, made["graph"])
    if expected is None:
        assert made["signature"] is None, name
        return
    if expected["backward_signature"] == "None":  # as the corpus has it
        expected["backward_signature"] = None
    given = made["signature"]
    assert by_place(given, places(made["graph"])) == by_place(expected, places(case["code"])), (name, given, expected)
    assert (given == expected) == (name not in OTHER_NAMES), (name, given, expected)


def check(case, work):
    done = run([*words_of(case, work), *(["--json"] if case["words"][0] == "export" else [])])
    if case.get("refused"):
        assert done.returncode in (2, 3), (case["name"], done.stdout)
        assert len(done.stderr.splitlines()) == 1, (case["name"], done.stderr)
        said = re.fullmatch(r"partita: (?:\S+:\d+: )?(?:graph \S+: )?(?:node \S+: )?(.*)\n", done.stderr)[1]
        assert said.startswith(case["refused"]), (case["name"], said, case["refused"])
        return
    assert done.returncode == 0, (case["name"], done.stderr)
    if "code" in case:
        check_export(case, json.loads(done.stdout))


def text_case(signature, *lines):
    return f"class M(torch.nn.Module):\n    def forward(self, {signature}):\n" + "".join(f"        {x}\n" for x in lines)


def check_texts(work):
    """What the corpus does not have."""
    w, x = 'L_self_parameters_w_: "f32[3][1]cpu"', 'x: "f32[3][1]cpu"'
    loss = "l = (x * L_self_parameters_w_).sum()"
    rows = [
        # aot_export_module, in the words of its asserts
        (["--trace-joint"], f"{x}, {w}", [loss, "return (l,)"],
         "If trace_joint=Trueit is required that one of your forward outputs must be a scalar loss."),
        (["--trace-joint", "--loss-index", "2"], f"{x}, {w}", ["return (x, x)"], "tuple index out of range"),
        (["--trace-joint", "--loss-index", "0"], f'{x}, {w}, L_self_parameters_v_: "f32[3][1]cpu"', [loss, "return (l,)"],
         "Found a parameter that did not receive a gradient. It is parameter v"),
        (["--trace-joint", "--loss-index", "0"], f"{x}, {w}", [loss, "return {'loss': l}"],
         "Expected forward output to be either a tensor or a list/tuple of tensors. found <class 'dict'>"),
        (["--trace-joint", "--loss-index", "0"], f"{x}, {w}", [loss, "return (l, [x])"],
         "'list' object has no attribute 'requires_grad'"),
        ([], 'x: "f32[3][1]cpu", L_self_buffers_a_: "f32[3][1]cpu", L_self_buffers_b_: "f32[3][1]cpu"',
         ["y = x * 2", "a = L_self_buffers_a_.copy_(x)", "b = L_self_buffers_b_.copy_(x)", "return (y,)"], None),
    ]
    for words, signature, lines, refused in rows:
        path = f"{work}/text.py"
        open(path, "w").write(text_case(signature, *lines))
        done = run(["export", path, *words])
        assert (done.returncode == 2) == bool(refused), (lines, done.stderr)
        assert not refused or done.stderr.startswith(f"partita: {refused}"), (lines, done.stderr)


def check_devices(work):
    """An inputs' file holds tensors of the CPU."""
    open(f"{work}/text.py", "w").write(text_case('x: "f32[1][1]cpu", y: "f32[1][1]cuda:0"', "return (x,)"))
    tensors = {f"input.{i}": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i in range(2)}
    header = json.dumps(tensors).encode()
    with open(f"{work}/io.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    done = run(["export", f"{work}/text.py", "--inputs", f"{work}/io.safetensors"])
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("partita: Device mismatch between fake input and example input at position #1: "
                                  "cuda:0 vs cpu. It is input y"), done.stderr


def check_folder(work):
    """-o writes what is printed."""
    path = f"{FOLDER}/exp_linear_loss.py"
    printed = run(["export", path, "--trace-joint", "--loss-index", "0", "-o", f"{work}/out"]).stdout
    assert open(f"{work}/out/graph.py").read() == printed
    facts = json.load(open(f"{work}/out/signature.json"))
    assert facts["loss"] == facts["signature"]["user_outputs"][0] == "mean", facts


def main():
    cases = json.load(open(f"{FOLDER}/cases.json"))
    with tempfile.TemporaryDirectory() as work:
        for case in cases["cases"]:
            check(case, work)
        check_texts(work)
        check_devices(work)
        check_folder(work)
    named = {row["name"] for row in cases["cases"] + cases["exempt"]}
    assert all(row["why"] for row in cases["exempt"])
    corpus = os.environ.get("PARTITA_CORPUS", f"{SOURCE}/../shared/corpus")
    if os.path.exists(f"{corpus}/aot_errors"):
        wanted = {row["name"] for row in json.load(open(f"{corpus}/aot_errors/errors.json"))["errors"]}
        wanted |= {name[:-5] for name in os.listdir(f"{corpus}/aot_export")}
        assert wanted == {name for name in named if not name.startswith("archive_")}, wanted ^ named
    print(f"{len(cases['cases'])} cases")


main()

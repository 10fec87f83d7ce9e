"""What verbs print with --json is as docs/json.schema.json says, and every verb that has the option is in it.

  json_schema.py PARTITA SOURCE_DIR"""

import json
import os
import re
import subprocess
import sys
import tempfile

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SAMPLE = f"{SOURCE}/resources/samples/mlp"
PROGRAM, IO = f"{SAMPLE}/program.pt2", f"{SAMPLE}/io.safetensors"
SCHEMA = json.load(open(f"{SOURCE}/docs/json.schema.json"))["$defs"]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_of(value, kind):
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind])


def faults(value, schema, at):
    """Where the value breaks the schema, of which this knows the words that ours uses."""
    unknown = set(schema) - {"description", "type", "required", "properties", "additionalProperties", "items", "$ref"}
    assert not unknown, f"{at}: the test does not know {unknown}"
    if "$ref" in schema:
        return faults(value, SCHEMA[schema["$ref"].rsplit("/", 1)[1]], at)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_of(value, kind) for kind in kinds):
        return [f"{at} is {value!r:.60}, not {kinds}"]
    found = []
    if isinstance(value, dict):
        found += [f"{at} has no {name}" for name in schema.get("required", []) if name not in value]
        others = schema.get("additionalProperties", {})
        for name, inner in value.items():
            if name in schema.get("properties", {}):
                found += faults(inner, schema["properties"][name], f"{at}.{name}")
            elif others is False:
                found.append(f"{at}.{name} is in no schema")
            else:
                found += faults(inner, others, f"{at}.{name}")
    if isinstance(value, list):
        for i, inner in enumerate(value):
            found += faults(inner, schema.get("items", {}), f"{at}[{i}]")
    return found


with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "PARTITA_STORE": f"{folder}/store.sqlite", "XDG_CONFIG_HOME": folder}

    def partita(*words, codes=(0,)):
        done = subprocess.run([PARTITA, *words], capture_output=True, text=True, env=env, cwd=folder)
        assert done.returncode in codes, f"{words}: {done.returncode} {done.stderr}"
        return done.stdout

    joint = f"{folder}/aot/joint.py"
    partita("aot", PROGRAM, "-o", f"{folder}/aot")
    for config in ("fuse=true", "fuse=false"):  # entries to explain
        partita("run", PROGRAM, "--inputs", IO, "--backend", "cpu", "--config", config)
    entries = [row["id"] for row in json.loads(partita("store", "list", "--json")) if "autograd_cache" in row["title"]]
    profile = f"{folder}/profile.json"
    with open(profile, "w") as file:
        json.dump([{"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": length}
                   for cat, name, at, length in [("user_annotation", "## Call CompiledFxGraph None ##", 0, 10),
                                                 ("cpu_op", "aten::addmm", 1, 2), ("cpu_op", "aten::foo", 4, 2)]], file)
    with open(f"{folder}/own.py", "w") as file:
        file.write("def forward(self, x):\n    a = torch.ops.mylib.a.default(x)\n    return (a,)\n")
    wrong = ["--plant", "aten.gelu.default:wrong"]
    between = ["--random-weights", "0", "--backends", "interp,cpu"]
    runs = {
        "aot": [["aot", PROGRAM, "-o", f"{folder}/again"]],
        "compare": [["compare", PROGRAM, "--inputs", IO, "--per-node", "--backends", "interp,cpu"],
                    ["compare", joint, *between, "--per-node", *wrong],
                    ["compare", joint, *between, "--plant", "aten.gelu.default:crash"],
                    ["compare", PROGRAM, "--inputs", IO, "--per-node", "--against", "f64", "--against", "stored",
                     "--against", "cpu+plant=aten.gelu.default:wrong"],
                    ["compare", PROGRAM, "--inputs", IO, "--per-node", "--against", "f64", "--against", "stored",
                     "--values", "gelu"],
                    ["compare", f"{SOURCE}/tests/load/recording"]],
        "compile": [["compile", PROGRAM, "-o", f"{folder}/model.so", "--isa", "baseline"]],
        "config": [["config"]],
        "diff": [["diff", PROGRAM, joint], ["diff", joint, joint, joint]],
        "export": [["export", PROGRAM]],
        "kernels": [["kernels", PROGRAM, "--train"], ["kernels", PROGRAM, "--inputs", IO, "--show", "asm"],
                    ["kernels", f"{SOURCE}/tests/load/inductor.log", "--backend", "pytorch"],
                    ["kernels", f"{SOURCE}/tests/load/inductor.log", "--profile", profile]],
        "list": [["list", PROGRAM], ["list", f"{folder}/aot"], ["list", f"{SOURCE}/tests/load/recording"]],
        "minify": [["minify", joint, "--check", "accuracy:cpu", *wrong, "-o", f"{folder}/repro"]],
        "ops": [["ops"], ["ops", "aten.addmm.default"], ["ops", "aten.gelu.default"]],
        "ops missing": [["ops", "--missing", joint], ["ops", "--missing", f"{folder}/own.py"]],
        "passes": [["passes", PROGRAM], ["passes", PROGRAM, "--train"], ["passes", PROGRAM, "--check", "--inputs", IO],
                   ["passes", PROGRAM, "--train", "--print", "rewrites"]],
        "query": [["query", joint, "users", "addmm"], ["query", PROGRAM, "saved", "3"], ["query", PROGRAM, "peak"],
                  ["query", joint, "cut"], ["query", f"{folder}/aot", "cut", "--graph", "joint"],
                  ["query", f"{folder}/aot", "peak", "--graph", "joint"]],
        "run": [["run", PROGRAM, "--inputs", IO, "--train"]],
        "store explain": [["store", "explain", *entries], ["store", "explain", entries[0], entries[0]],
                          ["store", "explain", "checks/1", "checks/2"]],
        "store list": [["store", "list"]],
        "store stats": [["store", "stats"]],
    }
    corpus = os.environ.get("PARTITA_CORPUS", f"{SOURCE}/../shared/corpus")
    if os.path.isdir(f"{corpus}/ops_inplace"):
        runs["check"] = [["check", f"{corpus}/ops_inplace", "--every", "20"]]
    if os.path.isdir(reduces := f"{corpus}/ranks/reduces"):
        runs["run_ranks"] = [["run", reduces, "--ranks"]]
        runs["compare_ranks"] = [["compare", reduces, "--ranks", "--backends", "stored,interp"],
                                 ["compare", reduces, "--ranks", "--backends", "stored,interp", "--rtol", "0", "--atol", "0"]]
    if python := os.environ.get("PARTITA_TEST_PYTHON"):
        runs["locate"] = [["--python", python, "locate", PROGRAM, "--inputs", IO, "--train"]]
    problems = []
    for name, commands in runs.items():
        for words in commands:
            printed = json.loads(partita(*words, "--json", codes=(0, 1)))
            assert printed, f"{words} prints nothing"
            problems += faults(printed, SCHEMA[name], " ".join(words[:2]))
    assert not problems, "\n".join(problems[:20])
    # The test finds what is wrong.
    assert faults({"path": 1}, SCHEMA["list"], "list") and faults([{"name": "x", "more": 1}], SCHEMA["ops"], "ops")

    def of_operator(name):
        [row] = json.loads(partita("ops", name, "--json"))
        return row, row["fields"]

    amax, fields = of_operator("aten.amax.default")
    assert (amax["lower"], amax["derivative"], fields["program"], fields["expensive"]) == ("own", "own", None, None)
    documented = [line.split()[0] for line in partita("ops", "--fields").splitlines()]
    assert documented == list(fields), documented
    assert fields["derivative"] == {"self": "extreme_backward(grad, result, self, dim, keepdim)"}
    assert fields["schema"]["arguments"] == ["self", "dim", "keepdim"] and fields["schema"]["autocast"] is None
    # The family is that of the file that registers the operator, where the record does not tell.
    families = {"cat": "index", "tril": "index", "select_scatter": "index", "alias": "view", "_chunk_cat": "view",
                "mm": "matmul", "amax": "reduction", "native_dropout": "random", "gelu": "pointwise", "gather": "index"}
    found = {name: of_operator(f"aten.{name}.default")[1]["family"] for name in families}
    assert found == families, found
    cast = {name: of_operator(f"aten.{name}.default")[1]["schema"]["autocast"] for name in ("mm", "cat", "kl_div")}
    assert cast == {"mm": "lower_precision_fp", "cat": "promote", "kl_div": "fp32"}, cast

    verbs = re.findall(r"^  (\w+) ", partita("--help").split("Subcommands:")[1], re.M)
    assert len(verbs) > 10, verbs
    for verb in verbs:
        helps = [(verb, partita(verb, "--help"))]
        if "Subcommands:" in helps[0][1]:
            below = re.findall(r"^  (\w+) ", helps[0][1].split("Subcommands:")[1], re.M)
            helps += [(f"{verb} {word}", partita(verb, word, "--help")) for word in below]
        for name, text in helps:
            if "--json" in text:
                assert name in SCHEMA and (name in runs or name in ("check", "locate")), f"no schema for {name} --json"
print("ok")

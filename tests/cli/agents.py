"""Every command of AGENTS.md runs on the samples, ends with the exit code that it names, and what it says of the answers
is in them.

  agents.py PARTITA SOURCE_DIR; commands marked `# torch` run where $PARTITA_TEST_PYTHON names a Python with PyTorch"""

import json
import os
import re
import subprocess
import sys
import tempfile

PARTITA, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PYTHON = os.environ.get("PARTITA_TEST_PYTHON")
TEXT = open(f"{SOURCE}/AGENTS.md").read()

# What the text tells to read, by the words that the command begins with.
FIELDS = {
    "list training.log": ["graphs.id", "graphs.kind", "graphs.ops", "warnings"],
    "ops --missing": ["missing", "given"],
    "query": ["answer", "rows"],
    "compare": ["ok", "reports.first_that_differs", "reports.rows.ok"],
    "locate": ["found", "graphs.verdict", "graphs.kernel", "graphs.node", "graphs.evidence", "graphs.sure"],
    "minify": ["graph", "failure", "folder"],
    "store list": [], "config": [], "kernels": ["graphs"], "diff": ["rows", "differs"], "aot": ["config"],
}


def at(value, path):
    """The values at "graphs.id"; of lists those of each element. A field that is not there is a KeyError."""
    for name in path.split("."):
        value = [item[name] for item in value] if isinstance(value, list) else value[name]
        if isinstance(value, list) and value and isinstance(value[0], list):
            value = [item for items in value for item in items]
    return value


commands = re.findall(r"^ {6,}((?:[A-Z_]+=\S+ )?partita .*)$", TEXT, re.M)
assert len(commands) > 15, commands
left_out = []
with tempfile.TemporaryDirectory() as folder:
    for sample in ("mlp/program.pt2", "mlp/io.safetensors", "training/training.log"):
        with open(f"{SOURCE}/resources/samples/{sample}", "rb") as read, \
                open(f"{folder}/{os.path.basename(sample)}", "wb") as write:
            write.write(read.read())
    os.mkdir(f"{folder}/bin")
    os.symlink(PARTITA, f"{folder}/bin/partita")
    with open(f"{folder}/train.py", "w") as file:
        file.write("import torch\nprint(torch.compile(lambda x: torch.relu(x).sum())(torch.ones(3)))\n")
    with open(f"{folder}/bin/python", "w") as file:
        file.write(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n')
    os.chmod(f"{folder}/bin/python", 0o755)
    env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "PARTITA_STORE": f"{folder}/store",
           "XDG_CONFIG_HOME": folder, "PARTITA_PYTHON": PYTHON or ""}
    for command in commands:
        words, _, remark = command.partition("    # ")
        if remark == "torch" and not PYTHON:
            left_out.append(words)
            continue
        assert remark in ("", "torch") or remark.startswith("exit "), command
        code = int(remark[5:]) if remark.startswith("exit ") else 0
        done = subprocess.run(words, shell=True, capture_output=True, text=True, env=env, cwd=folder)
        assert done.returncode == code, f"{words}: exit code {done.returncode}: {done.stderr}"
        if "--json" in words:
            answer = json.loads(done.stdout)
            [fields] = [fields for begin, fields in FIELDS.items() if words.startswith(f"partita {begin}")]
            for field in fields:
                at(answer, field)
    made = set(os.listdir(folder)) | {f"small/{name}" for name in os.listdir(f"{folder}/small")}
    assert {"page.html", "window.png", "small/graph.py", "small/inputs.safetensors", "small/repro.py"} <= made, made

    def line_of(*words):
        done = subprocess.run(["partita", *words], capture_output=True, text=True, env=env, cwd=folder)
        assert not done.stdout, done.stdout
        return done.returncode, done.stderr

    code, said = line_of("list", "not_there.pt2", "--json")
    assert code == 2 and re.fullmatch(r"partita: not_there\.pt2: .*\n", said), (code, said)

# Its exit codes are those of the program, and its links lead somewhere.
codes = re.search(r"Exit codes:(.*?)A file named", subprocess.run([PARTITA, "--help"], capture_output=True, text=True).stdout, re.S)
told = re.search(r"\*\*Exit codes\*\*:(.*)", TEXT)[1]
assert re.findall(r"\b[0-9] \w", codes[1]) and set(re.findall(r"\b([0-9]) ", codes[1])) == set(re.findall(r"\b([0-5]) [a-z]", told)), (codes[1], told)
for target in re.findall(r"\]\(([^)#]+)\)", TEXT) + re.findall(r"`(docs/[^`]+)`", TEXT):
    assert os.path.exists(f"{SOURCE}/{target}"), f"AGENTS.md names {target}"
print(f"{len(commands) - len(left_out)} commands; left out without PyTorch: {left_out}")

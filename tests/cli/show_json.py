"""JSON of a graph says where nodes come from in the user's program, and what the user noted at them."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile

PARTITA, SOURCE = sys.argv[1:3]
PROGRAM = f"{SOURCE}/resources/samples/mlp/program.pt2"

with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "PARTITA_STORE": f"{folder}/store.sqlite", "XDG_CONFIG_HOME": folder}

    def partita(*words):
        done = subprocess.run([PARTITA, *words], capture_output=True, text=True, env=env, cwd=os.path.dirname(PROGRAM))
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout

    def nodes(path):
        return json.loads(partita("show", path, "--format", "json"))["nodes"]

    first = nodes(PROGRAM)
    library = [node for node in first if "/torch/" in node.get("origin", {}).get("file", "")]
    assert library, "the sample has layers of torch.nn"
    for node in library:
        assert "/torch/" not in node["origin"]["caller"]["file"] and node["origin"]["caller"]["line"] > 0, node
    own = [node for node in first if "origin" in node and node not in library]
    assert own and not any("caller" in node["origin"] for node in own)
    assert not os.path.exists(env["PARTITA_STORE"]), "show makes no store"

    partita("store", "stats")
    store = sqlite3.connect(env["PARTITA_STORE"])
    graph = json.loads(partita("list", PROGRAM, "--json"))["graphs"][0]["id"]
    noted = library[0]["name"]
    with store:
        store.execute("INSERT INTO notes(at, path, graph, node, text) VALUES(0, ?, ?, ?, 'look here')",
                      (os.path.realpath(PROGRAM), graph, noted))
    partita("run", "program.pt2", "--inputs", "io.safetensors", "--backend", "interp", "-o", f"{folder}/out.safetensors")
    assert store.execute("SELECT path FROM runs").fetchall() == [(os.path.realpath(PROGRAM),)]  # tells files apart
    store.close()
    for path in (PROGRAM, "program.pt2", "../mlp/program.pt2"):
        assert {node["name"]: node["user_note"] for node in nodes(path) if "user_note" in node} == {noted: "look here"}
print("ok")

#!/usr/bin/env python3
"""The configuration is read from its file, the command line and options, and shown where it matters.

  config.py PARTITA SOURCE_DIR"""
import json, os, struct, subprocess, sys, tempfile

partita, source = sys.argv[1:3]
MODEL = f"{source}/resources/samples/mlp/program.pt2"
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8][1]cpu"):
        tanh: "f32[8][1]cpu" = torch.ops.aten.tanh.default(x)
        sin: "f32[8][1]cpu" = torch.ops.aten.sin.default(tanh);  tanh = None
        return (sin,)
"""
wrong = []


def floats(path):
    """The numbers of output.0 in a safetensors file, in single precision."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])["output.0"]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])


def check(holds, what):
    if not holds:
        wrong.append(what)


with tempfile.TemporaryDirectory() as work:
    env = {k: v for k, v in os.environ.items() if k != "PARTITA_VERIFY"}
    env.update(XDG_CONFIG_HOME=f"{work}/config", PARTITA_STORE=f"{work}/store.sqlite")

    def run(*words, code=0):
        done = subprocess.run([partita, *words], capture_output=True, text=True, env=env)
        check(done.returncode == code, f"{words}: exit {done.returncode}, {done.stderr}")
        return done.stderr if code else done.stdout

    def rows(*words):
        return {row["name"]: row for row in json.loads(run("config", "--json", *words))}

    # The table.
    plain = rows()
    check(not any(row["changed"] for row in plain.values()), "nothing is changed at first")
    check(all(row["help"] and row["takes"] for row in plain.values()), "every row says what it is")
    text = run("config")
    check(all(name in text for name in plain) and "*" not in text, text)
    check(list(rows("threads")) == ["threads"], "one row")
    check("enters the key" in run("config", "threads"), "a row says whether it enters the key")

    # A later way of setting a row wins.
    os.makedirs(f"{work}/config/partita")
    with open(f"{work}/config/partita/config", "w") as file:
        file.write("# mine\nthreads = 2\ngraph_limit = 5k\n")
    with open(f"{work}/more", "w") as file:
        file.write("threads = 3\nmemory_limit = 2GiB\n")
    check(rows("threads")["threads"]["value"] == 2, "the user's file")
    check(rows("--config-file", f"{work}/more")["threads"]["value"] == 3, "--config-file")
    found = rows("--config-file", f"{work}/more", "--config", "threads=4", "--config", "fuse=false", "--graph-limit", "6k")
    check({name: row["value"] for name, row in found.items() if row["changed"]} ==
          {"threads": 4, "graph_limit": 6000, "memory_limit": 2 << 30, "fuse": False}, f"{found}")
    check("* threads" in run("config") and "* fuse" not in run("config"), "what is changed is marked")
    check(len(json.loads(run("config", "--changed", "--json"))) == 2, "--changed")

    # What is refused.
    for words, said in ((["--config", "thread=2"], "the nearest name is threads"),
                        (["--config", "threads=many"], "threads takes a whole number from 1 to 1024, and got 'many'"),
                        (["--config", "threads"], "NAME=VALUE"),
                        (["--config", "disable_passes=nothing"], "no pass nothing"),
                        (["thread"], "the nearest name is threads"),
                        (["--config-file", f"{work}/none"], "cannot be read")):
        error = run("config", *words, code=2)
        check(said in error and error.count("\n") == 1, f"{words}: {error}")
    with open(f"{work}/bad", "w") as file:
        file.write("threads = 1\n\nthreds = 2\n")
    check(f"{work}/bad:3" in run("config", "--config-file", f"{work}/bad", code=2), "the file's line")

    # It takes part in what runs, and documents show it.
    with open(f"{work}/graph.py", "w") as file:
        file.write(GRAPH)
    error = run("list", f"{work}/graph.py", "--config", "graph_limit=1", code=2)
    check("more than 1 nodes" in error, error)
    facts = json.loads(run("aot", MODEL, "-o", f"{work}/aot", "--json", "--config", "partitioner=default"))
    same = json.loads(run("aot", MODEL, "-o", f"{work}/aot", "--json", "--partitioner", "default"))
    check(facts["saved"] == same["saved"] and facts["partitioner"] == "default", "a row and its option")
    check(facts["config"] == {"partitioner": "default", "threads": 2, "graph_limit": 5000}, f"{facts['config']}")
    os.remove(f"{work}/config/partita/config")
    report = json.loads(run("compare", f"{work}/graph.py", "--random-weights", "0", "--json", "--config", "fuse=false"))
    check(report["ok"] and report["config"] == {"fuse": False}, f"{report['config']}")
    done = json.loads(run("bench", f"{work}/graph.py", "--random-weights", "0", "--seconds", "0.01", "--threads", "2"))
    check(done["config"] == {"threads": 2}, f"{done}")

    # The graphs that a compiler gets are saved with their inputs, and run again they give the same.
    for words, graphs in (([], 1), (["--train"], 2), (["--config", "freezing=true"], 1)):
        saved = f"{work}/saved{'-'.join(words)}".replace("=", "-")
        done = subprocess.run([partita, "run", MODEL, "--random-weights", "3", "--backend", "cpu", "-o", f"{work}/out",
                               *words, "--config", f"save_args={saved}"], capture_output=True, text=True, env=env)
        check(done.returncode == 0, f"save_args: {done.stderr}")
        told = [line for line in done.stderr.split("\n") if "saved" in line]
        check(len(told) == graphs and sorted(os.listdir(saved)) == [f"graph_{n}" for n in range(graphs)], done.stderr)
        text = open(f"{saved}/graph_0/graph.py").read()
        check(("_frozen_param" in text) == ("freezing=true" in words), text)
        run("run", *told[0].split("partita run")[1].split(), "-o", f"{work}/again", "--backend", "interp")
        first, again = floats(f"{work}/out"), floats(f"{work}/again")
        check(len(first) == len(again) and all(abs(a - b) <= 1e-4 * (1 + abs(a)) for a, b in zip(first, again)),
              f"save_args {words}: {first[:4]} and {again[:4]}")

    # A repro says by which configuration it fails, and asks again by it.
    run("minify", f"{work}/graph.py", "--check", "accuracy", "--plant", "aten.sin.default:wrong", "-o", f"{work}/repro",
        "--jobs", "1", "--config", "fuse=false", "--config", f"store={work}/store.sqlite")
    written = open(f"{work}/repro/partita.config").read()
    readme = open(f"{work}/repro/README.md").read()
    check(written == "fuse = false\n", written)
    check("--config-file partita.config" in readme and "fuse = false" in readme and work not in readme, readme)
    run("minify", f"{work}/graph.py", "--check", "accuracy", "--plant", "aten.sin.default:wrong", "-o", f"{work}/plain",
        "--jobs", "1")
    check(not os.path.exists(f"{work}/plain/partita.config"), "nothing to say about the defaults")
    check("at its defaults" in open(f"{work}/plain/README.md").read(), "the README says that they hold")

for line in wrong:
    print(line)
sys.exit(bool(wrong))

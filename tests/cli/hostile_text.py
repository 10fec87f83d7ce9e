#!/usr/bin/env python3
"""Text of a file stays data in the Python that is written from it. hostile_text.py PARTITA SOURCE_DIR [EVERY]

Puts line ends, quotes and brackets into each text field of an archive and into each part of FX text. What `show`, `aot`, `export`
and `run --compiler graph_dumper_aot` write must then be a class and calls for Python's parser, or the file is refused
in one line. EVERY 3 tries a third of the hostile texts in each place, for builds with sanitizers, which are slow.
"""
import ast, json, os, pathlib, subprocess, sys, tempfile, zipfile

partita, source = sys.argv[1], pathlib.Path(sys.argv[2])
every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
sample = source / "resources/samples/mlp"
HOSTILE = ["\nimport os\nos.abort()  #", "\r    import os\r", "'\"]})\nimport os\n", '", os.abort(), "', "\\", "\x00\x0c\x1b", "\u2028import os"]
failures, written = [], 0


def check_python(text, what):
    """Nothing but classes of methods, and in these no import, no call of a bare name but getattr, slice, device."""
    global written
    written += 1
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as reason:
        failures.append(f"{what}: not Python ({reason})")
        return
    for statement in tree.body:
        known = isinstance(statement, (ast.ClassDef, ast.Import, ast.ImportFrom))
        known = known or ast.unparse(statement).startswith("NoneType = ")
        if not known:
            failures.append(f"{what}: {ast.unparse(statement)[:80]!r} stands outside of the class")
        if isinstance(statement, ast.Import) and ast.unparse(statement) == "import os" and "load_state_dict" not in text:
            failures.append(f"{what}: imports os")
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in tree.body:
            failures.append(f"{what}: {ast.unparse(node)!r} within the class")
        if isinstance(node, ast.Attribute) and node.attr == "abort":
            failures.append(f"{what}: {ast.unparse(node)!r} is read")


def run(what, *arguments):
    done = subprocess.run([partita, *arguments], capture_output=True, timeout=120)
    if done.returncode not in (0, 1, 2, 3) or (done.returncode and done.stderr.count(b"\n") != 1):
        failures.append(f"{what}: {arguments[0]} exits {done.returncode}: {done.stderr[:300]!r}")
    return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else None


def try_file(path, what):
    shown = run(what, "show", path)
    if shown is None:
        return
    check_python(shown.replace("class <lambda>", "class G"), what + ", show")
    exported = run(what, "export", path, "--json")
    if exported is not None:
        check_python(json.loads(exported)["graph"].replace("class <lambda>", "class G"), what + ", export")
    with tempfile.TemporaryDirectory() as out:
        if run(what, "aot", path, "-o", out) is not None:
            for file in pathlib.Path(out).glob("*.py"):
                check_python(open(file, newline="").read(), f"{what}, {file.name}")
            json.load(open(os.path.join(out, "metadata.json")))


def strings(value, path=()):
    """(path, key) of every string within, dict keys included."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield path, key, True
            yield from strings(item, path + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from strings(item, path + (i,))
    elif isinstance(value, str):
        yield path, value, False


def kind_of(path, is_key):
    names = tuple(p for p in path if isinstance(p, str))[-2:]
    return names + (("key",) if is_key else ())


def replace(document, path, text, is_key, hostile):
    changed = json.loads(json.dumps(document))
    at = changed
    for p in path[: len(path) if is_key else len(path) - 1]:
        at = at[p]
    if is_key:
        at[text + hostile] = at.pop(text)
    else:
        at[path[-1]] = text + hostile
    return changed


def try_archive(folder):
    archive = zipfile.ZipFile(sample / "program.pt2")
    model = json.loads(archive.read("program/models/model.json"))
    seen = set()
    for path, text, is_key in strings(model):
        kind = kind_of(path, is_key)
        if kind in seen:
            continue
        seen.add(kind)
        hostile = HOSTILE[len(seen) % len(HOSTILE)]
        often = every == 1 and ("metadata" in path or "target" in kind or "name" in kind)
        for bad in {HOSTILE[0], hostile} if often else {hostile}:
            changed = folder / "changed.pt2"
            with zipfile.ZipFile(changed, "w") as out:
                for name in archive.namelist():
                    data = archive.read(name)
                    if name == "program/models/model.json":
                        data = json.dumps(replace(model, path, text, is_key, bad)).encode()
                    out.writestr(name, data)
            try_file(str(changed), f"{'.'.join(map(str, path))} {text[:30]!r} + {bad!r}")
    # A stack trace that looks like one, with a line end in the file's name.
    for trace in ['File "a\rimport os\r", line 1, in f\n    x', 'File "a", line 1, in f\rimport os\r\n    x', 'File "a", line 1, in f\n    x\rimport os']:
        for node in model["graph_module"]["graph"]["nodes"]:
            node["metadata"]["stack_trace"] = trace
        with zipfile.ZipFile(folder / "trace.pt2", "w") as out:
            for name in archive.namelist():
                out.writestr(name, json.dumps(model) if name.endswith("model.json") else archive.read(name))
        try_file(str(folder / "trace.pt2"), f"stack trace {trace!r}")


def try_text(folder):
    text = subprocess.run([partita, "show", sample / "program.pt2"], capture_output=True, text=True, check=True).stdout
    parts = ["zoo.py", "forward", "F.gelu", "linear.default", "gelu", "self", "f32", "cpu", "MLP", "mean", "return"]
    for i, part in enumerate(parts):
        for hostile in HOSTILE[i % every :: every]:
            if part in text:
                (folder / "changed.py").write_text(text.replace(part, part + hostile, 1), newline="")
                try_file(str(folder / "changed.py"), f"text {part!r} + {hostile!r}")


with tempfile.TemporaryDirectory() as scratch:
    os.environ["PARTITA_STORE"] = os.path.join(scratch, "store.sqlite")
    try_archive(pathlib.Path(scratch))
    try_text(pathlib.Path(scratch))
for failure in failures[:20]:
    print("FAIL", failure)
print(f"{written} texts parsed, {len(failures)} failures")
sys.exit(1 if failures or written < 50 else 0)

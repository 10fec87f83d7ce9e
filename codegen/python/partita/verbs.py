"""The command line's verbs for a model in this process: compare, locate, minify, aot, show, open.

Each takes a model (or a function) with its arguments, which torch.export writes to `folder` (a new one when it is None),
or the path of anything that `partita open` opens, a folder of `partita record` among it. `more`: further words of the
verb's command line, ["--tolerance", "0.01"]; `timeout`: in seconds.
"""

import json
import os
import pathlib
import subprocess

from . import _program
from ._answer import Answer, Page
from ._export import is_path, new_folder, words_of


def _columns(against):
    return [against] if isinstance(against, str) else list(against)


def compare(model, args=None, kwargs=None, *, against=("cpu", "torch:inductor"), reference="interp", train=False,
            per_node=False, folder=None, more=(), timeout=None):
    """Results (and gradients, with `train`) of several compilers beside a reference. A row for each value and column:
    the largest differences, how many elements are wrong."""
    folder = new_folder(folder)
    words = ["compare", *words_of(model, args, kwargs, folder), "--reference", reference, "--all"]
    words += [w for column in _columns(against) for w in ("--against", column)]
    words += ["--train"] * train + ["--per-node"] * per_node
    data, code = _program.call([*words, *more], timeout)
    (folder / "compare.json").write_text(json.dumps(data))
    rows = [(row["name"], report["found"], "ok" if row["ok"] else "DIFFERS", f"{row.get('max_abs', 0):.2g}",
             f"{row.get('max_rel', 0):.2g}", f"{row.get('wrong', 0)} of {row.get('numel', 0)}")
            for report in data["reports"] for row in report["rows"]]
    rows.sort(key=lambda row: row[0])
    title = f"compared with {reference}: " + ("something differs" if code else "all agree")
    if left_out := data.get("left_out"):  # of a recording
        title += f", {len(left_out)} not compared"
    return Answer(title, data, folder, bool(code), ["value", "column", "", "max abs", "max rel", "wrong"], rows)


def locate(model, args=None, kwargs=None, *, against="torch:inductor", train=False, folder=None, more=(), timeout=None):
    """Which kernel and node of inductor's is wrong, by one compilation. A row for each graph that was searched."""
    folder = new_folder(folder)
    words = ["locate", *words_of(model, args, kwargs, folder), "--against", against] + ["--train"] * train
    data, code = _program.call([*words, *more], timeout)
    (folder / "locate.json").write_text(json.dumps(data))
    rows = [(g["graph"], g["verdict"], g["kernel"] or "", g["node"] or "", g["stage"], f"{g['times'].get('total', 0):.1f}")
            for g in data["graphs"]]
    title = "located" if data["found"] else "nothing is wrong that was searched"
    return Answer(title, data, folder, bool(code), ["graph", "verdict", "kernel", "node", "stage", "s"], rows)


def minify(model, args=None, kwargs=None, *, check="accuracy:torch:inductor", train=False, folder=None, more=(), timeout=None):
    """The small part of a graph that fails. `check`: crash:BACKEND or accuracy:BACKEND. The folder `minified` in
    `folder` gets graph.py, repro.py, inputs.safetensors."""
    folder = new_folder(folder)
    words = ["minify", *words_of(model, args, kwargs, folder), "--check", check, "-o", folder / "minified"]
    data, code = _program.call(words + ["--train"] * train + [*more], timeout)
    rows = [(name, value) for name, value in data.items() if isinstance(value, (str, int, float))]
    return Answer(f"minified by {check}", data, folder / "minified", bool(code), ["what", "value"], rows)


def aot(model, args=None, kwargs=None, *, train=True, folder=None, more=(), timeout=None):
    """The graphs that AOTAutograd makes: joint.py, forward.py, backward.py, metadata.json in the folder `aot`."""
    folder = new_folder(folder)
    words = ["aot", *words_of(model, args, kwargs, folder), "-o", folder / "aot"] + ["--inference"] * (not train)
    data, code = _program.call([*words, *more], timeout)
    files = sorted((folder / "aot").iterdir())
    rows = [(f.name, f.read_text(errors="replace").count("\n") if f.suffix == ".py" else "", f.stat().st_size) for f in files]
    return Answer("graphs", data, folder / "aot", bool(code), ["file", "lines", "bytes"], rows)


def show(x, args=None, kwargs=None, *, folder=None, more=(), height=700, timeout=None):
    """The page of `partita report`, which a notebook shows in place: graphs, passes, kernels, a comparison."""
    folder = new_folder(folder)
    page = folder / "report.html"
    words = [_program.find(), "report", *map(str, words_of(x, args, kwargs, folder)), "-o", str(page), *more]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout,
                          env=_program.environment(), check=False)
    if done.returncode:
        raise _program.VerbError(words[1:], done.returncode, done.stderr)
    return Page(page, height)


def open(x, args=None, kwargs=None, *, folder=None):
    """The window, with a model, a file or a folder. It goes on when this process ends. Needs a display and the program
    with a window on PATH."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise OSError("there is no display; partita.show(x) makes a page instead")
    words = words_of(x, args, kwargs, new_folder(folder) if not is_path(x) else None)
    started = subprocess.Popen([_program.find(), "open", *map(str, words)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               env=_program.environment())
    try:
        code = started.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return pathlib.Path(words[0])
    if code:
        raise _program.VerbError(["open"], code, started.stderr.read())
    return pathlib.Path(words[0])

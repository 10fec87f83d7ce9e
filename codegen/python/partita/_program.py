"""The command line: where it is, and how its verbs are called. It needs no PyTorch."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

EXIT_CODES = {0: "done", 1: "differs", 2: "bad input", 3: "not supported", 4: "a bug of Partita", 5: "stopped"}


class VerbError(RuntimeError):
    """A verb that gave no answer. `code` is its exit code, `words` what was called."""

    def __init__(self, words, code, said):
        self.words, self.code = words, code
        super().__init__(said.strip().splitlines()[-1] if said.strip() else f"partita {words[0]}: exit code {code}")


def find():
    """The program: in this package, else $PARTITA, else on PATH. Error: OSError."""
    beside = pathlib.Path(__file__).with_name("bin") / "partita"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = os.environ.get("PARTITA") or shutil.which("partita")
    if not found:
        raise OSError("there is no program `partita` in this package, at $PARTITA or on PATH; install the wheel")
    return found


def call(words, timeout=None):
    """What a verb prints with --json, and its exit code, which is 0 or 1 ("differs"). Error: VerbError."""
    words = [str(word) for word in words]
    done = subprocess.run([find(), *words, "--json"], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env=environment(), check=False)
    if done.returncode not in (0, 1):
        raise VerbError(words, done.returncode, done.stderr)
    try:
        return json.loads(done.stdout), done.returncode
    except ValueError:
        raise VerbError(words, done.returncode, done.stderr or "the answer is no JSON") from None


def environment():
    """This process's, in which torch: backends run in this Python."""
    return {"PARTITA_PYTHON": sys.executable, **os.environ}


def main():
    """The console script `partita`."""
    program = find()
    if "PARTITA_PYTHON" not in os.environ:
        os.environ["PARTITA_PYTHON"] = sys.executable
    os.execv(program, [program, *sys.argv[1:]])

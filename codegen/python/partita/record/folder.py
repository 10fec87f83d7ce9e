"""The folder of a recording: whose it is, its session.json, and what is told on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys

FORMAT = "partita-recording-1"
CHUNK = 1 << 24  # bytes of one write
_told: set[str] = set()


def tell(what: str, text: str, home: str = "") -> None:
    """One line on stderr, once for each `what` of all processes that share `home`.  Never fails."""
    try:
        if what in _told:
            return
        _told.add(what)
        if home:
            os.close(os.open(os.path.join(home, f"told.{what}"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    except OSError:
        pass
    try:
        sys.stderr.write(f"partita record: {' '.join(text.split())}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def rank_of_environment() -> int | None:
    """Of a process that torchrun or a like launcher started."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isascii() and rank.isdigit() and "WORLD_SIZE" in os.environ else None


def folder_of_rank(root: str, rank: int | None) -> str:
    return os.path.join(root, f"rank_{rank}") if rank is not None else root


def claim(root: str, rank: int | None) -> str:
    """Makes the folder of this process, which no other has: `root` for the first one without a rank, else below it
    rank_N or process_N.  Raises OSError."""
    first = folder_of_rank(root, rank)
    stem = f"{first}_" if rank is not None else os.path.join(root, "process_")
    for n in range(1, 10_000):
        path = first if n == 1 else f"{stem}{n}"
        os.makedirs(path, exist_ok=True)
        try:
            os.mkdir(os.path.join(path, "graphs"))
            return path
        except FileExistsError:
            continue
    raise OSError(f"{root} has the recordings of too many processes")


def write_session(path: str, session: dict) -> None:
    """Readers see the old file or the new one.  Raises OSError."""
    write_text(os.path.join(path, "session.json"), json.dumps(session, indent=1, default=repr) + "\n")


def write_text(path: str, text: str) -> None:
    with whole_file(path) as file:
        write_all(file, text.encode("utf-8", "replace"))


def write_all(file, piece) -> None:
    view = memoryview(piece)
    at = 0
    while at < len(view):
        at += file.write(view[at : at + CHUNK])


@contextlib.contextmanager
def whole_file(path: str):
    """A binary file without a buffer, which is at `path` when all of it is written, and not at all after an error."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        with open(partial, "wb", buffering=0) as file:
            yield file
        os.replace(partial, path)
    except BaseException:
        try:
            os.unlink(partial)
        except OSError:
            pass
        raise

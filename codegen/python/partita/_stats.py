"""What the backend did in this process: partita.stats()."""

import collections
import html
import threading
import warnings
import weakref

_lock = threading.Lock()
_told = set()


class PartitaWarning(UserWarning):
    """Something that PyTorch runs in place of the compiler. Said once for each reason."""


class Stats(dict):
    """Counts by name. `graphs`: that AOTAutograd made; `compiled`: of them and their parts; `refused`: calls that PyTorch
    runs, by (operator, reason); `eager`: graphs that it runs whole, by reason; `eager_calls`: of compiled graphs, that it
    ran; `size_compilations`: of graphs with symbols for sizes; `interpreted`: of these, without code."""

    def rows(self):
        for name, value in self.items():
            if isinstance(value, dict):
                yield from ((f"{name}: {' | '.join(key) if isinstance(key, tuple) else key}", n) for key, n in value.items())
            else:
                yield name, value

    def __repr__(self):
        rows = [(name, f"{value:.3f}" if isinstance(value, float) else str(value)) for name, value in self.rows()]
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self):
        cells = "".join(
            f"<tr><td>{html.escape(str(name))}</td><td>{html.escape(str(value))}</td></tr>" for name, value in self.rows())
        return f"<table>{cells}</table>"


def _empty():
    return {"graphs": 0, "compiled": 0, "compile_seconds": 0.0, "refused": collections.Counter(),
            "eager": collections.Counter(), "eager_calls": 0}


_counts = _empty()
_compiled = []  # weak references to compiled graphs, for their recompilations


def add(name, n=1):
    with _lock:
        _counts[name] += n


def note_compiled(graph, seconds):
    with _lock:
        _counts["compiled"] += 1
        _counts["compile_seconds"] += seconds
        _compiled.append(weakref.ref(graph))


def refuse(operator, why, graph):
    """A call that PyTorch runs."""
    with _lock:
        _counts["refused"][operator, why] += 1
        first = (operator, why) not in _told
        _told.add((operator, why))
    if first:
        warnings.warn(f"partita: PyTorch runs {operator} of graph {graph} itself: {why}", PartitaWarning, stacklevel=2)


def run_eagerly(graph, why):
    """A graph that PyTorch runs whole."""
    with _lock:
        _counts["eager"][why] += 1
        first = why not in _told
        _told.add(why)
    if first:
        warnings.warn(f"partita: PyTorch runs graph {graph} itself: {why}", PartitaWarning, stacklevel=2)


def stats():
    """Counts since the process began, or since reset()."""
    with _lock:
        out = Stats({k: dict(v) if isinstance(v, dict) else v for k, v in _counts.items()})
        graphs = [g for g in (ref() for ref in _compiled) if g is not None]
    reports = [r for g in graphs for r in g.report()]
    out["size_compilations"] = len(reports)
    out["interpreted"] = sum(r.get("kind") == "interpreted" for r in reports)
    return out


def reset():
    """Forgets all counts, and says again what was said."""
    global _counts, _compiled
    with _lock:
        _counts, _compiled = _empty(), []
        _told.clear()


stats.reset = reset

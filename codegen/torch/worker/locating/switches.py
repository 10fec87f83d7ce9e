"""Which of inductor's switches makes a fault go away.

Every row compiles the same graph (the guilty kernel's nodes where these are
wrong alone, else the whole) with one setting changed, and judges it again.

Relied on: torch._inductor.config names (rows whose setting a torch lacks are
left out), lowering.fallback_handler and lowering.lowerings.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

import torch

from .compiled import Progress

# (name for people, inductor's settings)
TABLE: list[tuple[str, dict[str, Any]]] = [
    ("no in-place buffers", {"inplace_buffers": False}),
    ("no reuse of buffers", {"allow_buffer_reuse": False}),
    ("no fusion", {"max_fusion_size": 1, "epilogue_fusion": False, "cpp.max_horizontal_fusion_size": 1}),
    ("no vectorisation", {"cpp.simdlen": 1}),
    ("no vectorised tail", {"cpp.enable_loop_tail_vec": False}),
    ("no tiling heuristics", {"cpp.enable_tiling_heuristics": False}),
    ("no contracted multiply-add", {"cpp.enable_floating_point_contract_flag": "off"}),
    ("casts as in eager", {"emulate_precision_casts": True}),
    ("strict numerics", {"numerics": "strict"}),
    ("no pattern matcher", {"pattern_matcher": False}),
    ("no post-grad passes", {"use_post_grad_passes": False}),
    ("no split reductions", {"split_reductions": False}),
    ("no reordering for locality", {"reorder_for_locality": False}),
    ("no reordering for memory", {"reorder_for_peak_memory": False}),
    ("no online softmax", {"online_softmax": False}),
    ("no layout changes", {"layout_optimization": False, "comprehensive_padding": False}),
]


GRAPH_ROWS = ["no pattern matcher", "no post-grad passes", "no reordering for locality", "no online softmax",
              "no layout changes", "strict numerics"]


@dataclass
class Row:
    """One switch and what it changed."""

    name: str
    settings: dict[str, Any]
    verdict: str
    changes: bool
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {"switch": self.name, "settings": self.settings, "verdict": self.verdict,
                "changes_verdict": self.changes, "seconds": round(self.seconds, 2)}


def has_settings(settings: dict[str, Any]) -> bool:
    """Whether this torch knows all of the settings, with other values now."""
    import torch._inductor.config as config
    for name, value in settings.items():
        place: Any = config
        for part in name.split("."):
            if not hasattr(place, part):
                return False
            place = getattr(place, part)
        if len(settings) == 1 and place == value:
            return False
    return True


@contextlib.contextmanager
def as_fallback(targets: list[Any]) -> Iterator[None]:
    """Lets inductor call eager's operator instead of lowering it."""
    from torch._inductor.lowering import fallback_handler, lowerings
    saved = {}
    for target in targets:
        if target in lowerings:
            saved[target] = lowerings[target]
            lowerings[target] = fallback_handler(target, add_to_fallback_set=False)
    try:
        yield
    finally:
        lowerings.update(saved)


def fallback_targets(graph: Any, suspects: list[str]) -> list[Any]:
    """The operators of the suspected nodes, each once."""
    found = []
    for n in graph.nodes:
        if n.name in suspects and isinstance(n.target, torch._ops.OpOverload) and n.target not in found:
            found.append(n.target)
    return found


def try_switches(attempt: Callable[[dict[str, Any]], Any], graph: Any, suspects: list[str],
                 progress: Progress, wanted: Optional[list[str]] = None) -> list[Row]:
    """One row for each switch.  attempt compiles and judges with settings and
    gives a narrow.Trial."""
    rows = []
    for name, settings in TABLE:
        if has_settings(settings) and (wanted is None or name in wanted):
            progress(f"switch: {name}")
            rows.append(_row(name, settings, attempt(settings)))
    for target in fallback_targets(graph, suspects)[:8]:
        progress(f"switch: {target} as a fallback")
        with as_fallback([target]):
            rows.append(_row(f"{target} as a fallback", {}, attempt({})))
    return rows


def _row(name: str, settings: dict[str, Any], trial: Any) -> Row:
    verdict = "wrong" if trial.bad else ("exception" if trial.error else "right")
    return Row(name, settings, verdict if not trial.error else f"exception: {trial.error}", verdict == "right",
               trial.seconds)

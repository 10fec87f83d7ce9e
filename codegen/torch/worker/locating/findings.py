"""What a run of the wrapper found, and how much of it could be judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .judge import Verdict


class OwnError(Exception):
    """A failure of the judging itself, not of the kernel that is judged."""


@dataclass
class Judged:
    """One buffer that was held to eager's value."""

    kernel: str
    buffer: str
    node: str
    verdict: Verdict


@dataclass
class Finding(Judged):
    """One that a kernel left wrong."""

    exact: bool = True                  # inductor says that the buffer is exactly this node
    unchecked_inputs: list[str] = field(default_factory=list)
    stride: tuple = ()


@dataclass
class Tally:
    """How much of a run could be judged."""

    kernels: int = 0
    judged: int = 0
    unmatched: dict[str, str] = field(default_factory=dict)  # buffer -> why it was not judged
    no_double: int = 0
    excused: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"kernels": self.kernels, "buffers_judged": self.judged, "buffers_not_judged": len(self.unmatched),
                "without_double": self.no_double, "excused_by_rounding": self.excused,
                "not_judged": [f"{b}: {why}" for b, why in list(self.unmatched.items())[:20]]}

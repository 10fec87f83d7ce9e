"""What is to be recorded."""

from __future__ import annotations

import dataclasses
import json

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(text: int | str) -> int:
    """Bytes of "64M", "1G", "4096" or a number.  Raises ValueError."""
    if isinstance(text, int):
        number, unit = text, ""
    else:
        stripped = text.strip().upper().removesuffix("B").removesuffix("I")
        unit = stripped[-1:] if stripped[-1:] in "KMGT" else ""
        number = stripped.removesuffix(unit)
        if not number.isascii() or not number.isdigit():
            raise ValueError(f"{text!r} is no size; write 64M, 1G or a number of bytes")
    if int(number) < 0:
        raise ValueError(f"{text!r} is no size")
    return int(number) * UNITS[unit]


@dataclasses.dataclass
class Settings:
    """The options of `partita record`."""

    dir: str
    inputs: bool = True  # the values of graphs' inputs and
    outputs: bool = True  # outputs are written
    limit: int = 1 << 30  # bytes of values in the folder
    per_graph: int = 64 << 20  # bytes of values of one call of a graph
    calls: int = 1  # the first calls of each graph of which values are written
    until_nan: bool = False  # watch all calls for the first NaN or infinity
    until_exception: bool = False  # keep the last call of each graph until an exception
    graphs: tuple[str, ...] = ()  # compile ids ("3/1") of which values are written; empty: all
    own_trace: bool = True  # the trace of the compilations is the recorder's, and not one that the user asked for
    home: str = ""  # a folder that all processes of a recorded run share

    @classmethod
    def from_json(cls, text: str) -> Settings:
        given = json.loads(text)
        given["graphs"] = tuple(given.get("graphs", ()))
        return cls(**given)

    @classmethod
    def of(cls, dir, values="inputs,outputs", limit="1G", per_graph="64M", calls=1, until_nan=False,
           until_exception=False, graph=None) -> Settings:  # fmt: skip
        """From the arguments of start().  Raises ValueError."""
        kinds = {part.strip() for part in values.split(",")}
        if not (kinds == {"none"} or kinds <= {"inputs", "outputs"}):
            raise ValueError(f"values={values!r}: it takes inputs,outputs, one of them, or none")
        if int(calls) < 0:
            raise ValueError(f"calls={calls!r}: it takes a number from 0 up")
        graphs = (graph,) if isinstance(graph, str) else tuple(graph or ())
        return cls(dir=str(dir), inputs="inputs" in kinds, outputs="outputs" in kinds, limit=size(limit),
                   per_graph=size(per_graph), calls=int(calls), until_nan=bool(until_nan),
                   until_exception=bool(until_exception), graphs=graphs)  # fmt: skip

    def wanted(self, compile_id: str) -> bool:
        """Are the values of this compilation written?"""
        return (self.inputs or self.outputs) and (not self.graphs or compile_id in self.graphs)

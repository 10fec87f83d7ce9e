"""A program that is searched: dynamo's graph, or one that inductor gets, with what a log has of its compilation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

import torch
from torch import fx

from .compiled import given_name
from .eager_values import copy_inputs
from .flow import Flow, copy_of_module
from .outcomes import Reference, run


@dataclass
class LogGraph:
    """A graph of a log: what it is there, such as "joint graph", and the backward that goes with a forward.  A module may be
    a text, which says why there is none."""

    role: str
    id: str
    module: Union[fx.GraphModule, str]
    backward_id: Optional[str] = None
    backward: Union[fx.GraphModule, str, None] = None


@dataclass
class Program:
    """What is searched.  inputs may require gradients; tangents are by output, None where none is given.

    kind is "program" for dynamo's graph, else "forward", "backward" or "inference" for one that inductor gets.
    """

    module: fx.GraphModule
    inputs: list[Any]
    tangents: list[Any]
    train: bool
    options: dict
    kind: str = "program"
    log: list[LogGraph] = field(default_factory=list)
    autocast: Optional[torch.dtype] = None  # the state that dynamo's graph was made in, and does not show

    def call(self, function: Callable[..., Any]) -> Any:
        with self.state():
            return run(function, self.inputs, self.tangents, self.train)

    def state(self) -> Any:
        return torch.autocast("cpu", self.autocast or torch.bfloat16, enabled=self.autocast is not None)

    def reference(self) -> Reference:
        with self.state():
            return Reference(self.module, self.inputs, self.tangents, self.train)

    def flow(self, code_generator: Optional[Callable] = None) -> Flow:
        with self.state():
            return Flow(self.module, self.inputs, self.train, self.options, code_generator)


def with_all_values(module: fx.GraphModule, inputs: list[Any]) -> Optional[fx.GraphModule]:
    """The graph with a copy of what each of its calls gives as results, in order, before a later call writes to it.
    None where it calls into functorch, whose values cannot leave it."""
    made = copy_of_module(module)
    if any("_nesting" in getattr(n.target, "__name__", "") for n in made.graph.nodes):
        return None
    tensors: list[fx.Node] = []

    class Watch(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            value = super().run_node(n)
            if n.op in ("call_function", "call_method") and isinstance(value, torch.Tensor):
                tensors.append(n)
            return value
    with torch.no_grad():
        Watch(made).run(*copy_inputs([v.detach() if isinstance(v, torch.Tensor) else v for v in inputs]))
    out = next(n for n in made.graph.nodes if n.op == "output")
    copies = []
    for n in tensors:
        with made.graph.inserting_after(n):
            copies.append(made.graph.call_function(torch.clone, (n,)))
            copies[-1].meta["partita_name"] = given_name(n)
    out.args = (tuple(copies),)
    made.recompile()
    return made

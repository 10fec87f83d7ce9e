"""What PyTorch makes of a graph of dynamo's before inductor generates code.

PyTorch's own compile_fx runs, with graphs of its stages kept on the way and
a stand-in for the code generator.  What it returns can then be called with
any of these graphs in the place of generated code, so that AOTAutograd's
wrappers map inputs, outputs, mutations and gradients for all of them alike.

Relied on (torch 2.6 to 2.14): torch._inductor.compile_fx.compile_fx and its
inner_compile; _recursive_pre_grad_passes, _recursive_joint_graph_passes and
min_cut_rematerialization_partition in that module, where they are replaced
for the length of one call.
"""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

import torch
from torch import fx

from . import eager_values
from .compiled import given_name, label_nodes, patches
from .sizes import fake_inputs

TANGENT = "tangents_"  # in the names that AOTAutograd gives to tangents
FORWARD, BACKWARD, INFERENCE = "forward", "backward", "inference"


def copy_of_module(module: fx.GraphModule) -> fx.GraphModule:
    """A graph of its own, with the same tensors, that takes and gives flat lists."""
    graph = copy.deepcopy(module.graph)
    graph.set_codegen(fx.graph.CodeGen())
    return fx.GraphModule(module, graph)


@dataclass
class Captured:
    """A graph that inductor would get, and the inputs of its last call."""

    kind: str
    module: fx.GraphModule
    inputs: list[Any] = field(default_factory=list)


@dataclass
class Stage:
    """Graphs that stand in the place of generated code.

    forward takes the inputs of AOTAutograd's forward or inference graph and
    gives its results, without those saved for the backward; backward takes
    the inputs of the forward and the tangents.  graphs are those that
    inductor would get, with the inputs of the last call.
    """

    name: str
    forward: Callable[[list[Any]], list[Any]]
    backward: Optional[Callable[[list[Any], list[Any]], list[Any]]] = None
    graphs: dict[str, Captured] = field(default_factory=dict)
    before_aot: bool = False  # forward is called with the program's own inputs, and autograd looks on


class Flow:
    """One call of compile_fx.  train: gradients are wanted of inputs that require them.  code_generator: what compiles
    the graphs, in the place of the stand-in."""

    def __init__(self, module: fx.GraphModule, inputs: list[Any], train: bool, options: dict,
                 code_generator: Optional[Callable] = None):
        self.train = train
        self.code_generator = code_generator or self._inner
        self.graphs: dict[str, Captured] = {}
        self.pre_grad: Optional[fx.GraphModule] = None
        self.joint: list[fx.GraphModule] = []  # before and after the joint passes
        self.results = 0   # of the forward, without what is saved
        self.stage: Optional[Stage] = None
        self.depth = 0
        self.primals: list[Any] = []
        self.notes: list[str] = []
        label_nodes(module)
        mode, fakes = fake_inputs(module, inputs)
        for fake, value in zip(fakes, inputs):
            if isinstance(fake, torch.Tensor) and isinstance(value, torch.Tensor):
                fake.requires_grad_(value.requires_grad and train)
        self.call = self._compile(copy_of_module(module), mode, fakes, options)

    def _compile(self, module: fx.GraphModule, mode: Any, fakes: list[Any], options: dict) -> Callable:
        import torch._dynamo  # noqa: F401
        import torch._functorch.config as functorch_config
        import torch._inductor.config as config
        from torch._guards import TracingContext, tracing
        from torch._inductor.compile_fx import compile_fx
        aot = {"enable_autograd_cache": False}
        known = functorch_config.get_config_copy() if hasattr(functorch_config, "get_config_copy") else aot
        aot = {k: v for k, v in aot.items() if k in known}
        with config.patch(patches(module, options, self.notes)), functorch_config.patch(aot), self._watched(), \
                tracing(TracingContext(mode)), torch.set_grad_enabled(self.train):
            return compile_fx(module, fakes, inner_compile=self.code_generator)

    def _inner(self, module: fx.GraphModule, example_inputs: Any, **how: Any) -> Callable:
        """In the place of compile_fx_inner."""
        kind = BACKWARD if how.get("is_backward") else INFERENCE if how.get("is_inference") else FORWARD
        captured = self.graphs[kind] = Captured(kind, copy_of_module(module))

        def run(args: list[Any]) -> list[Any]:
            values = list(args)
            args.clear()
            captured.inputs = eager_values.copy_inputs(values)
            with torch.no_grad():
                return self._run(captured, values)
        run._boxed_call = True
        return run

    def _run(self, captured: Captured, values: list[Any]) -> list[Any]:
        """The results that AOTAutograd expects, by the graphs of the present stage."""
        if captured.kind == BACKWARD:
            tangents = [v for n, v in zip(holders(captured.module), values) if TANGENT in n.name]
            if self.stage is None or self.stage.backward is None:
                return interpret(captured.module, values)
            return self.stage.backward(self.primals, tangents)
        self.primals = captured.inputs
        own = interpret(captured.module, eager_values.copy_inputs(values) if self.stage else values)
        if self.stage is None:
            return own
        given = self.stage.forward(values)
        return given + own[len(given):]

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Keeps the graphs of the stages that compile_fx goes through."""
        import torch._inductor.compile_fx as fx_compiler

        def pre_grad(original):
            def run(module, *args, **kwargs):
                out = original(module, *args, **kwargs)
                self.pre_grad = copy_of_module(out)
                return out
            return run

        def joint(original):
            def run(module, *args, **kwargs):
                self.depth += 1
                try:
                    before = copy_of_module(module) if self.depth == 1 else None
                    out = original(module, *args, **kwargs)
                finally:
                    self.depth -= 1
                if before is not None:
                    self.joint = [before, copy_of_module(out)]
                return out
            return run

        def partition(original):
            def run(*args, **kwargs):
                self.results = kwargs.get("num_fwd_outputs", self.results)
                return original(*args, **kwargs)
            return run
        hooks = {"_recursive_pre_grad_passes": pre_grad, "_recursive_joint_graph_passes": joint,
                 "min_cut_rematerialization_partition": partition}
        saved = {name: getattr(fx_compiler, name) for name in hooks if hasattr(fx_compiler, name)}
        for name, original in saved.items():
            setattr(fx_compiler, name, hooks[name](original))
        try:
            yield
        finally:
            for name, original in saved.items():
                setattr(fx_compiler, name, original)

    # The graphs of the stages as stand-ins for code.

    def stages(self) -> list[Stage]:
        """PyTorch's own stages, in the order of the compilation."""
        found = [self.before_partition(name, module)
                 for name, module in zip(("AOTAutograd", "joint passes"), self.joint)]
        if FORWARD in self.graphs:
            backward = self.graphs.get(BACKWARD)
            found.append(self.pair("partition", self.graphs[FORWARD].module, backward.module if backward else None))
        return found

    def before_partition(self, name: str, module: fx.GraphModule) -> Stage:
        """A joint graph where there is a forward, else an inference graph."""
        return self._joint_stage(name, module) if FORWARD in self.graphs else self.single(name, module)

    def single(self, name: str, module: fx.GraphModule) -> Stage:
        """An inference graph."""
        captured = Captured(INFERENCE, module)

        def forward(values: list[Any]) -> list[Any]:
            captured.inputs = eager_values.copy_inputs(values)
            return interpret(module, values)
        return Stage(name, forward, graphs={INFERENCE: captured})

    def _joint_stage(self, name: str, joint: fx.GraphModule) -> Stage:
        """A joint graph: its forward's results, and its gradients from the same inputs."""
        half = copy_of_module(joint)
        out = next(n for n in half.graph.nodes if n.op == "output")
        out.args = (tuple(output_args(half)[:self.results]),)
        half.graph.eliminate_dead_code()
        half.recompile()
        takes = sum(n.op == "placeholder" for n in joint.graph.nodes)

        def forward(values: list[Any]) -> list[Any]:
            return interpret(half, values + [None] * (takes - len(values)))

        def backward(primals: list[Any], tangents: list[Any]) -> list[Any]:
            return interpret(joint, eager_values.copy_inputs(primals) + tangents)[self.results:]
        return Stage(name, forward, backward)

    def pair(self, name: str, forward: fx.GraphModule, backward: Optional[fx.GraphModule]) -> Stage:
        """A forward and a backward graph: what the one saves the other gets, by name."""
        graphs = {FORWARD: Captured(FORWARD, forward)}
        saved: dict[str, Any] = {}
        names = [given_name(a) if isinstance(a, fx.Node) else "" for a in output_args(forward)]
        primal_names = [given_name(n) for n in holders(forward)]

        def run(values: list[Any]) -> list[Any]:
            graphs[FORWARD].inputs = eager_values.copy_inputs(values)
            outputs = interpret(forward, values)
            saved.update(zip(primal_names, graphs[FORWARD].inputs))
            saved.update(zip(names, outputs))
            return outputs[:self.results]

        def run_back(_: list[Any], tangents: list[Any]) -> list[Any]:
            rest = list(tangents)
            values = [rest.pop(0) if TANGENT in given_name(n) else saved[given_name(n)] for n in holders(backward)]
            graphs[BACKWARD].inputs = eager_values.copy_inputs(values)
            return interpret(backward, values)
        if backward is None:
            return Stage(name, run, None, graphs)
        graphs[BACKWARD] = Captured(BACKWARD, backward)
        return Stage(name, run, run_back, graphs)


def flat(values: Any) -> list[Any]:
    """The values of nested lists and tuples, in order."""
    if not isinstance(values, (list, tuple)):
        return [values]
    return [v for item in values for v in flat(item)]


def holders(module: fx.GraphModule) -> list[fx.Node]:
    """The placeholders."""
    return [n for n in module.graph.nodes if n.op == "placeholder"]


def output_args(module: fx.GraphModule) -> list[Any]:
    """What a graph returns, as one list."""
    return flat(next(n for n in module.graph.nodes if n.op == "output").args[0])


def interpret(module: fx.GraphModule, values: list[Any]) -> list[Any]:
    """A graph's results in eager, as one list."""
    return flat(fx.Interpreter(module).run(*values))

#!/usr/bin/env python3
"""Makes the graphs of tests/cli/export from the Python source in the corpus, by dynamo or symbolic_trace.

  export_cases.py CORPUS FOLDER      writes FOLDER/NAME.py (or .pt2), FOLDER/NAME.safetensors and
                                     FOLDER/cases.json

CORPUS has aot_export/*.json and aot_errors/errors.json. What no graph can show is in EXEMPT, with the reason.
"""
import glob
import json
import re
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import fx, nn
from torch._functorch.aot_autograd import aot_export_module
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

EXEMPT = {
    "js_debug_assert_path": "a NameError in PyTorch's own code",
    "mo_functionalize_rng": "a setting of the process (functionalize_rng_ops), which no graph carries",
    "mo_data_dependent_branch": "Python's `if` on a tensor ends the trace, so that there is no graph",
    "rt_data_dependent_shape_branch": "Python's int() of a tensor ends the trace, so that there is no graph",
    "rt_autocast_leak": "not refused; a change of Python's autocast state, which no graph makes",
    "rt_requires_grad_changed": "a compiled Python function called again; every run of Partita reads requires_grad anew",
    "rt_output_not_tuple": "aot_module_simplified's calling convention; aot_module takes such graphs, and so do we",
    "rt_aot_module_not_module": "a Python function given for a module",
    "rt_backward_twice": "Python's autograd state after a backward",
    "rt_view_of_leaf_mutated": "Python's autograd state of an input: of which leaf it is a view",
}
# Refused at another place, in other words.
OWN_WORDS = {"rt_shape_changed": "input.0 (l_x_) has sizes [8]; f32[6][1]cpu is expected"}
# Traced symbolically, because dynamo changes what is returned, or refuses t_ and transpose_ of an input.
SYMBOLIC = {"js_output_not_a_tuple", "js_nested_output", "mo_loss_is_python_float", "js_metadata_mutation",
            "mo_metadata_mutation"}


def R(*shape, rg=False):
    torch.manual_seed(0)
    return torch.randn(*shape).requires_grad_(rg)


class Fn(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("b", torch.zeros(3))
        self.f = f

    def forward(self, *a):
        return self.f(self, *a)


class Ex(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.ones(3, 4)), nn.Parameter(torch.ones(4))
        self.register_buffer("n", torch.zeros(()))
        self.register_buffer("avg", torch.zeros(3))
        self.f = f

    def forward(self, *a):
        return self.f(self, *a)


class Nested(nn.Module):
    """Containers among inputs and outputs, and an input that is written."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x, pair):
        x.mul_(2)
        return [x * self.w, {"a": pair["p"] + 1, "b": (pair["q"].sum(),)}]


class Frozen(nn.Module):
    """A parameter that does not require grad."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight.requires_grad_(False)

    def forward(self, x):
        return (self.b(self.a(x)).sum(),)


# Not of the corpus: archives of torch.export, and what aot_export_module makes of the same modules.
ARCHIVES = {
    "archive_nested": (Nested, lambda: [R(2, 3), {"p": R(3), "q": R(2)}], {"trace_joint": False}),
    "archive_frozen": (Frozen, lambda: [R(2, 3)], {"trace_joint": True, "output_loss_index": 0}),
}


def archive_case(name, folder):
    module, args, options = ARCHIVES[name]
    torch.manual_seed(0)
    module = module()
    torch.export.save(torch.export.export(module, tuple(args()), strict=False), f"{folder}/{name}.pt2")
    graph, signature = aot_export_module(module, args(), **options)
    signature = {k: str(v) if k.endswith("_spec") else v for k, v in vars(signature).items()}
    if signature["backward_signature"]:
        signature["backward_signature"] = vars(signature["backward_signature"])
    return {"name": name, "signature": signature, "code": graph.code, "words": ["export", *words(options)]}


class OneArgument(Fn):
    """symbolic_trace takes no *args."""

    def forward(self, x):
        return self.f(self, x)


def captured(function, args, dynamic):
    """The graph that dynamo hands to a backend."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)(*args)
    return graphs[0]


def traced(function, args):
    if isinstance(function, Fn):
        function.__class__ = OneArgument
    gm = fx.symbolic_trace(function) if isinstance(function, nn.Module) else fx.GraphModule(
        nn.Module(), fx.Tracer().trace(function))
    attributes = {}
    for node in gm.graph.find_nodes(op="get_attr"):
        attributes[node] = getattr(function, node.target)
    first = gm.graph.find_nodes(op="placeholder")[0]
    for node, value in attributes.items():
        with gm.graph.inserting_before(first):
            made = gm.graph.placeholder("L_self_parameters_%s_" % node.target)
        node.replace_all_uses_with(made)
        gm.graph.erase_node(node)
    gm.graph.lint()
    gm.recompile()
    mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)
    fakes = [mode.from_tensor(a) for a in (*attributes.values(), *args)]
    FakeTensorProp(gm, mode).propagate_dont_convert_inputs(*fakes)
    for node, value in zip(gm.graph.find_nodes(op="placeholder"), (*attributes.values(), *args)):
        node.meta["val"] = FakeTensorMode().from_tensor(value)  # as before t_
    return gm


def lift_unused(gm, module):
    """aot_export_module lifts every parameter and buffer; dynamo only those that are read."""
    mode = FakeTensorMode()
    placeholders = {node.target: node for node in gm.graph.find_nodes(op="placeholder")}
    first = next(iter(gm.graph.nodes))
    members = {f"L_self_parameters_{name}_": p for name, p in module.named_parameters()}
    members |= {f"L_self_buffers_{name}_": b for name, b in module.named_buffers()}
    if members.keys() <= placeholders.keys():
        return
    for target, value in members.items():
        with gm.graph.inserting_before(first):
            node = gm.graph.placeholder(target)
        node.meta["val"] = mode.from_tensor(value)
        if target in placeholders:
            placeholders[target].replace_all_uses_with(node)
    for target in members.keys() & placeholders.keys():
        gm.graph.erase_node(placeholders[target])
    gm.recompile()


def text_of(gm):
    text = gm.print_readable(False, include_stride=True, include_device=True)
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("# File:")]
    return re.sub(r"\n\n+", "\n", "\n".join(line.rstrip() for line in lines)).strip() + "\n"


def file_of(args):
    """An inputs' file: what requires grad and what shares memory."""
    tensors, metadata = {}, {"requires_grad": [], "strides": {}, "storages": {}}
    by_memory = {}
    for i, a in enumerate(args):
        by_memory.setdefault(a.untyped_storage().data_ptr(), []).append((f"input.{i}", a.detach()))
        if a.requires_grad:
            metadata["requires_grad"].append(f"input.{i}")
    for k, views in enumerate(by_memory.values()):
        for key, a in views:
            tensors[key] = a.contiguous().clone()
            if len(views) > 1:
                whole = torch.empty(0, dtype=a.dtype).set_(a.untyped_storage())
                tensors[f"storage.{k}"] = whole.clone()
                metadata["storages"][key] = [f"storage.{k}", a.storage_offset()]
                metadata["strides"][key] = list(a.stride())
    return save(tensors, {k: json.dumps(v) for k, v in metadata.items() if v})


class Recorder:
    """Takes the place of the functions that the source calls, and keeps their arguments."""

    def module(self, module, args, **options):
        self.function, self.args, self.options = module, args, options

    def simple(self, function, args, trace_joint):
        self.function, self.args, self.options = function, args, {"trace_joint": trace_joint, "simple": True}

    def ex(self, args, **options):
        def wrap(f):
            self.function = f if options.get("simple") else Ex(f)
            self.args, self.options = args(), options
            return f

        return wrap


def words(options):
    out = ["--trace-joint"] if options.get("trace_joint") else []
    if options.get("output_loss_index") is not None:
        out += ["--loss-index", str(options["output_loss_index"])]
    if options.get("pre_dispatch"):
        out += ["--pre-dispatch"]
    return out + (["--joint-simple"] if options.get("simple") else [])


def first_line(message):
    line = message.strip().split("\n")[0]
    return line.split(" ViewAndMutationMeta(")[0]


def attribute_case(case):
    """Non-strict export runs the module's Python, and no graph assigns an attribute; the text is the method as FX would
    write it if it could."""
    two = case["name"].endswith("_two")
    body = ['mul: "f32[3][1]cpu" = l_x_ * 2', "self.state['h'] = mul", "self.last = l_x_",
            'add: "f32[3][1]cpu" = l_x_ + mul', "return (add,)"] if two else [
        'add: "f32[3][1]cpu" = l_x_ + 1', "self.cache = add", 'mul: "f32[3][1]cpu" = add * 2', "return (mul,)"]
    return ('class GraphModule(torch.nn.Module):\n    def forward(self, l_x_: "f32[3][1]cpu"):\n        '
            + "\n        ".join(body) + "\n")


def write(folder, name, text, io=None):
    open(f"{folder}/{name}.py", "w").write(text)
    if io:
        open(f"{folder}/{name}.safetensors", "wb").write(io)


def main():
    corpus, folder = sys.argv[1:3]
    names = dict(torch=torch, nn=nn, F=F, R=R, Fn=Fn)
    cases = []
    exports = [json.load(open(path)) for path in sorted(glob.glob(f"{corpus}/aot_export/*.json"))]
    for case in exports + json.load(open(f"{corpus}/aot_errors/errors.json"))["errors"]:
        name = case["name"]
        if name in EXEMPT:
            continue
        row = {"name": name}
        if "raised" in case:
            row["refused"] = OWN_WORDS.get(name) or (first_line(case["message"]) if case["raised"] else None)
        else:
            row |= {"signature": case.get("signature"), "code": case["code"]}
        if name.startswith("ex_"):
            write(folder, name, attribute_case(case))
            row |= {"words": ["export"], "refused": case["warnings"][0]}
        elif name == "rt_shape_changed":
            write(folder, name, text_of(captured(lambda x: (x.view(3, 2) + 1,), [R(6)], False)), file_of([R(8)]))
            row["words"] = ["run"]
        elif name == "pt_memory_budget_out_of_range":
            write(folder, name, text_of(captured(lambda t: (t.sin().cos().sum(),), [R(3, rg=True)], False)))
            row["words"] = ["aot", "--memory-budget", "1.5"]
        elif name == "pt_forward_needs_tangent":
            from torch.fx.experimental.proxy_tensor import make_fx

            g = make_fx(lambda primals, tangents: [primals[0].sin() * tangents[0], primals[0].cos() * tangents[0]],
                        tracing_mode="fake")([R(3)], [R(3)])
            write(folder, name, text_of(g))
            row["words"] = ["aot", "--partitioner", "default"]
        else:
            recorder = Recorder()
            exec(case["source"], names | dict(ex=recorder.ex, aot_export_module=recorder.module,
                                              aot_export_joint_simple=recorder.simple))
            function, args, options = recorder.function, recorder.args, recorder.options
            gm = traced(function, args) if name in SYMBOLIC else captured(
                function, args, options.get("dynamic_shapes", False))
            if isinstance(function, nn.Module):
                lift_unused(gm, function)
            # Symbols have example values in PyTorch too.
            told = options.get("dynamic_shapes") or any(a.requires_grad for a in args) or len({a.untyped_storage().data_ptr() for a in args}) < len(args)
            write(folder, name, text_of(gm), file_of(args) if told else None)
            row["words"] = ["export", *words(options)]
        cases.append(row)
    cases += [archive_case(name, folder) for name in ARCHIVES]
    exempt = [{"name": name, "why": why} for name, why in EXEMPT.items()]
    json.dump({"cases": cases, "exempt": exempt}, open(f"{folder}/cases.json", "w"), indent=1)


main()

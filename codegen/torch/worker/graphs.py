"""Builds torch.fx graphs from what Partita sends.

No text of a file is executed. A target is looked up: an operator among torch.ops, any other function among those that
PyTorch declares overridable, its native functions for networks, and a few lists below; all else is refused by name. FX
writes some names into the Python text that it runs (placeholders, attributes, keyword arguments), so these are names of
our own or checked.
"""

import builtins
import functools
import importlib
import keyword
import math
import operator
import re
import types

import torch
import torch.fx
from torch.overrides import get_overridable_functions

import random_numbers
from values import Refused

# Operators that reach beyond their arguments: files, other processes, the process's own state.
UNSAFE_OPERATORS = {"from_file", "_print", "print", "set_data", "_load_external", "load_library"}
UNSAFE_LIBRARIES = {"profiler", "debugprims", "rpc", "_test", "symm_mem"}
# Makers of tensors, which PyTorch does not count as overridable.
MAKERS = (
    "arange as_strided as_tensor asarray bartlett_window blackman_window complex empty empty_like empty_permuted "
    "empty_strided eye fft.fftfreq fft.rfftfreq full full_like hamming_window hann_window kaiser_window linspace "
    "logspace normal ones ones_like polar rand rand_like randint randint_like randn randn_like randperm range "
    "scalar_tensor tensor tril_indices triu_indices zeros zeros_like"
).split()
COMPUTING = (
    "finfo iinfo is_grad_enabled _assert_async _check _check_is_size sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum "
    "_C._set_grad_enabled _C._functorch._add_batch_dim _C._functorch._remove_batch_dim "
    "_C._functorch._unwrap_for_grad _C._functorch._wrap_for_grad "
    "_functorch.predispatch._add_batch_dim _functorch.predispatch._remove_batch_dim "
    "_functorch.predispatch._vmap_increment_nesting _functorch.predispatch._vmap_decrement_nesting "
    "_functorch.predispatch.lazy_load_decompositions _functorch.vmap.lazy_load_decompositions "
    "_C._functorch._vmap_increment_nesting _C._functorch._vmap_decrement_nesting "
    "_C._functorch._grad_increment_nesting _C._functorch._grad_decrement_nesting "
    "_functorch.eager_transforms._set_tensor_requires_grad _functorch.eager_transforms._create_differentiable "
    "_functorch.eager_transforms._autograd_grad _functorch.predispatch._unwrap_for_grad "
    "_C._functorch.set_inplace_requires_grad_allowed "
    "_C._autograd._saved_tensors_hooks_disable _C._autograd._saved_tensors_hooks_enable "
    "amp.autocast_mode._enter_autocast amp.autocast_mode._exit_autocast "
    "autograd.grad_mode.set_grad_enabled"
).split()
BUILTINS = ("abs", "bool", "complex", "divmod", "float", "getattr", "int", "len", "max", "min", "pow", "round", "sum")
# Attributes that dynamo's graphs read of tensors and of torch.finfo.
ATTRIBUTES = {
    "shape", "dtype", "device", "ndim", "T", "mT", "H", "mH", "real", "imag", "grad", "data", "requires_grad", "is_cuda",
    "layout", "itemsize", "nbytes", "max", "min", "eps", "tiny", "smallest_normal", "resolution", "bits",
}  # fmt: skip
UNSAFE_METHODS = {"apply_", "map_", "map2_", "numpy", "tolist", "register_hook", "register_post_accumulate_grad_hook",
                  "share_memory_", "storage", "untyped_storage", "data_ptr", "module_load", "backward", "retain_grad",
                  "set_", "__array__", "__dlpack__", "__reduce_ex__", "__deepcopy__", "__setstate__"}  # fmt: skip
# Modules of PyTorch that register operators when they are imported.
REGISTERED_BY = {
    "quantized_decomposed": "torch.ao.quantization.fx._decomposed",
    "higher_order": "torch._higher_order_ops.triton_kernel_wrap",
}
KEPT_NAMES = {"Ellipsis": ..., "...": ..., "inf": math.inf, "nan": math.nan}


def at_path(root, path):
    """An attribute of attributes; None when there is none."""
    for part in path.split("."):
        if root is None or not part.isidentifier():
            return None
        root = getattr(root, part, None)
    return root


@functools.cache
def functions():
    """Every function that a graph may call, by the names that FX prints."""
    found = {}
    spaces = {torch: "torch", torch.functional: "torch.functional", torch.nn.functional: "torch.nn.functional",
              torch.linalg: "torch.linalg", torch.fft: "torch.fft", torch.special: "torch.special",
              torch._C._nn: "torch._C._nn", torch._C._linalg: "torch._C._linalg", torch._C._fft: "torch._C._fft",
              torch._C._special: "torch._C._special", torch._C._VariableFunctions: "torch._C._VariableFunctions",
              }  # fmt: skip
    overridable = {id(f) for fs in get_overridable_functions().values() for f in fs}
    for space, name in spaces.items():
        for attribute in dir(space):
            function = getattr(space, attribute, None)
            if callable(function) and id(function) in overridable:
                found[f"{name}.{attribute}"] = function
    for fs in get_overridable_functions().values():
        for function in fs:
            module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
            if module and name and module.startswith("torch"):
                found.setdefault(f"{module}.{name}", function)
    # Native functions without a Python wrapper, which nothing overrides: these spaces have operators only.
    for space in (torch._C._nn, torch._C._linalg, torch._C._fft, torch._C._special):
        for attribute in dir(space):
            if isinstance(function := getattr(space, attribute), types.BuiltinFunctionType):
                found[f"{spaces[space]}.{attribute}"] = function
    for attribute in dir(torch):
        if attribute.startswith("_foreach_") and isinstance(getattr(torch, attribute), types.BuiltinFunctionType):
            found[f"torch.{attribute}"] = getattr(torch, attribute)
    for name in MAKERS + COMPUTING:
        if (function := at_path(torch, name)) is not None:
            found[f"torch.{name}"] = function
    for name in operator.__all__:
        if name not in ("attrgetter", "methodcaller", "call"):  # these call what they are given
            found[f"_operator.{name}"] = found[f"operator.{name}"] = getattr(operator, name)
    for name in dir(math):
        if callable(getattr(math, name)):
            found[f"math.{name}"] = getattr(math, name)
    for name in BUILTINS:
        found[name] = found[f"builtins.{name}"] = getattr(builtins, name)
    return found


@functools.cache
def methods():
    overridable = get_overridable_functions().get(torch.Tensor, [])
    names = {f.__name__ for f in overridable if hasattr(f, "__name__")} - UNSAFE_METHODS
    return names | {"size", "stride", "dim", "numel", "item", "to", "type", "new", "cpu", "cuda", "contiguous",
                    "__round__", "requires_grad_", "detach", "detach_", "is_contiguous", "element_size", "storage_offset"}  # fmt: skip


def operator_named(name):
    """torch.ops.NAME."""
    parts = name.split(".")
    if parts[0] in UNSAFE_LIBRARIES or parts[-1] in UNSAFE_OPERATORS or (len(parts) > 1 and parts[1] in UNSAFE_OPERATORS):
        raise Refused(f"torch.ops.{name} reaches beyond its arguments")
    if parts[0] in REGISTERED_BY:
        importlib.import_module(REGISTERED_BY[parts[0]])
    if parts[0] == "prims" and len(parts) > 1 and parts[1].startswith("inductor_"):
        random_numbers.install()
    try:
        found = at_path(torch.ops, name)
    except (AttributeError, RuntimeError):
        found = None
    kinds = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator)
    if not isinstance(found, kinds):
        raise Refused(f"torch {torch.__version__} has no operator torch.ops.{name}; --python-import MODULE imports the "
                      "module that registers it")
    return found


def function_named(name):
    found = functions().get(name)
    if found is None:
        raise Refused(f"{name} is not among the functions of PyTorch that a graph may call")
    return found


def identifier(name):
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise Refused(f"{name!r} is no name of an argument")
    return name


def check_kernel(kwargs):
    """Refuses a call of a Triton kernel that PyTorch's table does not have, and what PyTorch would write into Python
    text that it runs: of a grid that is no list of numbers."""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table as table

    for key, known in (("kernel_idx", table.id_to_kernel), ("constant_args_idx", table.constant_args)):
        if kwargs.get(key) not in known:
            raise Refused(f"PyTorch's kernel_side_table has no {key} {kwargs.get(key)}; --python-import MODULE imports a "
                          "module that enters the kernel and its constants, as the repro script of the graph does")
    grid = kwargs.get("grid")
    if not isinstance(grid, list) or not all(
        isinstance(one, (tuple, list)) and all(isinstance(n, (int, torch.fx.Node)) for n in one) for one in grid
    ):
        raise Refused("the grid of a kernel is a list of tuples of numbers")
    if kwargs.get("tma_descriptor_metadata"):
        raise Refused("descriptors of tensor memory (TMA) need a GPU")


def flat(returned):
    """The values of nested lists, tuples and dictionaries, in order."""
    if isinstance(returned, dict):
        returned = list(returned.values())
    if not isinstance(returned, (list, tuple)):
        return [returned]
    return [value for item in returned for value in flat(item)]


class Builder:
    """Builds one graph, whose results are one flat tuple, and its sub graphs."""

    def __init__(self, described, memory, device):
        self.memory = memory
        self.device = device
        self.module = self.build(described, top=True)

    def build(self, described, top=False):
        root = torch.nn.Module()
        graph = torch.fx.Graph()
        attributes = {}
        for i, (name, value) in enumerate(described.get("attributes", {}).items()):
            attributes[name] = f"_tensor_constant{i}"
            root.register_buffer(attributes[name], self.placed(self.memory.value(value)))
        for i, (name, child) in enumerate(described.get("children", {}).items()):
            attributes[name] = f"sub_graph_{i}"
            root.add_module(attributes[name], self.build(child))
        nodes = {}
        for node in described["nodes"]:
            nodes[node["name"]] = self.node(graph, node, nodes, attributes)
        returned = self.argument(described["output"], nodes)
        graph.output(tuple(flat(returned)) if top else returned)
        return torch.fx.GraphModule(root, graph)

    def placed(self, value):
        return value.to(self.device) if isinstance(value, torch.Tensor) and self.device else value

    def node(self, graph, described, nodes, attributes):
        op, target = described["op"], described.get("target", "")
        args = tuple(self.argument(a, nodes) for a in described.get("args", ()))
        kwargs = {identifier(k): self.argument(a, nodes) for k, a in described.get("kwargs", {}).items()}
        if op == "placeholder":
            made = graph.placeholder(f"input_{sum(n.op == 'placeholder' for n in graph.nodes)}")
            meta = described.get("meta") or {}
            made.meta.update({"dims": meta.get("sizes"), "symbol": meta.get("sym", made.name)})
        elif op == "get_attr":
            if target not in attributes:
                raise Refused(f"the graph has no attribute {target!r}")
            made = graph.get_attr(attributes[target])
        elif op == "call_method":
            if target not in methods():
                raise Refused(f"the method {target!r} is not among those of tensors that a graph may call")
            made = graph.call_method(target, args, kwargs)
        else:
            found = operator_named(target) if op == "call_operator" else function_named(target)
            if found is getattr and not (len(args) > 1 and isinstance(args[1], str) and args[1] in ATTRIBUTES):
                raise Refused(f"{described['name']} reads an attribute that is not among those that graphs read")
            made = graph.create_node("call_function", found, args, kwargs, name=re.sub(r"\W", "_", described["name"]))
            if target.startswith("higher_order.triton_kernel_wrapper_"):
                check_kernel(kwargs)
        made.meta["partita_name"] = described["name"]
        return made

    def argument(self, described, nodes):
        if isinstance(described, list):
            return [self.argument(item, nodes) for item in described]
        if not isinstance(described, dict):
            return described
        (kind, content), = described.items()
        if kind == "node":
            return nodes[content]
        if kind == "tuple":
            return tuple(self.argument(item, nodes) for item in content)
        if kind == "slice":
            return slice(*(self.argument(part, nodes) for part in content))
        if kind == "dict":
            return {key: self.argument(item, nodes) for key, item in content}
        if kind == "device":
            return torch.device(self.device or content)
        if kind in ("float", "complex", "dtype", "layout", "memory_format"):
            return self.memory.value(described)
        if kind == "name" and content in KEPT_NAMES:
            return KEPT_NAMES[content]
        if kind == "name" and content.startswith("torch.ops."):
            return operator_named(content.removeprefix("torch.ops."))
        raise Refused(f"the argument {content!r} is no value that a graph may hold")

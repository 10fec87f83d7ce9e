#!/usr/bin/env python3
"""Writes operator cases, as core/compare/op_cases.h reads them, from PyTorch's OpInfo database.

  operator_cases.py OUT [--ops NAME ...] [--seed N] [--samples N] [--dtypes NAME ...] [--symbolic] [--in-place]
                        [--part I/N] [--own FILE]
  build/release/partita check OUT --train

Needs PyTorch, safetensors and what its test library asks for (expecttest, hypothesis). The corpus holds every second
sample; this makes all, with other values for another seed. Left out: samples that PyTorch refuses, whose results
depend on the generator, or whose traced graph does not give eager's values. stderr lists what is skipped.

--own FILE is for operators that the database does not have, and needs no test library. FILE is Python with a list
`operators` of rows: a name, the operator, its dtypes, and a function from a dtype to samples, each a tuple of arguments:

  def samples(dtype):
      yield torch.randn(3, 4, dtype=dtype, requires_grad=True), torch.rand(3, 4) < 0.4, 1, 2
  operators = [("_masked_softmax", torch.ops.aten._masked_softmax.default, (torch.float32, torch.float64), samples)]
"""
import argparse, json, os, random, runpy, signal, sys, types, warnings, zlib

import numpy
import torch
from safetensors.torch import save_file
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# LAPACK chooses the signs and phases of their results.
GAUGE_DEPENDENT = {"geqrf", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh", "linalg.qr", "linalg.svd",
                   "linalg.householder_product", "linalg.svdvals", "ormqr", "qr", "svd"}
# torch.testing's defaults, (relative, absolute).
TOLERANCE = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5),
             torch.float64: (1e-7, 1e-7), torch.complex64: (1.3e-6, 1e-5), torch.complex128: (1e-7, 1e-7)}


class Skip(Exception):
    pass


def own_storage(t):
    """The same values and strides in a storage of just the needed length."""
    if t.numel() == 0:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype)
    storage = torch.zeros(1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())), dtype=t.dtype)
    once = t
    for d, (n, s) in enumerate(zip(t.shape, t.stride())):
        if s == 0 and n > 1:
            once = once.narrow(d, 0, 1)
    torch.as_strided(storage, once.shape, t.stride()).copy_(once)
    return torch.as_strided(storage, t.shape, t.stride())


def tensors_of(values):
    return [v for v in tree_flatten(values)[0] if isinstance(v, torch.Tensor)]


def same(a, b):
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
        return True
    except Exception:
        return False


def printed(module):
    return module.print_readable(print_output=False, include_stride=True, include_device=True)


class Case:
    """One sample of an operator; `json` is its case, its tensors are put into `store`."""

    def __init__(self, op, call, sample, dtype, index, store, options):
        self.store, self.index, self.op = store, index, op
        flat, spec = tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        places = [i for i, v in enumerate(flat) if isinstance(v, torch.Tensor)]
        self.inputs = [own_storage(flat[i].detach().resolve_conj().resolve_neg()).requires_grad_(
            flat[i].requires_grad and not options.in_place) for i in places]

        def function(*tensors):
            values = list(flat)
            for i, t in zip(places, tensors):
                values[i] = t
            first, args, kwargs = tree_unflatten(values, spec)
            return tensors_of(call(first, *args, **kwargs))

        self.function = function
        self.json = {"idx": index, "dtype": str(dtype)[6:]}
        self.graphs = {"graph": make_fx(function)(*self.fresh())}
        try:
            self.graphs["pre_dispatch_graph"] = make_fx(function, pre_dispatch=True)(*self.fresh())
        except Exception:
            pass
        if printed(self.graphs.get("pre_dispatch_graph", self.graphs["graph"])) == printed(self.graphs["graph"]):
            self.graphs.pop("pre_dispatch_graph", None)
        self.json |= {"graph": printed(self.graphs["graph"]), "pre_dispatch_graph": None}
        self.write_outputs()
        if options.symbolic:
            self.write_symbolic()
        self.write_gradients()
        for name, prefix in (("graph", "const"), ("pre_dispatch_graph", "pconst")):
            if name in self.graphs:
                self.json[name] = printed(self.graphs[name])
                self.write_constants(name, self.graphs[name], prefix)
        if op.name in GAUGE_DEPENDENT:
            self.json["gauge_dependent"] = True

    def fresh(self, requires_grad=False):
        return [own_storage(t.detach()).requires_grad_(requires_grad and t.requires_grad) for t in self.inputs]

    def put(self, key, tensor, **more):
        tensor = tensor.detach()
        entry = {"key": f"c{self.index}.{key}", "shape": list(tensor.shape), "stride": list(tensor.stride()),
                 "dtype": str(tensor.dtype)[6:]}
        values = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        if values.is_complex():
            entry["stored_as"] = "view_as_real"
            values = torch.view_as_real(values).clone()
        self.store[entry["key"]] = values
        return entry | more

    def write_constants(self, name, module, prefix):
        names = {str(n.target) for n in module.graph.nodes if n.op == "get_attr"}
        entries = [self.put(f"{prefix}.{n}", getattr(module, n), name=n)
                   for n in sorted(names) if isinstance(getattr(module, n, None), torch.Tensor)]
        if entries:
            self.json[name.removesuffix("graph") + "constants"] = entries

    def write_outputs(self):
        undefined = self.op.name.startswith(("empty", "new_empty"))
        torch.manual_seed(0)
        after = self.fresh()
        outputs = self.function(*after)
        torch.manual_seed(1)
        if not outputs or any(o.layout != torch.strided for o in outputs):
            raise Skip("no strided output")
        if not undefined and not all(map(same, outputs, self.function(*self.fresh()))):
            raise Skip("random")
        self.json["inputs"] = [self.put(f"in.{i}", t, requires_grad=t.requires_grad) for i, t in enumerate(self.inputs)]
        self.json["outputs"] = []
        for k, o in enumerate(outputs):
            entry = self.put(f"out.{k}", o)
            for j, x in enumerate(after):
                if o is x:
                    entry["is_input"] = j
                elif o.numel() and o.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
                    entry |= {"aliases_input": j, "storage_offset": o.storage_offset()}
            entry |= {name: True for name, bit in (("conj_bit", o.is_conj()), ("neg_bit", o.is_neg()),
                                                   ("undefined_values", undefined)) if bit}
            self.json["outputs"].append(entry)
        changed = [self.put(f"after.{i}", x, input=i) for i, (x, t) in enumerate(zip(after, self.inputs))
                   if not same(x, t.detach()) or x.shape != t.shape or x.stride() != t.stride()]
        if changed:
            self.json["inputs_after"] = changed
        limits = [TOLERANCE.get(t.dtype, (0.0, 0.0)) for t in self.inputs + outputs]
        self.json["tolerance"] = dict(zip(("rtol", "atol"), map(max, zip(*limits))))
        for name, module in list(self.graphs.items()):
            found = tensors_of(module(*self.fresh()))
            if not undefined and not all(map(same, found, outputs)):
                if name == "graph":
                    raise Skip("the traced graph gives other values")
                del self.graphs[name]
            elif [o.stride() for o in found] != [o.stride() for o in outputs]:
                self.json[f"{name}_out_strides"] = [list(o.stride()) for o in found]

    def write_symbolic(self):
        try:
            module = make_fx(self.function, tracing_mode="symbolic")(*self.fresh())
        except Exception as reason:
            self.json |= {"symbolic_graph": None, "symbolic_error": str(reason)[:200]}
            return
        sizes = [s for n in module.graph.nodes for s in getattr(n.meta.get("val"), "shape", ())
                 if isinstance(s, torch.SymInt)]
        hints = sizes[0].node.shape_env.backed_var_to_val if sizes else {}
        self.json |= {"symbolic_graph": printed(module), "symbols": {str(s): int(v) for s, v in hints.items()},
                      "symbolic_guards": []}
        self.write_constants("symbolic_graph", module, "sconst")

    def write_gradients(self):
        self.json |= {"tangents": [], "grads": []}
        wanted = [i for i, t in enumerate(self.inputs) if t.requires_grad]
        if not wanted:
            return
        random_numbers = torch.Generator().manual_seed(self.index)

        def gradients(function, tangents=None):
            inputs = self.fresh(requires_grad=True)
            outputs = tensors_of(function(*inputs))
            of = [k for k, o in enumerate(outputs) if o.requires_grad]
            if tangents is None:
                tangents = [torch.randn(outputs[k].shape, dtype=outputs[k].dtype, generator=random_numbers) for k in of]
            if not of:
                return of, tangents, []
            return of, tangents, torch.autograd.grad([outputs[k] for k in of], [inputs[i] for i in wanted], tangents,
                                                     allow_unused=True)

        try:
            of, tangents, expected = gradients(self.function)
        except Exception as reason:
            self.json["grad_error"] = str(reason)[:200]
            return
        if all(g is None for g in expected):
            return
        self.json["differentiable"] = True
        self.json["tangents"] = [self.put(f"tan.{j}", t, output=k) for j, (k, t) in enumerate(zip(of, tangents))]
        self.json["grads"] = [{"key": None, "input": i} if g is None else self.put(f"grad.{j}", g, input=i)
                              for j, (i, g) in enumerate(zip(wanted, expected))]
        for name, module in self.graphs.items():
            try:
                found = gradients(module, tangents)[2]
                agree = [a is b is None or torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)
                         for a, b in zip(found, expected)]
                self.json[f"{name}_grad_ok"] = all(agree)
            except Exception:  # the traced forward has an operator without a formula
                self.json[f"{name}_grad_ok"] = False


def too_long(*_):
    raise Skip("over 30 seconds")


def cases_of(op, options, store):
    call = op.inplace_variant if options.in_place else op.op
    index = 0
    for dtype in (getattr(torch, name) for name in options.dtypes):
        if call is None or dtype not in op.dtypes:
            continue
        torch.manual_seed(options.seed), numpy.random.seed(options.seed), random.seed(options.seed)
        trained = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        samples = op.sample_inputs("cpu", dtype, requires_grad=trained and not options.in_place)
        for sample, _ in zip(samples, range(options.samples)):
            made = {}
            signal.alarm(30)
            try:
                yield Case(op, call, sample, dtype, index, made, options).json
                store |= made
            except Exception as reason:
                print(f"skipped {op.name} {dtype} {index}: {str(reason).splitlines()[:1]}", file=sys.stderr)
            finally:
                signal.alarm(0)
            index += 1


def of_database():
    from torch.testing._internal import common_methods_invocations as database

    lists = [database.op_db, *(getattr(database, f"foreach_{kind}_op_db")
                               for kind in ("unary", "binary", "pointwise", "reduce", "other"))]
    return [op for ops in lists for op in ops]


def of_file(path):
    """The rows of a file as what cases_of() takes of the database's."""
    def sampled(samples):
        return lambda device, dtype, requires_grad: (
            types.SimpleNamespace(input=first, args=rest, kwargs={}) for first, *rest in samples(dtype))

    return [types.SimpleNamespace(name=name, variant_test_name="", op=op, inplace_variant=None, dtypes=dtypes,
                                  supports_autograd=True, sample_inputs=sampled(samples))
            for name, op, dtypes, samples in runpy.run_path(path)["operators"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--ops", nargs="*", help="names as in the database; all when left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=24, help="of each dtype")
    parser.add_argument("--dtypes", nargs="*", help="names as torch.NAME",
                        default=["float32", "int64", "bfloat16", "complex64", "float64", "bool", "int32"])
    parser.add_argument("--symbolic", action="store_true", help="trace with symbolic sizes too")
    parser.add_argument("--in-place", action="store_true", help="the in-place variants")
    parser.add_argument("--own", metavar="FILE", help="the operators of this file, not the database's")
    parser.add_argument("--part", default="0/1", help="only the operators of part I of N")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    signal.signal(signal.SIGALRM, too_long)
    os.makedirs(options.out, exist_ok=True)
    found = of_file(options.own) if options.own else of_database()
    operators = {(op.name, op.variant_test_name): op for op in found}
    for (name, variant), op in operators.items():
        if options.ops and name not in options.ops or zlib.crc32(name.encode()) % parts != part:
            continue
        store = {}
        try:
            cases = list(cases_of(op, options, store))
        except Exception as reason:  # no samples for a dtype
            print(f"skipped {name}: {reason}", file=sys.stderr)
            continue
        if cases:
            stem = os.path.join(options.out, f"{name}.{variant or 'default'}")
            with open(stem + ".json", "w") as file:
                json.dump({"op": name, "variant": variant, "cases": cases}, file)
            save_file(store, stem + ".safetensors")
            print(f"{name} {variant}: {len(cases)} cases", flush=True)


if __name__ == "__main__":
    main()

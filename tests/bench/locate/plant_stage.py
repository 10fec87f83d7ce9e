"""Faults in the stages before inductor, of a program that begins with dynamo's graph.  Part of try_locate.py."""

from __future__ import annotations

import json

import torch

import plant_other
import try_locate as T


def net(a, b, c):
    c.mul_(0.5)
    h = torch.nn.functional.gelu(a @ b + c)
    s = torch.tanh(h).sum(1, keepdim=True)
    return (h * s).sum(), torch.sigmoid(h).t()


def inputs():
    torch.manual_seed(0)
    return [torch.randn(37, 29), torch.randn(29, 53, requires_grad=True), torch.randn(53)]


def scaled(target, factor):
    """A pass that changes the first call of target."""
    def change(graph):
        node = next((n for n in graph.nodes if n.target is target), None)
        if node is None:
            return
        with graph.inserting_after(node):
            wrong = graph.call_function(torch.ops.aten.mul.Tensor, (node, factor))
        wrong.meta.update(node.meta)
        node.replace_all_uses_with(wrong, delete_user_cb=lambda user: user is not wrong)
    return change


def swapped_gradients():
    """A partition that takes a wrong value from the forward."""
    import torch._inductor.compile_fx as fx_compiler
    original = fx_compiler.min_cut_rematerialization_partition

    def partition(*args, **kwargs):
        forward, backward = original(*args, **kwargs)
        node = next(n for n in backward.graph.nodes if n.op == "call_function")
        with backward.graph.inserting_after(node):
            wrong = backward.graph.call_function(torch.ops.aten.mul.Tensor, (node, 1.5))
        wrong.meta.update(node.meta)
        node.replace_all_uses_with(wrong, delete_user_cb=lambda user: user is not wrong)
        backward.recompile()
        return forward, backward
    fx_compiler.min_cut_rematerialization_partition = partition


# name -> what plants it, options of inductor, the graph and the stage that are to be named
CASES = {
    "none": (lambda: None, dict, None, ""),
    "pre-grad pass": (lambda: None, lambda: {"pre_grad_custom_pass": scaled(torch.tanh, 1.1)}, "stages",
                      "pre-grad passes"),
    "decomposition": (plant_other.bad_table, dict, "stages", "AOTAutograd"),
    "joint pass": (lambda: None, lambda: {"joint_custom_post_pass": scaled(torch.ops.aten.sigmoid.default, 1.1)},
                   "stages", "joint passes"),
    "partition": (swapped_gradients, dict, "stages", "partition"),
    "post-grad pass": (lambda: None, lambda: {"post_grad_custom_post_pass": plant_other.bad_pass}, "forward",
                       "post-grad passes"),
    "kernel": (lambda: T.plant_kernel("tanh"), dict, "forward", "code"),
}


def main(args) -> int:
    """How many answers are wrong."""
    wrong = 0
    for name, (plant, options, graph, stage) in CASES.items():
        for train in (True, False):
            label = f"{name}, {'training' if train else 'inference'}"
            if args.part not in label or (not train and name == "partition"):
                continue

            def work(progress):
                from locating import program, program_search
                module = T.dynamo_graph(net, inputs())
                plant()
                asked = program.Program(module, T.by_name(module, net, inputs()), [], train, options())
                return {"verdict": "", "reports": program_search.locate_program(asked, progress, False)}
            r = T.in_child(work, args.seconds)
            reports = r.get("reports", [])
            bad = next((x for x in reports if x["verdict"] != "clean"), None)
            right = bool(reports) and (bad is None) == (graph is None) and (bad is None or (bad["graph"], bad["stage"]) == (graph, stage))
            wrong += not right
            print(label, "|", "right" if right else "WRONG", T.short(bad) if bad else "clean", (bad or {}).get("stage"), (bad or {}).get("node"),
                  ((bad or {}).get("pass") or {}).get("pass"), r.get("reason", ""), flush=True)
            if args.verbose:
                print(json.dumps(r, indent=1, default=str)[:6000])
    return wrong

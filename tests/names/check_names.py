#!/usr/bin/env python3
"""What is known of an operator is in its record: outside the rooms of core/ops that are about
names, tables of operators and rewrites, source may build calls by name, but not tell operators apart by name. check_names.py FOLDER checks the repository; --self-test the checker."""
import re
import sys
from pathlib import Path

OPERATOR = re.compile(r"(aten|prims|inductor|higher_order|torchvision|_c10d_functional|quantized_decomposed)\.\w[\w.]*")
# What makes a node or runs an operator. A ViewStep is a call to be made on a base.
BUILDERS = {"call", "create", "set_op", "evaluate", "expression", "ViewStep"}
COMPARED = re.compile(
    r"\b(?:op\(\)->|op->|op\.)name\s*(?:==|!=|\.(?:starts_with|ends_with|find|compare)\()"
    r"|\bbrief\(\)\s*(?:==|!=|\.(?:starts_with|ends_with|find|compare)\()"
    r"|(?:==|!=)\s*[\w.>()-]*\b(?:op\(\)->|op->|op\.)name\b"
)
# Rooms whose subject is names: records, schemas and their overloads, what Python writes, rules of batching and of
# placements.
BY_NAME = ("core/ops/families", "core/ops/schema", "core/ops/python", "core/ops/functorch", "core/dtensor/rules")
# Tables of operators, many without a record: those that run sub graphs, and kernels whose arithmetic is counted.
TABLES = ("core/ops/facts/control.cpp", "core/ops/facts/family.cpp", "core/ops/facts/operations.cpp")
# Rewrites of single operators, as PyTorch has them.
REWRITES = (
    "core/passes/rewrites.def",
    "core/passes/channel_affine.cpp",
    "core/functionalize/effect_tokens.cpp",
    "core/functionalize/functional_rng.cpp",
)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|[\w:]+|.', re.S)


def complaints(text, python_names):
    """(line, what) for each operator name that is not built from, and each comparison of a name."""
    out = []
    calls = []  # the word before each open bracket, outermost first; braces that follow no word are ''
    word, line, code = "", 1, []
    for match in TOKEN.finditer(text):
        token = match.group()
        if token.startswith(("//", "/*")):
            code.append("\n" * token.count("\n"))
        elif token[0] == '"':
            code.append(token)
            if OPERATOR.fullmatch(token[1:-1]) and not built(calls):
                out.append((line, f"operator {token} is named, and no call is built from it"))
            word = ""
        else:
            code.append(token)
            if token in "([{":
                calls.append(word)
                word = ""
            elif token in ")]}":
                if calls:
                    calls.pop()
                word = ""
            elif re.fullmatch(r"[\w:]+", token):
                word = token
            elif not token.isspace():
                word = ""
        line += token.count("\n")
    if not python_names:
        for number, text_line in enumerate("".join(code).split("\n"), 1):
            if COMPARED.search(text_line):
                out.append((number, "an operator's name is compared"))
    return out


def built(calls):
    """Is the innermost call one that builds, seen through Op::torch(...) and parentheses?"""
    for word in reversed(calls):
        if word in ("Op::torch", ""):
            continue
        return word.split("::")[-1] in BUILDERS
    return False


def checked_files(root):
    for room in ("core", "codegen", "app", "views"):
        for path in sorted((root / room).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix in (".h", ".cpp", ".def") and not name.startswith(BY_NAME) and name not in TABLES + REWRITES:
                yield path


def self_test():
    refused = [
        'if (node.is(Op::torch("aten.copy_.default"))) return;',
        'static const Op* const view = Op::torch("aten.view.default");',
        'if (name == "aten.transpose.int") {',
        'return name.starts_with("aten.stride.");',
        'constexpr Row rows[] = {{"aten.mm.default", prepare_matmul}};',
        'constexpr std::array cheap = {\n    "aten.sum",\n    "aten.mean",\n};',
        'if (node.op()->brief() == "cat") return true;',
        "if (op.name == h.name) return &h;",
        'if (node->op()->name.starts_with("torch.sym_")) return;',
        'build.call("aten.add.Tensor", {x}), other("aten.mul.Tensor");',
    ]
    allowed = [
        'build.call("aten.add.Tensor", {slot, gradient});',
        'node->set_op(Op::torch("aten.permute.default"));',
        'graph.create(\n    Op::torch("aten.full.default"), {Arg::list(sizes)}, {});',
        'evaluate(Op::torch(wide ? "aten.mul.Tensor" : "aten.add.Tensor"), {x}, {});',
        '// name == "aten.add.Tensor"',
        'text("no record for aten.add.Tensor; see `partita ops`");',
        'std::string name = "aten." + base;',
    ]
    wrong = [s for s in refused if not complaints(s, False)] + [s for s in allowed if complaints(s, False)]
    for snippet in wrong:
        print("judged wrongly: " + snippet)
    return 1 if wrong else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root, found = Path(sys.argv[1]), 0
    for path in checked_files(root):
        # In files that are read or printed, names are words of Python.
        python_names = any(path.is_relative_to(root / folder) for folder in ("core/load", "core/ir"))
        for line, what in complaints(path.read_text(), python_names):
            print(f"{path.relative_to(root)}:{line}: {what}; give OpRecord (core/ops/record/record.h) a field for it")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

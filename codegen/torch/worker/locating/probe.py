"""Puts a watcher before and behind each kernel call of inductor's wrapper.

The wrapper is PyTorch's own generated text of this very compilation, never
text of a user's file.  Only its functions and classes are executed again:
the kernels that were loaded with the module are used as they are.

Relied on: the comment "[Provenance debug handles] NAME:N" in front of each
kernel call (torch 2.9 and later); without it every call whose function looks
like a kernel is watched, numbered in order.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Callable, Optional

HANDLES = re.compile(r"\[Provenance debug handles\]\s*(.+)$")
KERNEL_NAMES = ("cpp_fused", "triton_", "extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "cpp_")
REBUILT = ("runner", "call", "recursively_apply_fns")


class Watcher:
    """What a probe tells to; the default does nothing."""

    def before(self, key: str, names: dict[str, Any]) -> None:
        """Called before the kernel; names are the wrapper's live local names."""

    def after(self, key: str, names: dict[str, Any]) -> None:
        """Called behind the kernel."""

    def touched(self, names: list[str], values: dict[str, Any]) -> None:
        """Called behind a call that no kernel of inductor's stands for (a random
        operator in place); names are the local names among its arguments."""

    def unpacked(self, name: str, value: Any) -> None:
        """Called when one of several results of a kernel gets its own name."""


def keys_by_line(text: str) -> dict[int, str]:
    """Line number -> key of the kernel that the comment in that line announces."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = HANDLES.search(line)
        if match:
            found[number] = match.group(1).split(",")[0].strip()
    return found


def _function_name(statement: ast.stmt) -> Optional[str]:
    value = getattr(statement, "value", None)
    if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
        return None
    return ast.unparse(value.func)


class Instrument:
    """Rewrites the bodies of the wrapper's functions."""

    def __init__(self, text: str, unpacked: set[str]):
        self.text = text
        self.keys = sorted(keys_by_line(text).items())
        self.unpacked = unpacked
        self.found: list[str] = []
        self.guessed = not self.keys

    def code(self) -> Any:
        """The instrumented definitions, compiled."""
        tree = ast.parse(self.text)
        kept: list[ast.stmt] = []
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self._enter(node)
                kept.append(node)
            elif isinstance(node, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id in REBUILT for t in node.targets):
                kept.append(node)
        tree.body = kept
        ast.fix_missing_locations(tree)
        return compile(tree, "<wrapper with probes>", "exec")

    def _enter(self, node: ast.AST) -> None:
        """Instruments every function within a definition."""
        for child in ast.walk(node):
            if isinstance(child, ast.FunctionDef) and child.name not in ("get_args", "benchmark_compiled_module"):
                child.body = self._body(child.body)

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            for part in ("body", "orelse", "finalbody"):
                inner = getattr(statement, part, None)
                if isinstance(inner, list) and inner and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                    setattr(statement, part, self._body(inner))
            key = self._key(statement)
            if key is not None:
                self.found.append(key)
                out += [_call("_partita_before", key), statement, _call("_partita_after", key)]
                continue
            out.append(statement)
            touched = self._touches(statement)
            if touched:
                out += ast.parse(f"_partita_touched({touched!r}, locals())").body
            name = self._unpacks(statement)
            if name is not None:
                out += ast.parse(f"_partita_unpacked({name!r}, {name})").body
        return out

    def _key(self, statement: ast.stmt) -> Optional[str]:
        """The kernel that this statement calls.  A comment belongs to the
        first statement behind it that calls something, other than an
        allocation or a check."""
        function = _function_name(statement)
        if function is None or function.startswith(("assert_", "empty_strided", "reinterpret_tensor", "del ")):
            return None
        if self.guessed:
            if function.startswith(KERNEL_NAMES) or function.endswith(".run"):
                return f"{function}:{len(self.found) + 1}"
            return None
        if self.keys and self.keys[0][0] < statement.lineno:
            key = self.keys[0][1]
            while self.keys and self.keys[0][0] < statement.lineno:
                key = self.keys.pop(0)[1]
            return key
        return None

    def _touches(self, statement: ast.stmt) -> list[str]:
        """The names among the arguments of a call that looks like a kernel's but is not announced as one."""
        function = _function_name(statement)
        if self.guessed or function is None or not function.startswith(KERNEL_NAMES):
            return []
        return sorted({n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)
                       and n.id not in ("torch", "aten", "extern_kernels", "inductor_ops", "device")})

    def _unpacks(self, statement: ast.stmt) -> Optional[str]:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) and target.id in self.unpacked else None


def _call(function: str, key: str) -> ast.stmt:
    return ast.parse(f"{function}({key!r}, locals())").body[0]


def instrumented(text: str, module: Any, unpacked: set[str], watcher: Watcher,
                 allocate: Optional[Callable] = None) -> tuple[Callable, list[str]]:
    """The wrapper's call function with probes, and the keys of the kernels in
    the order of the text.  allocate stands in for empty_strided_cpu."""
    instrument = Instrument(text, unpacked)
    code = instrument.code()
    space = dict(vars(module))
    space.update(_partita_before=watcher.before, _partita_after=watcher.after, _partita_unpacked=watcher.unpacked,
                 _partita_touched=watcher.touched)
    if allocate is not None and "empty_strided_cpu" in space:
        space["empty_strided_cpu"] = allocate
    exec(code, space)  # PyTorch's wrapper of this compilation; see the head of this file
    return space["call"], instrument.found

"""The source of a kernel specialised to an operator.

The primitives of `slots` become functions on a flat buffer of 8-byte words:

    header | spare slot | slot 0 | slot 1 | …        a slot: [link] field field …

(or, after the header and the spare slot, as the kernel itself lays out its memory).

The generated functions call the operator's functions by the names that the caller passes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from .layout import Layout
from .leaf_text import address, cast, clear, item, load, stores
from .rewrite import Buffers, Expressions, Plain, Primitives, syntax_of
from .row_text import holds_text, lift_text, lower_text
from .slots import HEADER

__all__ = ["constants", "kernel_text", "primitives_text"]

#: The text of primitives that `kernel_text` inlines: numba compiles faster with fewer calls.
_WRITTEN_OUT = {
    "get": "header_word({0}, {1})",
    "put": "set_header_word({0}, {1}, {2})",
    "drop": "pass",
    "item": "word({0}, {1})",
    "set_item": "set_word({0}, {1}, {2})",
    "set_half": "store_half({0} + 4 * ({1}), {2})",
    "number": "column_f({0} + 8 * ({1}))",
    "set_number": "output_f({0}, {1}, {2})",
    "root": "root_of({0})",
    "lanes": "lanes_at({0} + 8 * ({1}))",
    "set_lanes": "set_lanes_at({0} + 8 * ({1}), {2})",
    "lanes_by": "lanes_apart({0} + 8 * ({1}), {2})",
    "set_lanes_by": "set_lanes_apart({0} + 8 * ({1}), {2}, {3})",
    "min": "min_of({0}, {1})",
    "max": "max_of({0}, {1})",
    "move_words": "move_bytes({0} + 8 * ({1}), {0} + 8 * ({2}), 8 * ({3}))",
}


def primitives_text(
    layout: Layout, names: dict[tuple[int, str], str], *, link: bool = False, own: bool = False
) -> str:
    """Write the primitives of `slots` for an operator, whose functions are `names[leaf, role]` and
    `names[answer, "lower"]`.

    A kernel that lays out its memory itself (`own`) numbers a slot by the word at which it starts,
    and its spare slot comes right after the header.
    """
    stride = layout.words + link
    if own:
        place = "def slot(m, i): return m + 8 * i"
        spare = HEADER
    else:
        place = f"def slot(m, i): return m + {8 * (HEADER + stride + link)} + {8 * stride} * i"
        spare = -1
    out = [
        place,
        f"def spare(m): return slot(m, {spare})",
        "def get(m, i): return header_word(m, i)",
        "def put(m, i, value): set_header_word(m, i, value)",
        "def link(m, i): return load_i(slot(m, i) - 8)",
        "def set_link(m, i, value): store_i(slot(m, i) - 8, value)",
        "def item(array, i): return word(array, i)",
        "def set_item(array, i, value): set_word(array, i, value)",
        "def copy(m, dst, src):\n    copy_words(slot(m, dst), slot(m, src))",
        f"def load(m, dst, p, i):\n    copy_words(slot(m, dst), p + {8 * layout.words} * i)",
        f"def store(m, src, p, i):\n    copy_words(p + {8 * layout.words} * i, slot(m, src))",
        _copy_words(layout),
        _alike(layout),
    ]
    for role in ("combine", "inverse"):
        if role == "combine" or layout.operator.inverse is not None:
            out.append(_two_into_one(layout, names, role))
    out += [
        f"def put_{n}(d, p):\n    " + "\n    ".join(stores(leaf, "d", "p"))
        for n, leaf in enumerate(layout.leaves)
        if not leaf.vector
    ]
    out += [
        f"def as_{n}(p): return {cast(leaf)}"
        for n, leaf in enumerate(layout.leaves)
        if not leaf.vector
    ]
    out.append(_clear_slot(layout))
    out += lift_text(layout, names)
    out.append(lower_text(layout.shown, names))
    if layout.operator.rule:
        out.append(holds_text(layout, names))
    made = [f"@linked\n{text}" for text in out]
    if not layout.vectors:
        first = "src" if own else f"{HEADER + stride + link} + {stride} * src"
        made += [f"@inline\n{text}" for text in _values(layout, names, first)]
        value = "p[{}]" if len(layout.leaves) > 1 else "p"
        made.append(f"@linked\n{lower_text(layout.shown, names, value)}")
    return "\n\n".join(made) + "\n"


@cache
def kernel_text(
    functions: tuple[Callable[..., Any], ...],
    entries: tuple[str, ...],
    inline: tuple[str, ...] = (),
    brief: tuple[str, ...] = (),
) -> str:
    """Write the kernel's own functions.  A function that both Python and another function of the
    kernel call gets two names, so that numba compiles it for Python only if Python calls it.  Those
    `entries` that are `brief` keep the interpreter's lock.

    The text is cached: to rewrite a large kernel takes 0.2 s, and the next operator needs the same
    text.
    """
    trees = {f.__name__: syntax_of(f) for f in functions}
    for tree in trees.values():
        Expressions(tree, trees).visit(tree)
    within = _rename_calls(trees, set(entries))
    out = []
    for name, tree in trees.items():
        Buffers().visit(tree)
        Plain(trees.keys() | set(within.values())).visit(tree)
        Primitives(_WRITTEN_OUT).visit(tree)
        mark = "@inline" if name in inline else "@linked"
        called = "@brief" if name in brief else "@entry"
        if name in within:
            given = ", ".join(a.arg for a in tree.args.args)
            tree.name = within[name]
            out.append(f"{called}\ndef {name}({given}):\n    return {tree.name}({given})")
        elif name in entries:
            mark = called
        out.append(f"{mark}\n{ast.unparse(tree)}")
    return "\n\n".join(out) + "\n"


def _rename_calls(trees: dict[str, ast.FunctionDef], entries: set[str]) -> dict[str, str]:
    """Rename the entries that a kernel's functions call, and return the new names."""
    names = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if name in entries:
                    names[name] = node.func.id = f"{name}_within"
    return names


def constants(functions: Iterable[Callable[..., Any]], **fixed: int) -> str:
    """Define the named integers that functions use; those in `fixed` have its values."""
    found: dict[str, int] = {}
    for function in functions:
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                found[name] = fixed.get(name, value)
    return "".join(f"{name} = {value}\n" for name, value in sorted(found.items()))


def _copy_words(layout: Layout) -> str:
    head = "def copy_words(d, s):\n    "
    if layout.words <= 16:
        return head + "\n    ".join(
            f"store_i({address('d', j)}, load_i({address('s', j)}))" for j in range(layout.words)
        )
    return head + (
        f"for j in range({layout.words}):\n        store_i(d + 8 * j, load_i(s + 8 * j))"
    )


def _alike(layout: Layout) -> str:
    lines = ["def alike(m, a, b):", "    p = slot(m, a)", "    q = slot(m, b)"]
    lines += [f"    for j in range({layout.words}):"]
    lines += ["        if load_i(p + 8 * j) != load_i(q + 8 * j):", "            return False"]
    return "\n".join([*lines, "    return True"])


def _two_into_one(layout: Layout, names: dict[tuple[int, str], str], role: str) -> str:
    """Write combine or inverse.  A vector's `out` is never one of its arguments: where the slots
    are the same, the function writes into the spare slot, which is then copied."""
    lines = [f"def {role}(m, dst, left, right):"]
    lines += ["    d = slot(m, dst)", "    a = slot(m, left)", "    b = slot(m, right)"]
    if layout.vectors:
        lines += ["    t = d", "    if dst == left or dst == right:", "        d = spare(m)"]
    for n, leaf in enumerate(layout.leaves):
        call = f"{names[n, role]}({{}}{load(leaf, 'a')}, {load(leaf, 'b')})"
        if leaf.vector:
            lines.append(f"    {call.format(load(leaf, 'd') + ', ')}")
        else:
            lines.append(f"    put_{n}(d, {call.format('')})")
    if layout.vectors:
        lines += ["    if d != t:", "        copy_words(t, d)"]
    return "\n".join(lines)


def _values(layout: Layout, names: dict[tuple[int, str], str], first: str) -> list[str]:
    """Write partial, gathered, set_partial and combined.  The value of one leaf is its partial, and
    the value of several leaves is a tuple of their partials.  `first` is the number of the word
    with which slot `src` begins."""
    leaves = list(enumerate(layout.leaves))
    loads = [(load(leaf, "a"), item(leaf, first)) for _, leaf in leaves]
    loaded, gathered = loads[0]
    if len(leaves) == 1:
        stored = ["put_0(d, p)"]
        made = f"as_0({names[0, 'combine']}(a, b))"
    else:
        loaded, gathered = (f"({', '.join(each)})" for each in zip(*loads, strict=True))
        stored = [f"put_{n}(d, p[{n}])" for n, _ in leaves]
        each = [f"as_{n}({names[n, 'combine']}(a[{n}], b[{n}]))" for n, _ in leaves]
        made = f"({', '.join(each)})"
    return [
        f"def partial(m, src):\n    a = slot(m, src)\n    return {loaded}",
        f"def gathered(m, src): return {gathered}",
        "\n    ".join(["def set_partial(m, dst, p):", "d = slot(m, dst)", *stored]),
        f"def combined(a, b): return {made}",
    ]


def _clear_slot(layout: Layout) -> str:
    lines = ["def clear(m, dst):", "    d = slot(m, dst)"]
    for leaf in layout.leaves:
        lines += clear(leaf, "    ")
    return "\n".join(lines)

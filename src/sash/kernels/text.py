"""The source of a kernel specialised to an operator.

The words of `slots` become functions on a flat buffer of 8-byte words:

    header | spare slot | slot 0 | slot 1 | …        a slot: [link] field field …

(or, after header and spare slot, as the kernel itself has it).

An input column is two words in a table of addresses (its data, its validity bytes or 0), and
so is an output.  The functions call the operator's own by the names given for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..operators.contract import Operator
from .layout import Answer, Layout, Leaf
from .slots import HEADER

__all__ = ["constants", "kernel_text", "words_text"]

_LOAD = {
    "i": "load_i({})",
    "u": "load_u({})",
    "f": "load_f({})",
    "b": "load_i({}) != 0",
}
_STORE = {
    "i": "store_i({}, int({}))",
    "u": "store_u({}, {})",
    "f": "store_f({}, float({}))",
    "b": "store_i({}, int({}))",
}
_COLUMN = {
    "int64": "column_i({} + 8 * i)",
    "timestamp": "column_i({} + 8 * i)",
    "float64": "column_f({} + 8 * i)",
    "bool": "column_byte({} + i) != 0",
}
_OUTPUT = {
    "int64": "output_i({} + 8 * i, int({}))",
    "timestamp": "output_i({} + 8 * i, int({}))",
    "float64": "output_f({} + 8 * i, float({}))",
    "bool": "output_byte({} + i, int({}))",
}


def words_text(
    layout: Layout, names: dict[tuple[int, str], str], *, link: bool = False, own: bool = False
) -> str:
    """The words of `slots` for an operator; `names[leaf, role]` are its functions.

    A kernel that lays out its memory itself (`own`) says where a slot is, in words, with the
    spare slot right after the header.
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
        "def word(m, at): return load_i(m + 8 * at)",
        "def set_word(m, at, value): store_i(m + 8 * at, value)",
        "def get(m, field): return load_h(m + 8 * field)",
        "def put(m, field, value): store_h(m + 8 * field, value)",
        "def link(m, i): return load_i(slot(m, i) - 8)",
        "def set_link(m, i, value): store_i(slot(m, i) - 8, value)",
        "def item(array, i): return load_i(array + 8 * i)",
        "def set_item(array, i, value): store_i(array + 8 * i, value)",
        "def drop(m, dst): pass",
        "def copy(m, dst, src):\n    copy_words(slot(m, dst), slot(m, src))",
        _copy_words(layout),
    ]
    for role in ("combine", "inverse"):
        if role == "combine" or layout.operator.inverse is not None:
            out.append(_two_into_one(layout, names, role))
    out += [
        f"def put_{n}(d, p):\n    " + "\n    ".join(_stores(leaf, "d", "p"))
        for n, leaf in enumerate(layout.leaves)
        if not leaf.vector
    ]
    out.append(_clear(layout))
    out.append(_lift(layout, names))
    out.append(_lower(layout, names))
    return "\n\n".join(f"@inner\n{text}" for text in out) + "\n"


def kernel_text(functions: Iterable[Callable[..., Any]], entries: Iterable[str]) -> str:
    """The kernel's own functions, as they stand in their file."""
    called = set(entries)
    out = []
    for function in functions:
        mark = "@entry" if function.__name__ in called else "@inner"
        out.append(mark + "\n" + inspect.getsource(function))
    return "\n\n".join(out)


def constants(functions: Iterable[Callable[..., Any]], **fixed: int) -> str:
    """The named integers that the kernel's functions use; `fixed` ones have the value given."""
    found: dict[str, int] = {}
    for function in functions:
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                found[name] = fixed.get(name, value)
    return "".join(f"{name} = {value}\n" for name, value in sorted(found.items()))


def _address(base: str, word: int) -> str:
    return f"{base} + {8 * word}" if word else base


def _load(leaf: Leaf, base: str) -> str:
    """An expression for a leaf's partial in the slot at `base`."""
    if leaf.vector:
        return f"view_{leaf.kinds}({_address(base, leaf.offset)}, {leaf.vector})"
    fields = [_LOAD[k].format(_address(base, leaf.offset + j)) for j, k in enumerate(leaf.kinds)]
    return fields[0] if leaf.operator.shape == "scalar" else f"({', '.join(fields)},)"


def _stores(leaf: Leaf, base: str, partial: str) -> list[str]:
    """Statements that store a scalar or tuple partial into the slot at `base`."""
    scalar = leaf.operator.shape == "scalar"
    return [
        _STORE[k].format(_address(base, leaf.offset + j), partial if scalar else f"{partial}[{j}]")
        for j, k in enumerate(leaf.kinds)
    ]


def _copy_words(layout: Layout) -> str:
    head = "def copy_words(d, s):\n    "
    if layout.words <= 16:
        return head + "\n    ".join(
            f"store_i({_address('d', j)}, load_i({_address('s', j)}))" for j in range(layout.words)
        )
    return head + (
        f"for j in range({layout.words}):\n        store_i(d + 8 * j, load_i(s + 8 * j))"
    )


def _two_into_one(layout: Layout, names: dict[tuple[int, str], str], role: str) -> str:
    """combine or inverse.  A vector's `out` is never one of its arguments: where the slots
    are the same, it is made in the spare slot and copied."""
    lines = [f"def {role}(m, dst, left, right):"]
    lines += ["    d = slot(m, dst)", "    a = slot(m, left)", "    b = slot(m, right)"]
    vectors = any(leaf.vector for leaf in layout.leaves)
    if vectors:
        lines += ["    t = d", "    if dst == left or dst == right:", "        d = spare(m)"]
    for n, leaf in enumerate(layout.leaves):
        call = f"{names[n, role]}({{}}{_load(leaf, 'a')}, {_load(leaf, 'b')})"
        if leaf.vector:
            lines.append(f"    {call.format(_load(leaf, 'd') + ', ')}")
        else:
            lines.append(f"    put_{n}(d, {call.format('')})")
    if vectors:
        lines += ["    if d != t:", "        copy_words(t, d)"]
    return "\n".join(lines)


def _clear_leaf(leaf: Leaf, indent: str) -> list[str]:
    if leaf.vector:
        store, values = _STORE[leaf.kinds], leaf.operator.identity
        base = _address("d", leaf.offset)
        if not values.any():
            zero = {"i": "0", "u": "np.uint64(0)", "f": "0.0"}[leaf.kinds]
            store = store.format(f"{base} + 8 * j", zero)
            return [f"{indent}for j in range({leaf.vector}):", f"{indent}    {store}"]
        return [
            indent + store.format(_address("d", leaf.offset + j), _literal(v, leaf.kinds))
            for j, v in enumerate(values)
        ]
    identity = leaf.operator.identity
    values = [identity] if leaf.operator.shape == "scalar" else list(identity)
    return [
        indent + _STORE[k].format(_address("d", leaf.offset + j), _literal(v, k))
        for j, (k, v) in enumerate(zip(leaf.kinds, values, strict=True))
    ]


def _literal(value: Any, kind: str) -> str:
    if kind == "f":
        value = float(value)
        if value != value or value in (float("inf"), float("-inf")):
            return f"float('{value}')" if value == value else "np.nan"
        return repr(value)
    return f"np.uint64({int(value)})" if kind == "u" else repr(int(value))


def _clear(layout: Layout) -> str:
    lines = ["def clear(m, dst):", "    d = slot(m, dst)"]
    for leaf in layout.leaves:
        lines += _clear_leaf(leaf, "    ")
    return "\n".join(lines)


def _lift(layout: Layout, names: dict[tuple[int, str], str]) -> str:
    lines = ["def lift(m, dst, columns, i):", "    d = slot(m, dst)"]
    for c, type_ in enumerate(layout.types):
        lines.append(f"    c{c} = load_table(columns + {16 * c})")
        lines.append(f"    v{c} = load_table(columns + {16 * c + 8})")
        lines.append(f"    n{c} = v{c} != 0 and column_byte(v{c} + i) == 0")
        lines.append(f"    x{c} = {_COLUMN[type_].format(f'c{c}')}")
    for n, leaf in enumerate(layout.leaves):
        skips = list(zip(leaf.columns, leaf.operator.skips, strict=True))
        nulls = [f"n{c}" for c, skip in skips if skip]
        indent = "    "
        if nulls:
            lines.append(f"    if {' or '.join(nulls)}:")
            lines += _clear_leaf(leaf, "        ")
            lines.append("    else:")
            indent = "        "
        if leaf.vector:
            lines += _clear_leaf(leaf, indent)
        lines += _lift_calls(leaf, names[n, "lift"], n, [], indent)
    return "\n".join(lines)


def _lift_calls(leaf: Leaf, lift: str, n: int, args: list[str], indent: str) -> list[str]:
    """The call of lift, once for each choice of which kept columns are null."""
    if len(args) == len(leaf.columns):
        if leaf.vector:
            return [f"{indent}{lift}({_load(leaf, 'd')}, {', '.join(args)})"]
        return [f"{indent}put_{n}(d, {lift}({', '.join(args)}))"]
    column = leaf.columns[len(args)]
    plain = _lift_calls
    if leaf.operator.skips[len(args)]:
        return plain(leaf, lift, n, [*args, f"x{column}"], indent)
    deeper = indent + "    "
    return [
        f"{indent}if n{column}:",
        *plain(leaf, lift, n, [*args, "None"], deeper),
        f"{indent}else:",
        *plain(leaf, lift, n, [*args, f"x{column}"], deeper),
    ]


def _lower(layout: Layout, names: dict[tuple[int, str], str]) -> str:
    """Answers into output columns, or into a list where their types are not known."""
    lines = ["def lower(m, src, outputs, i):", "    a = slot(m, src)"]
    calls = []
    for n, leaf in enumerate(layout.leaves):
        partial = _load(leaf, "a")
        if leaf.operator.lower:
            calls.append(f"{names[n, 'lower']}({partial})")
        else:
            calls.append(f"{partial}.copy()" if leaf.vector else partial)
    if not layout.answers:
        lines.append(f"    outputs[i] = {_nest(layout.operator, calls)}")
        return "\n".join(lines)
    at = 0
    for n, (leaf, answer) in enumerate(zip(layout.leaves, layout.answers, strict=True)):
        if answer.type.startswith("vector"):
            lines += [
                f"    o = load_table(outputs + {16 * at}) + {8 * leaf.vector} * i",
                f"    for j in range({leaf.vector}):",
                f"        output_i(o + 8 * j, load_i(a + {8 * leaf.offset} + 8 * j))",
            ]
        else:
            lines += _lower_columns(n, answer, calls[n], at)
        at += len(answer.columns())
    return "\n".join(lines)


def _lower_columns(n: int, answer: Answer, call: str, at: int) -> list[str]:
    """One leaf's answer into its output columns, of which `at` is the first."""
    columns = answer.columns()
    lines, indent = [f"    r{n} = {call}"], "    "

    def mark(indent: str, value: int) -> list[str]:
        words = range(at, at + len(columns))
        return [
            f"{indent}output_byte(load_table(outputs + {16 * w + 8}) + i, {value})" for w in words
        ]

    if columns[0].nullable:
        lines += [f"    if r{n} is None:", *mark("        ", 0), "    else:"]
        indent = "        "
        lines += mark(indent, 1)
    lines.append(f"{indent}s{n} = some(r{n})")
    for k, column in enumerate(columns):
        value = f"s{n}[{k}]" if answer.fields else f"s{n}"
        lines.append(
            indent + _OUTPUT[column.type].format(f"load_table(outputs + {16 * (at + k)})", value)
        )
    return lines


def _nest(operator: Operator, calls: list[str]) -> str:
    if not operator.parts:
        return calls.pop(0)
    return "(" + "".join(_nest(p.operator, calls) + ", " for p in operator.parts) + ")"

"""The source of a kernel specialised to an operator.

The words of `slots` become functions on a flat buffer of 8-byte words:

    header | spare slot | slot 0 | slot 1 | …        a slot: [link] field field …

(or, after header and spare slot, as the kernel itself has it).

An input column is two words in a table of addresses (its data, its validity bytes or 0), and
so is an output.  The functions call the operator's own by the names given for them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from ..operators.contract import Operator
from .layout import RULE, Answer, Layout, Leaf, lowerings
from .rewrite import Expressions, Plain, Words, syntax_of
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


#: Words that are written out in a kernel's functions: for each call that numba need not compile
#: there is less to wait for.
_WORDS = {
    "get": "load_h({0} + 8 * ({1}))",
    "put": "store_h({0} + 8 * ({1}), {2})",
    "word": "load_i({0} + 8 * ({1}))",
    "set_word": "store_i({0} + 8 * ({1}), {2})",
    "move_words": "move_bytes({0} + 8 * ({1}), {0} + 8 * ({2}), 8 * ({3}))",
}


def words_text(
    layout: Layout, names: dict[tuple[int, str], str], *, link: bool = False, own: bool = False
) -> str:
    """The words of `slots` for an operator; `names[leaf, role]` are its functions, and
    `names[answer, "lower"]`.

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
        f"def load(m, dst, p, i):\n    copy_words(slot(m, dst), p + {8 * layout.words} * i)",
        f"def store(m, src, p, i):\n    copy_words(p + {8 * layout.words} * i, slot(m, src))",
        _copy_words(layout),
        _alike(layout),
    ]
    for role in ("combine", "inverse"):
        if role == "combine" or layout.operator.inverse is not None:
            out.append(_two_into_one(layout, names, role))
    out += [
        f"def put_{n}(d, p):\n    " + "\n    ".join(_stores(leaf, "d", "p"))
        for n, leaf in enumerate(layout.leaves)
        if not leaf.vector
    ]
    out += [
        f"def as_{n}(p): return {_cast(leaf)}"
        for n, leaf in enumerate(layout.leaves)
        if not leaf.vector
    ]
    out.append(_clear(layout))
    out += _lift(layout, names)
    out.append(_lower(layout.shown, names))
    if layout.operator.rule:
        out.append(_holds(layout, names))
    made = [f"@linked\n{text}" for text in out]
    if not layout.vectors:
        made += [f"@inline\n{text}" for text in _values(layout, names)]
    return "\n\n".join(made) + "\n"


@cache
def kernel_text(
    functions: tuple[Callable[..., Any], ...],
    entries: tuple[str, ...],
    inline: tuple[str, ...] = (),
) -> str:
    """The kernel's own functions, as they stand in their file.  Those that both Python and others
    of them call have two names, so that one is compiled for Python only if Python calls it.

    It is kept: a large kernel takes 0.2 s to rewrite, and its next operator needs the same text.
    """
    trees = {f.__name__: syntax_of(f) for f in functions}
    for tree in trees.values():
        Expressions(tree, trees).visit(tree)
    within = _rename_calls(trees, set(entries))
    out = []
    for name, tree in trees.items():
        Plain(trees.keys() | set(within.values())).visit(tree)
        Words(_WORDS).visit(tree)
        mark = "@inline" if name in inline else "@linked"
        if name in within:
            given = ", ".join(a.arg for a in tree.args.args)
            tree.name = within[name]
            out.append(f"@entry\ndef {name}({given}):\n    return {tree.name}({given})")
        elif name in entries:
            mark = "@entry"
        out.append(f"{mark}\n{ast.unparse(tree)}")
    return "\n\n".join(out) + "\n"


def _rename_calls(trees: dict[str, ast.FunctionDef], entries: set[str]) -> dict[str, str]:
    """Give the entries that a kernel's functions call another name there; returns these names."""
    names = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if name in entries:
                    names[name] = node.func.id = f"{name}_within"
    return names


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


def _alike(layout: Layout) -> str:
    lines = ["def alike(m, a, b):", "    p = slot(m, a)", "    q = slot(m, b)"]
    lines += [f"    for j in range({layout.words}):"]
    lines += ["        if load_i(p + 8 * j) != load_i(q + 8 * j):", "            return False"]
    return "\n".join([*lines, "    return True"])


def _two_into_one(layout: Layout, names: dict[tuple[int, str], str], role: str) -> str:
    """combine or inverse.  A vector's `out` is never one of its arguments: where the slots
    are the same, it is made in the spare slot and copied."""
    lines = [f"def {role}(m, dst, left, right):"]
    lines += ["    d = slot(m, dst)", "    a = slot(m, left)", "    b = slot(m, right)"]
    if layout.vectors:
        lines += ["    t = d", "    if dst == left or dst == right:", "        d = spare(m)"]
    for n, leaf in enumerate(layout.leaves):
        call = f"{names[n, role]}({{}}{_load(leaf, 'a')}, {_load(leaf, 'b')})"
        if leaf.vector:
            lines.append(f"    {call.format(_load(leaf, 'd') + ', ')}")
        else:
            lines.append(f"    put_{n}(d, {call.format('')})")
    if layout.vectors:
        lines += ["    if d != t:", "        copy_words(t, d)"]
    return "\n".join(lines)


def _cast(leaf: Leaf) -> str:
    """A partial with its fields in the types they are stored in."""
    casts = {"i": "int({})", "u": "{}", "f": "float({})", "b": "{} != 0"}
    if leaf.operator.shape == "scalar":
        return casts[leaf.kinds].format("p")
    return "(" + "".join(casts[k].format(f"p[{j}]") + ", " for j, k in enumerate(leaf.kinds)) + ")"


def _values(layout: Layout, names: dict[tuple[int, str], str]) -> list[str]:
    """partial, set_partial and combined.  The partial of several leaves is a tuple of theirs; of
    one leaf, it is that leaf's."""
    leaves = list(enumerate(layout.leaves))
    if len(leaves) == 1:
        loaded, stored = _load(leaves[0][1], "a"), ["put_0(d, p)"]
        made = f"as_0({names[0, 'combine']}(a, b))"
    else:
        loaded = f"({', '.join(_load(leaf, 'a') for _, leaf in leaves)})"
        stored = [f"put_{n}(d, p[{n}])" for n, _ in leaves]
        each = [f"as_{n}({names[n, 'combine']}(a[{n}], b[{n}]))" for n, _ in leaves]
        made = f"({', '.join(each)})"
    return [
        f"def partial(m, src):\n    a = slot(m, src)\n    return {loaded}",
        "\n    ".join(["def set_partial(m, dst, p):", "d = slot(m, dst)", *stored]),
        f"def combined(a, b): return {made}",
    ]


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


def _lift(layout: Layout, names: dict[tuple[int, str], str]) -> list[str]:
    """lift, and fold_rows, which keeps the partial of the rows so far in registers: a row of max
    and mean takes 3.3 ns through slots, and 0.85 like this."""
    table, row = [], []
    for c, type_ in enumerate(layout.types):
        table.append(f"c{c} = load_table(columns + {16 * c})")
        table.append(f"v{c} = load_table(columns + {16 * c + 8})")
        row.append(f"n{c} = v{c} != 0 and column_byte(v{c} + i) == 0")
        row.append(f"x{c} = {_COLUMN[type_].format(f'c{c}')}")
    out = []
    lift = ["def lift(m, dst, columns, i):", "d = slot(m, dst)", *table, *row]
    for n, leaf in enumerate(layout.leaves):
        cells = _cells(leaf)
        to = f"{_load(leaf, 'd')}, " if leaf.vector else ""
        out.append(_lift_leaf(n, leaf, names[n, "lift"], cells))
        if leaf.vector:
            lift += _clear_leaf(leaf, "")
            lift.append(f"row_{n}({to}{cells})")
        else:
            lift.append(f"put_{n}(d, row_{n}({cells}))")
    fold = ["def fold_rows(m, dst, new, columns, first, last):"]
    if layout.vectors:
        fold += ["lift(m, dst, columns, first)", "for i in range(first + 1, last):"]
        fold += ["    lift(m, new, columns, i)", "    combine(m, dst, dst, new)"]
    else:
        leaves = [(n, _cells(leaf)) for n, leaf in enumerate(layout.leaves)]
        fold += ["d = slot(m, dst)", "i = first", *table, *row]
        fold += [f"p{n} = row_{n}({cells})" for n, cells in leaves]
        fold += ["for i in range(first + 1, last):", *(f"    {line}" for line in row)]
        for n, cells in leaves:
            fold.append(f"    p{n} = as_{n}({names[n, 'combine']}(p{n}, row_{n}({cells})))")
        fold += [f"put_{n}(d, p{n})" for n, _ in leaves]
    return [*out, "\n    ".join(lift), "\n    ".join(fold)]


def _cells(leaf: Leaf) -> str:
    """What a leaf reads of a row."""
    return ", ".join(f"n{c}, x{c}" for c in dict.fromkeys(leaf.columns))


def _lift_leaf(n: int, leaf: Leaf, lift: str, cells: str) -> str:
    """A function from cells, each a value and whether it is null, to a leaf's partial, or into
    the place of a vector, which is empty before."""
    skipped = zip(leaf.columns, leaf.operator.skips, strict=True)
    nulls = [f"n{c}" for c, skip in skipped if skip]
    lines = [f"def row_{n}({'out, ' if leaf.vector else ''}{cells}):"]
    if nulls:
        lines.append(f"    if {' or '.join(nulls)}:")
        lines.append(f"        return {'' if leaf.vector else _identity(n, leaf)}".rstrip())
    return "\n".join([*lines, *_lift_calls(leaf, lift, n, [], "    ")])


def _lift_calls(leaf: Leaf, lift: str, n: int, args: list[str], indent: str) -> list[str]:
    """The call of lift, once for each choice of which kept columns are null."""
    if len(args) == len(leaf.columns):
        if leaf.vector:
            return [f"{indent}{lift}(out, {', '.join(args)})"]
        return [f"{indent}return as_{n}({lift}({', '.join(args)}))"]
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


def _identity(n: int, leaf: Leaf) -> str:
    """An expression for the identity of a scalar or tuple partial."""
    identity = leaf.operator.identity
    if leaf.operator.shape == "scalar":
        return f"as_{n}({_literal(identity, leaf.kinds)})"
    fields = [_literal(v, k) for v, k in zip(identity, leaf.kinds, strict=True)]
    return f"as_{n}(({', '.join(fields)},))"


def _lowered(layout: Layout, names: dict[tuple[int, str], str], base: str) -> list[str]:
    """Expressions for the answers of the slot at `base`."""
    made = []
    for k, (op, n) in enumerate(lowerings(layout.operator)):
        leaf = layout.leaves[n]
        partial = _load(leaf, base)
        if op.lower:
            made.append(f"{names[k, 'lower']}({partial})")
        else:
            made.append(f"{partial}.copy()" if leaf.vector else partial)
    return made


def _holds(layout: Layout, names: dict[tuple[int, str], str]) -> str:
    """The rule on the answers of the last part of two slots."""
    hidden = layout.operator.parts[-1].operator
    last = len(lowerings(hidden))
    total, old = (_nest(hidden, _lowered(layout, names, base)[-last:]) for base in "ab")
    return (
        "def holds(m, total, old):\n    a = slot(m, total)\n    b = slot(m, old)\n"
        f"    return bool({names[RULE]}({total}, {old}))"
    )


def _lower(layout: Layout, names: dict[tuple[int, str], str]) -> str:
    """Answers into output columns, or into a list where their types are not known."""
    lines = ["def lower(m, src, outputs, i):", "    a = slot(m, src)"]
    calls = _lowered(layout, names, "a")
    if not layout.answers:
        lines.append(f"    outputs[i] = {_nest(layout.operator, calls)}")
        return "\n".join(lines)
    at = 0
    lowered = [layout.leaves[n] for _, n in lowerings(layout.operator)]
    for k, (leaf, answer) in enumerate(zip(lowered, layout.answers, strict=True)):
        if answer.type.startswith("vector"):
            lines += [
                f"    o = load_table(outputs + {16 * at}) + {8 * leaf.vector} * i",
                f"    for j in range({leaf.vector}):",
                f"        output_i(o + 8 * j, load_i(a + {8 * leaf.offset} + 8 * j))",
            ]
        else:
            lines += _lower_columns(k, answer, calls[k], at)
        at += len(answer.columns())
    return "\n".join(lines)


def _lower_columns(n: int, answer: Answer, call: str, at: int) -> list[str]:
    """One answer into its output columns, of which `at` is the first."""
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

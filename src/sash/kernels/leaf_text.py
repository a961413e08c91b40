"""Writes the expressions and statements that load, store and clear one leaf's share of a slot."""

from __future__ import annotations

from typing import Any

from .layout import Leaf

__all__ = ["address", "cast", "clear", "identity", "item", "literal", "load", "stores"]

_LOAD = {
    "i": "load_i({})",
    "u": "load_u({})",
    "f": "load_f({})",
    "b": "load_i({}) != 0",
}
_ITEM = {
    "i": "at_i(m, {})",
    "u": "at_u(m, {})",
    "f": "at_f(m, {})",
    "b": "at_i(m, {}) != 0",
}
_STORE = {
    "i": "store_i({}, int({}))",
    "u": "store_u({}, {})",
    "f": "store_f({}, float({}))",
    "b": "store_i({}, int({}))",
}


def address(base: str, word: int) -> str:
    """An expression for the address of a word after `base`."""
    return f"{base} + {8 * word}" if word else base


def load(leaf: Leaf, base: str) -> str:
    """An expression for a leaf's partial in the slot at `base`."""
    if leaf.vector:
        return f"view_{leaf.kinds}({address(base, leaf.offset)}, {leaf.vector})"
    fields = [_LOAD[k].format(address(base, leaf.offset + j)) for j, k in enumerate(leaf.kinds)]
    return fields[0] if leaf.operator.shape == "scalar" else f"({', '.join(fields)},)"


def item(leaf: Leaf, first: str) -> str:
    """An expression for a leaf's partial in the slot that begins with word `first` of the memory;
    not for vectors."""
    fields = [_ITEM[k].format(f"{first} + {leaf.offset + j}") for j, k in enumerate(leaf.kinds)]
    return fields[0] if leaf.operator.shape == "scalar" else f"({', '.join(fields)},)"


def stores(leaf: Leaf, base: str, partial: str) -> list[str]:
    """Statements that store a scalar or tuple partial into the slot at `base`."""
    scalar = leaf.operator.shape == "scalar"
    return [
        _STORE[k].format(address(base, leaf.offset + j), partial if scalar else f"{partial}[{j}]")
        for j, k in enumerate(leaf.kinds)
    ]


def cast(leaf: Leaf) -> str:
    """An expression that casts the fields of the partial `p` to the types in which a slot stores
    them."""
    casts = {"i": "int({})", "u": "{}", "f": "float({})", "b": "{} != 0"}
    if leaf.operator.shape == "scalar":
        return casts[leaf.kinds].format("p")
    return "(" + "".join(casts[k].format(f"p[{j}]") + ", " for j, k in enumerate(leaf.kinds)) + ")"


def clear(leaf: Leaf, indent: str) -> list[str]:
    """Statements that store the identity into the slot at `d`."""
    if leaf.vector:
        store, values = _STORE[leaf.kinds], leaf.operator.identity
        base = address("d", leaf.offset)
        if not values.any():
            zero = {"i": "0", "u": "np.uint64(0)", "f": "0.0"}[leaf.kinds]
            store = store.format(f"{base} + 8 * j", zero)
            return [f"{indent}for j in range({leaf.vector}):", f"{indent}    {store}"]
        return [
            indent + store.format(address("d", leaf.offset + j), literal(v, leaf.kinds))
            for j, v in enumerate(values)
        ]
    identity = leaf.operator.identity
    values = [identity] if leaf.operator.shape == "scalar" else list(identity)
    return [
        indent + _STORE[k].format(address("d", leaf.offset + j), literal(v, k))
        for j, (k, v) in enumerate(zip(leaf.kinds, values, strict=True))
    ]


def literal(value: Any, kind: str) -> str:
    """A number as source text, in its type."""
    if kind == "f":
        value = float(value)
        if value != value or value in (float("inf"), float("-inf")):
            return f"float('{value}')" if value == value else "np.nan"
        return repr(value)
    return f"np.uint64({int(value)})" if kind == "u" else repr(int(value))


def identity(n: int, leaf: Leaf) -> str:
    """An expression for the identity of a scalar or tuple partial."""
    identity = leaf.operator.identity
    if leaf.operator.shape == "scalar":
        return f"as_{n}({literal(identity, leaf.kinds)})"
    fields = [literal(v, k) for v, k in zip(identity, leaf.kinds, strict=True)]
    return f"as_{n}(({', '.join(fields)},))"

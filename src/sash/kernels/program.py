"""Specialises a kernel to an operator, in one of three modes.

compiled   numba compiles generated text, for raw memory      scalar, tuple and vector partials
checked    Python runs the same text, with bounds checks      the same partials, if SASH_JIT=0
objects    Python runs the rewritten kernel, on lists         any partial, any value
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..operators.contract import Operator
from . import cache as kept
from . import objects
from .chains import chains
from .equal import share
from .fingerprint import code_text
from .freeze import Frozen, thaw
from .layout import (
    RULE,
    Answer,
    Layout,
    Leaf,
    Refused,
    layout_by_numba,
    layout_by_trial,
    leaf_operators,
    lowerings,
)
from .outside import level_outside
from .text import constants, kernel_text, primitives_text

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["InterpretedWarning", "Kernel", "Program", "interpret", "interpreted", "specialise"]


class InterpretedWarning(UserWarning):
    """An operator that numba does not compile runs in plain Python instead."""


@dataclass(frozen=True)
class Kernel:
    """An algorithm as plain functions over the primitives of `slots`.

    Python calls the functions in `entries`.  Other threads run Python code while a compiled entry
    runs, but not while a `brief` one runs.  Brief entries are as short as one insertion: to release
    the interpreter's lock and take it again costs 50 ns, and more if another thread takes the lock
    meanwhile.

    A memory has `scratch` slots first, then `each` slots for every element of its capacity; `link`
    adds an integer to each slot, and `beside` adds one slot, and one for each binary digit of the
    capacity.  With `own`, the kernel lays out its memory itself, the capacity is the number of
    words, and the header field `top` says how many of them are in use.

    A kernel has a `ring` if the slots after the scratch slots are a ring of elements and nothing
    else, so that the ring can change its capacity in small steps (`moving`).  `ring` takes two
    headers and the number of operations between them, which is less than the number of elements.
    It returns spans of positions that contain all elements which those operations may have changed,
    apart from new elements.

    `constants` replace the values of named integers in the functions' files.  The compiler must
    inline the functions named in `inline` into each of their callers.  For vectors, the functions
    in `for_vectors` replace the functions of the same names, which keep partials in registers: a
    register cannot hold a vector.
    """

    name: str
    functions: tuple[Callable[..., Any], ...]
    entries: tuple[str, ...]
    brief: tuple[str, ...] = ()
    scratch: int = 0
    each: int = 1
    beside: bool = False
    link: bool = False
    own: bool = False
    top: int = 0
    ring: Callable[[list[int], list[int], int], list[tuple[int, int]]] | None = None
    inline: tuple[str, ...] = ()
    constants: tuple[tuple[str, int], ...] = ()
    for_vectors: tuple[Callable[..., Any], ...] = ()

    def functions_for(self, *, vectors: bool) -> tuple[Callable[..., Any], ...]:
        """The functions for vector partials, or for other partials."""
        others = {f.__name__: f for f in self.for_vectors} if vectors else {}
        return tuple(others.get(f.__name__, f) for f in self.functions)


@dataclass(frozen=True)
class Program:
    """A kernel's functions for one operator; `layout` is None where partials are objects."""

    mode: str  # compiled, checked or objects
    operator: Operator
    run: Any
    layout: Layout | None


_warned: set[Any] = set()
_one_at_a_time = threading.RLock()


def jit_enabled() -> bool:
    """True if numba compiles kernels: unless the environment variable SASH_JIT is 0."""
    return os.environ.get("SASH_JIT", "1") != "0"


def interpret(operator: Operator) -> Operator:
    """Mark an operator so that its kernels run in the checked mode, where its functions can count
    their calls.  Call this before the operator's first kernel is made.  The trial run of its
    functions happens here, so that it does not count.  Returns the operator."""
    operator.__dict__["_interpreted"] = True
    if operator.compile and operator.shape != "object":
        _layout_of_checked(operator)
    return operator


def interpreted(operator: Operator) -> bool:
    """True if `interpret` has marked the operator: its calls are counted, so a kernel must make all
    of them."""
    return bool(operator.__dict__.get("_interpreted"))


def specialise(kernel: Kernel, operator: Operator) -> Program:
    """Specialise a kernel to an operator, compiled if possible.  The operator keeps the program, so
    that Python frees both together."""
    with _one_at_a_time:
        mine: dict[str, Program] = operator.__dict__.setdefault("_programs", {})
        if kernel.name not in mine:
            mine[kernel.name] = _specialise(kernel, operator)
        return mine[kernel.name]


def _specialise(kernel: Kernel, operator: Operator) -> Program:
    if not operator.types or not operator.compile or operator.shape == "object":
        return _on_objects(kernel, operator)
    try:
        if not jit_enabled() or interpreted(operator):
            return _checked(kernel, operator)
        return _compiled(kernel, operator)
    except Refused as error:
        if (operator.name, str(error)) not in _warned:
            _warned.add((operator.name, str(error)))
            warnings.warn(
                f"{operator.name} runs in plain Python, because numba refused its {error}",
                InterpretedWarning,
                stacklevel=level_outside(),
            )
        return _on_objects(kernel, operator)


def _on_objects(kernel: Kernel, operator: Operator) -> Program:
    """Specialise a kernel to Python lists."""
    functions = chains(own=kernel.own) + kernel.functions
    made = objects.bind(kernel.name, functions, dict(kernel.constants), operator)
    run = SimpleNamespace(**{entry: made[entry] for entry in kernel.entries})
    return Program("objects", operator, run, None)


def _checked(kernel: Kernel, operator: Operator) -> Program:
    """Specialise a kernel to checked memory: Python runs the generated text."""
    from . import checked

    layout = _layout_of_checked(operator)
    functions = _functions(operator)
    names = {key: f"{key[1]}_{key[0]}" for key in functions}
    text = _constants_and_code(kernel, layout, names)
    given = {n: getattr(checked, n) for n in checked.__all__} | {
        "entry": checked.inner,
        "brief": checked.inner,
        "np": np,
    }
    given |= {names[key]: function.call for key, function in functions.items()}
    module = kept.in_memory(f"{kernel.name} {operator.name}", text, given)
    return Program("checked", operator, module, layout)


def _layout_of_checked(operator: Operator) -> Layout:
    """The operator's layout, derived from a trial run of its functions."""
    if "_tried" not in operator.__dict__:
        operator.__dict__["_tried"] = layout_by_trial(operator)
    tried: Layout = operator.__dict__["_tried"]
    return tried


def _compiled(kernel: Kernel, operator: Operator) -> Program:
    """Specialise a kernel to raw memory: numba compiles the generated text, or the cache has it."""
    frozen = Frozen()
    names = {
        key: frozen.add(f.call, f"{key[1]}_{key[0]}", arguments=f.arguments, bounds=f.bounds)
        for key, f in _functions(operator).items()
    }
    layout = _layout(operator, frozen, names)

    def text() -> str:
        head = _HEAD.format(kernel=kernel.name, operator=operator.name)
        return "\n".join([head, *frozen.lines, "", _constants_and_code(kernel, layout, names)])

    if frozen.held:  # only this process can use the text
        return Program("compiled", operator, _in_memory(kernel.name, text(), frozen.held), layout)
    # The digest covers the ingredients of the text and not the text: to write the text takes a
    # quarter of the time that it takes to load a kernel.
    primitives = _primitives(kernel, layout, names)
    content = (frozen.digest(), primitives, _kernel_digest(kernel), _compiler())
    digest = hashlib.sha256("\n".join(content).encode()).hexdigest()[:24]
    name = f"{kernel.name}_{digest}"
    module = kept.load(name, text) or _in_memory(name, text(), {})
    return Program("compiled", operator, module, layout)


def _in_memory(name: str, text: str, held: dict[str, Any]) -> ModuleType:
    """Make a module from generated text, compiled for this process only."""
    text = text.replace("sash.kernels.cache import", "sash.kernels.native import", 1)
    module = kept.in_memory(name, text, held)
    share(vars(module))
    return module


_HEAD = '''"""{kernel} for {operator}: generated, and safe to delete."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from numba import njit

from sash.kernels.cache import brief, entry
from sash.kernels.freeze import thaw
from sash.kernels.native import *
'''


def _layout(operator: Operator, frozen: Frozen, names: dict[tuple[int, str], str]) -> Layout:
    """The operator's layout, which numba infers now or has inferred in an earlier process."""
    if "_layout" in operator.__dict__:
        known: Layout = operator.__dict__["_layout"]
        return known
    declared = repr(
        [
            [(_identity_text(o), o.skips, c) for o, c, _ in leaf_operators(operator)],
            [(o.returns, o.fields, n) for o, n in lowerings(operator)],
        ]
    )
    content = f"{frozen.digest()} {operator.types} {declared} {_sources()}"
    key = hashlib.sha256(content.encode()).hexdigest()[:24]
    name = f"operator_{key}"
    facts = None if frozen.held else kept.read_facts(name)
    if facts is None:
        from .native import bounded, inner

        module = kept.in_memory(
            name,
            "from importlib import import_module\nimport numpy as np\n" + "\n".join(frozen.lines),
            {"inner": inner, "bounded": bounded, "thaw": thaw, **frozen.held},
        )
        layout = layout_by_numba(operator, {k: getattr(module, n) for k, n in names.items()})
        if not frozen.held:
            kept.write_facts(name, _to_facts(layout))
    else:
        layout = _from_facts(operator, facts)
    operator.__dict__["_layout"] = layout
    return layout


def _identity_text(operator: Operator) -> str:
    """An identity with its types: 0 is not 0.0."""
    identity = operator.identity
    if isinstance(identity, np.ndarray):
        return f"{identity.dtype} {identity.tobytes()!r}"
    return repr(identity)


def _compiler() -> str:
    """The versions of all code that turns a kernel and an operator into machine code."""
    from .linked import LINKED

    return f"{_sources()} {'linked' if LINKED else 'not linked'}"


@cache
def _sources() -> str:
    """A digest of all sources in this folder.  A list of only those files that affect a kernel's
    code could easily miss one, and to read all files takes half a millisecond."""
    from importlib.resources import files

    return digest_of(files(__package__))


def digest_of(folder: Traversable) -> str:
    """A digest of the sources in a folder, which may be in a zip file."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(f"{file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _kernel_digest(kernel: Kernel) -> str:
    """A digest of a kernel's functions and options."""
    declared = (
        *(kernel.entries, kernel.brief, kernel.inline, kernel.constants),
        constants(kernel.functions + kernel.for_vectors),
    )
    digest = hashlib.sha256(repr(declared).encode())
    for function in kernel.functions + kernel.for_vectors:
        digest.update(f"{function.__name__} {code_text(function.__code__)}\n".encode())
    return digest.hexdigest()


class _Function(NamedTuple):
    """One of an operator's functions, the number of its arguments, and whether compiled code checks
    its indices."""

    call: Callable[..., Any]
    arguments: int
    bounds: bool


def _functions(operator: Operator) -> dict[tuple[int, str], _Function]:
    """The functions of all leaves by (leaf, role), of all answers by (answer, "lower"), and the
    rule."""
    made = {}
    for n, (op, _, _) in enumerate(leaf_operators(operator)):
        out, bounds = int(op.shape == "vector"), _bounds(op)
        made[n, "lift"] = _Function(op.lift, len(op.skips) + out, bounds)
        made[n, "combine"] = _Function(op.combine, 2 + out, bounds)
        if op.inverse is not None:
            made[n, "inverse"] = _Function(op.inverse, 2 + out, bounds)
    for k, (op, _) in enumerate(lowerings(operator)):
        if op.lower is not None:
            made[k, "lower"] = _Function(op.lower, 1, _bounds(op))
    if operator.rule is not None:
        made[RULE] = _Function(operator.rule, 2, True)
    return made


def _bounds(operator: Operator) -> bool:
    """True if compiled code checks indices in an operator's functions: unless they are sash's
    own."""
    return not (operator.ready or operator.unchecked)


def _primitives(kernel: Kernel, layout: Layout, names: dict[tuple[int, str], str]) -> str:
    return primitives_text(layout, names, link=kernel.link, own=kernel.own)


def _constants_and_code(kernel: Kernel, layout: Layout, names: dict[tuple[int, str], str]) -> str:
    joined = chains(own=kernel.own, vectors=layout.vectors)
    functions = kernel.functions_for(vectors=layout.vectors)
    return "\n\n".join(
        [
            constants(
                functions + joined,
                **{"WIDTH": layout.words, "OBJECTS": 0, **dict(kernel.constants)},
            ),
            _primitives(kernel, layout, names),
            kernel_text(joined, ()),
            kernel_text(functions, kernel.entries, kernel.inline, kernel.brief),
        ]
    )


def _to_facts(layout: Layout) -> Any:
    def facts(answer: Answer) -> Any:
        return [answer.type, answer.nullable, [[n, facts(a)] for n, a in answer.fields]]

    return [[leaf.kinds for leaf in layout.leaves], [facts(a) for a in layout.answers]]


def _from_facts(operator: Operator, facts: Any) -> Layout:
    def made(fact: Any) -> Answer:
        return Answer(fact[0], fact[1], tuple((n, made(a)) for n, a in fact[2]))

    leaves: list[Leaf] = []
    offset = 0
    for (op, columns, where), kinds in zip(leaf_operators(operator), facts[0], strict=True):
        vector = len(op.identity) if op.shape == "vector" else 0
        leaves.append(Leaf(op, columns, kinds, vector, offset, where))
        offset += leaves[-1].words
    return Layout(operator, tuple(leaves), tuple(map(made, facts[1])))

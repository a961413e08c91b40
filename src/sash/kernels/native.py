"""Loads and stores on raw addresses, for compiled kernels.

A kernel's memory is one buffer, which the kernel gets as an int64, its address: array arguments
would cost reference counts in every function that passes them on.  Nothing here checks bounds; the
tests run the same kernels on `checked` memory, where a wrong address is an error.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import lanes_apart, lanes_at, root_of, set_lanes_apart, set_lanes_at
from .linked import inline, linked

__all__ = [
    "as_int",
    "below",
    "bounded",
    "column_byte",
    "column_f",
    "column_i",
    "header_word",
    "inline",
    "inner",
    "lanes_apart",
    "lanes_at",
    "linked",
    "load_f",
    "load_i",
    "load_table",
    "load_u",
    "max_of",
    "min_of",
    "move_bytes",
    "output_byte",
    "output_f",
    "output_i",
    "root_of",
    "set_header_word",
    "set_lanes_apart",
    "set_lanes_at",
    "set_word",
    "short",
    "some",
    "store_f",
    "store_i",
    "store_u",
    "view_f",
    "view_i",
    "view_u",
    "word",
    "zeros",
]


# Only other compiled functions call an operator's functions, so these need no wrappers for Python
# and C.  But they may raise errors that contain values, and for these numba needs its own pipeline,
# so `linked` cannot compile them.
def _once(**options):
    """A decorator that compiles each function only once."""
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    mark = f"sash {options}"

    def compiled(function):
        kept = function.__dict__
        if mark not in kept:
            kept[mark] = njit(**options)(function)
        return kept[mark]

    return compiled


inner = _once()
#: Like `inner`, with checked indices, for functions that users write: an index beyond an array (a
#: vector partial, for instance) raises instead of touching other memory.
bounded = _once(boundscheck=True)

# For functions that Python calls, in modules whose machine code no file keeps; `cache` has the
# decorators of the same names for the others.
entry, brief = njit(nogil=True), njit

_I64, _I8, _F64 = ir.IntType(64), ir.IntType(8), ir.DoubleType()


def _tagged(builder, instruction, place):
    """Tag a load or store with the part of memory that it touches.  Accesses to different parts
    never overlap, so the compiler can keep a header field in a register while a kernel writes slots
    and columns."""
    module = builder.module
    root = module.add_metadata(["sash"])
    part = module.add_metadata([place, root, ir.Constant(_I64, 0)])
    tag = module.add_metadata([part, part, ir.Constant(_I64, 0)])
    instruction.set_metadata("tbaa", tag)
    return instruction


def _access(kind, llvm, align, place):
    """Make a load and a store of one type at an address in one part of memory."""

    @intrinsic
    def load(typing, address):
        def emit(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], llvm.as_pointer())
            return _tagged(builder, builder.load(pointer, align=align), place)

        return kind(types.int64), emit

    @intrinsic
    def store(typing, address, value):
        def emit(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], llvm.as_pointer())
            _tagged(builder, builder.store(args[1], pointer, align=align), place)
            return context.get_dummy_value()

        return types.void(types.int64, kind), emit

    return load, store


def _words(place):
    """Make a load and a store of the word with number `i` after an address, in one part of memory.
    They compute the word's address themselves, as numba takes milliseconds for each sum that it
    finds in a function."""

    def pointer(builder, args):
        at = builder.add(args[0], builder.mul(args[1], ir.Constant(_I64, 8)))
        return builder.inttoptr(at, _I64.as_pointer())

    @intrinsic
    def load(typing, start, i):
        def emit(context, builder, signature, args):
            return _tagged(builder, builder.load(pointer(builder, args), align=8), place)

        return types.int64(types.int64, types.int64), emit

    @intrinsic
    def store(typing, start, i, value):
        def emit(context, builder, signature, args):
            at = pointer(builder, args)
            _tagged(builder, builder.store(args[2], at, align=8), place)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), emit

    return load, store


header_word, set_header_word = _words("header")
word, set_word = _words("slots")
load_i, store_i = _access(types.int64, _I64, 8, "slots")
load_u, store_u = _access(types.uint64, _I64, 8, "slots")
load_f, store_f = _access(types.float64, _F64, 8, "slots")
load_table, _ = _access(types.int64, _I64, 8, "tables")
column_i, output_i = _access(types.int64, _I64, 8, "columns")
column_f, output_f = _access(types.float64, _F64, 8, "columns")
column_byte, output_byte = _access(types.uint8, _I8, 1, "columns")


@intrinsic
def below(typing, start, i, bound):
    """Count, without a branch, how many of eight neighbouring words are less than a bound."""
    eight, index = ir.VectorType(_I64, 8), ir.IntType(32)

    def emit(context, builder, signature, args):
        at = builder.add(args[0], builder.mul(args[1], ir.Constant(_I64, 8)))
        words = builder.load(builder.inttoptr(at, eight.as_pointer()), align=8)
        none = ir.Constant(eight, ir.Undefined)
        first = builder.insert_element(none, args[2], ir.Constant(index, 0))
        bounds = builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(index, 8), [0] * 8))
        less = builder.icmp_signed("<", _tagged(builder, words, "slots"), bounds)
        return builder.zext(builder.ctpop(builder.bitcast(less, _I8)), _I64)

    return types.int64(types.int64, types.int64, types.int64), emit


@intrinsic
def zeros(typing, i):
    """Count the zero bits below the lowest bit that is one."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), emit


@intrinsic
def move_bytes(typing, to, start, count):
    """memmove: for runs as short as a node's, loops cost more to compile and to enter."""

    def emit(context, builder, signature, args):
        pointer = _I8.as_pointer()
        to, start = (builder.inttoptr(a, pointer) for a in args[:2])
        cgutils.raw_memmove(builder, to, start, args[2], 1, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), emit


@intrinsic
def short(typing, i):
    """Return the index of a loop of few turns unchanged.  As the compiler does not see that, it
    neither unrolls the loop nor turns it into vector code, which costs more than it saves."""

    def emit(context, builder, signature, args):
        same = ir.FunctionType(_I64, [_I64])
        return builder.asm(same, "", "=r,0", args, side_effect=False)

    return types.int64(types.int64), emit


@intrinsic
def as_int(typing, i):
    """Return an integer unchanged, as int64: numba gives a constant a type of its own."""
    return types.int64(types.int64), lambda context, builder, signature, args: args[0]


def _one_of_two(sign):
    """Make `min` or `max` of two integers; those of numba go through tuples."""

    @intrinsic
    def chosen(typing, a, b):
        def emit(context, builder, signature, args):
            return builder.select(builder.icmp_signed(sign, *args), *args)

        return types.int64(types.int64, types.int64), emit

    return chosen


min_of, max_of = _one_of_two("<="), _one_of_two(">=")


@intrinsic
def some(typing, value):
    """Return an optional value, which the caller knows not to be None, as its plain type."""
    if not isinstance(value, types.Optional):
        return value(value), lambda context, builder, signature, args: args[0]

    def emit(context, builder, signature, args):
        return context.cast(builder, args[0], value, value.type)

    return value.type(value), emit


@intrinsic
def _pointer(typing, address):
    def emit(context, builder, signature, args):
        return builder.inttoptr(args[0], _I8.as_pointer())

    return types.voidptr(types.int64), emit


def _view(dtype):
    @njit
    def view(address, length):
        return carray(_pointer(address), (length,), dtype)

    return view


view_i, view_u, view_f = _view(types.int64), _view(types.uint64), _view(types.float64)

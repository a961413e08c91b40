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
    "at_f",
    "at_i",
    "at_u",
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
    "set_ranks",
    "set_word",
    "short",
    "some",
    "store_f",
    "store_half",
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

_I64, _I32, _I8, _F64 = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType()
_EIGHT = ir.VectorType(_I64, 8)
_TESTED = 16  # words that `set_ranks` tests at a time


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


def _indexed(kind, llvm, place):
    """Make a load and a store of the item with number `i` after an address, in one part of memory.
    They compute the item's address themselves, as numba takes milliseconds for each sum that it
    finds in a function, and so that LLVM sees that the items of a loop are neighbours: then it
    works on several at once."""
    align = 1 if llvm is _I8 else 8

    def pointer(builder, args):
        return builder.gep(builder.inttoptr(args[0], llvm.as_pointer()), [args[1]])

    @intrinsic
    def load(typing, start, i):
        def emit(context, builder, signature, args):
            return _tagged(builder, builder.load(pointer(builder, args), align=align), place)

        return kind(types.int64, types.int64), emit

    @intrinsic
    def store(typing, start, i, value):
        def emit(context, builder, signature, args):
            _tagged(builder, builder.store(args[2], pointer(builder, args), align=align), place)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, kind), emit

    return load, store


header_word, set_header_word = _indexed(types.int64, _I64, "header")
word, set_word = _indexed(types.int64, _I64, "slots")
at_i, at_u, at_f = (
    _indexed(kind, llvm, "slots")[0]
    for kind, llvm in ((types.int64, _I64), (types.uint64, _I64), (types.float64, _F64))
)
load_i, store_i = _access(types.int64, _I64, 8, "slots")
load_u, store_u = _access(types.uint64, _I64, 8, "slots")
load_f, store_f = _access(types.float64, _F64, 8, "slots")
_, store_half = _access(types.int32, _I32, 4, "slots")
load_table, _ = _access(types.int64, _I64, 8, "tables")
column_i, _ = _access(types.int64, _I64, 8, "columns")
column_f, _ = _access(types.float64, _F64, 8, "columns")
column_byte, _ = _access(types.uint8, _I8, 1, "columns")
_, output_i = _indexed(types.int64, _I64, "columns")
_, output_f = _indexed(types.float64, _F64, "columns")
_, output_byte = _indexed(types.uint8, _I8, "columns")


def _eight_of(builder, value):
    """A word eight times, as a vector."""
    none, index = ir.Constant(_EIGHT, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(none, value, ir.Constant(index, 0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(index, 8), [0] * 8))


@intrinsic
def below(typing, start, i, bound):
    """Count, without a branch, how many of eight neighbouring words are less than a bound."""

    def emit(context, builder, signature, args):
        at = builder.add(args[0], builder.mul(args[1], ir.Constant(_I64, 8)))
        words = builder.load(builder.inttoptr(at, _EIGHT.as_pointer()), align=8)
        bounds = _eight_of(builder, args[2])
        less = builder.icmp_signed("<", _tagged(builder, words, "slots"), bounds)
        return builder.zext(builder.ctpop(builder.bitcast(less, _I8)), _I64)

    return types.int64(types.int64, types.int64, types.int64), emit


@intrinsic
def set_ranks(typing, into, at, words, i, less, low):
    """For each of eight neighbouring words w from number `i` on: count on from `low` to the first
    of the words, which are in order, that is at least w - less.

    A loop takes the eight at once, and tests 16 words for all of them; it mostly ends after the
    first turn.  It adds up the signs of differences: most processors take longer to compare.
    """

    def emit(context, builder, signature, args):
        into, at, words, first, less, low = args

        def place(start, i):
            return builder.gep(builder.inttoptr(start, _I64.as_pointer()), [i])

        here = builder.bitcast(place(words, first), _EIGHT.as_pointer())
        own = _tagged(builder, builder.load(here, align=8), "slots")
        bounds, start = builder.sub(own, _eight_of(builder, less)), _eight_of(builder, low)
        before, again = builder.block, builder.append_basic_block("ranks")
        done = builder.append_basic_block("ranked")
        builder.branch(again)
        builder.position_at_end(again)
        tested, found = builder.phi(_I64), builder.phi(_EIGHT)
        tested.add_incoming(low, before)
        found.add_incoming(start, before)
        sums = [found, *[ir.Constant(_EIGHT, [0] * 8)] * 3]  # four, as each sum takes time
        for j in range(_TESTED):
            number = builder.add(tested, ir.Constant(_I64, j))
            one = _tagged(builder, builder.load(place(words, number), align=8), "slots")
            difference = builder.sub(_eight_of(builder, one), bounds)
            sign = builder.lshr(difference, ir.Constant(_EIGHT, [63] * 8))
            sums[j % 4] = builder.add(sums[j % 4], sign)
        ranks = builder.add(builder.add(*sums[:2]), builder.add(*sums[2:]))
        last = builder.extract_element(ranks, ir.Constant(_I64, 7))
        beyond = builder.add(tested, ir.Constant(_I64, _TESTED))
        tested.add_incoming(beyond, again)
        found.add_incoming(ranks, again)
        builder.cbranch(builder.icmp_signed("==", last, beyond), again, done)
        builder.position_at_end(done)
        to = builder.bitcast(place(into, at), _EIGHT.as_pointer())
        _tagged(builder, builder.store(ranks, to, align=8), "slots")
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


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
    """Return an optional value as its plain type: any value of this type if it is None."""
    if not isinstance(value, types.Optional):
        return value(value), lambda context, builder, signature, args: args[0]

    def emit(context, builder, signature, args):
        return context.make_helper(builder, value, args[0]).data

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

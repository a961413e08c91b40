"""Loads and stores on raw addresses, for compiled kernels.

A kernel's whole memory is one buffer and its address an int64: array arguments would cost
reference counts in every function they pass through.  Nothing here checks bounds; the same
kernels run on `checked` memory in the tests, where a wrong address is an error.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

__all__ = [
    "inner",
    "load_byte",
    "load_f",
    "load_i",
    "load_u",
    "some",
    "store_byte",
    "store_f",
    "store_i",
    "store_u",
    "view_f",
    "view_i",
    "view_u",
]

inner = njit

_I64, _I8, _F64 = ir.IntType(64), ir.IntType(8), ir.DoubleType()


def _access(kind, llvm, align):
    """A load and a store of one type at an address."""

    @intrinsic
    def load(typing, address):
        def emit(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], llvm.as_pointer())
            return builder.load(pointer, align=align)

        return kind(types.int64), emit

    @intrinsic
    def store(typing, address, value):
        def emit(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], llvm.as_pointer())
            builder.store(args[1], pointer, align=align)
            return context.get_dummy_value()

        return types.void(types.int64, kind), emit

    return load, store


load_i, store_i = _access(types.int64, _I64, 8)
load_u, store_u = _access(types.uint64, _I64, 8)
load_f, store_f = _access(types.float64, _F64, 8)
load_byte, store_byte = _access(types.uint8, _I8, 1)


@intrinsic
def some(typing, value):
    """An optional value that is known not to be None, as its plain type."""
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

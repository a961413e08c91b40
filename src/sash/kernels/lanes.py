"""Eight floats as one value of compiled code, which the processor adds and multiplies at once.

A kernel whose steps wait for each other (a mean that grows row by row) takes as long for eight runs
of rows side by side as for one.  Each lane goes through the same operations as a single float, in
the same order, so answers are the same to the bit.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = ["LANES", "lanes_apart", "lanes_at", "root_of", "set_lanes_apart", "set_lanes_at"]

LANES = 8
_I64, _I32, _F64 = ir.IntType(64), ir.IntType(32), ir.DoubleType()
_VECTOR = ir.VectorType(_F64, LANES)


class _Lanes(types.Type):
    """The type of eight floats."""

    def __init__(self) -> None:
        super().__init__("sash lanes")


_lanes = _Lanes()


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    """Represents lanes by a vector of LLVM."""

    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VECTOR)


def _same(builder, value):
    """A float in all lanes."""
    none = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(none, value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, none, zeros)


def _arithmetic(symbol, emit):
    """Define an operation on lanes and lanes, and on lanes and a float."""

    class Typed(AbstractTemplate):
        def generic(self, args, keywords):
            kinds = set(args)
            if _lanes in kinds and kinds <= {_lanes, types.float64}:
                return signature(_lanes, *args)
            return None

    infer_global(symbol)(Typed)

    for kinds in ((_lanes, _lanes), (_lanes, types.float64), (types.float64, _lanes)):

        @lower_builtin(symbol, *kinds)
        def lowered(context, builder, given, args):
            both = zip(args, given.args, strict=True)
            return emit(builder, *(a if t is _lanes else _same(builder, a) for a, t in both))


_arithmetic(operator.add, lambda builder, a, b: builder.fadd(a, b))
_arithmetic(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_arithmetic(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_arithmetic(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


@intrinsic
def root_of(typing, value):
    """The square root of a float, or of each of eight."""

    llvm, name = (_VECTOR, f"v{LANES}f64") if value is _lanes else (_F64, "f64")

    def emit(context, builder, given, args):
        function = ir.FunctionType(llvm, [llvm])
        found = cgutils.get_or_insert_function(builder.module, function, f"llvm.sqrt.{name}")
        return builder.call(found, args)

    return value(value), emit


def _each(builder, start, stride):
    """The pointers to eight floats that lie `stride` floats apart."""
    for lane in range(LANES):
        words = builder.mul(stride, ir.Constant(_I64, 8 * lane))
        yield lane, builder.inttoptr(builder.add(start, words), _F64.as_pointer())


@intrinsic
def lanes_at(typing, address):
    """Load eight floats that lie side by side."""

    def emit(context, builder, given, args):
        return builder.load(builder.inttoptr(args[0], _VECTOR.as_pointer()), align=8)

    return _lanes(types.int64), emit


@intrinsic
def set_lanes_at(typing, address, value):
    """Store eight floats side by side."""

    def emit(context, builder, given, args):
        builder.store(args[1], builder.inttoptr(args[0], _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, _lanes), emit


@intrinsic
def lanes_apart(typing, address, stride):
    """Load eight floats that lie `stride` floats apart."""

    def emit(context, builder, given, args):
        made = ir.Constant(_VECTOR, ir.Undefined)
        for lane, pointer in _each(builder, *args):
            value = builder.load(pointer, align=8)
            made = builder.insert_element(made, value, ir.Constant(_I32, lane))
        return made

    return _lanes(types.int64, types.int64), emit


@intrinsic
def set_lanes_apart(typing, address, stride, value):
    """Store eight floats `stride` floats apart."""

    def emit(context, builder, given, args):
        for lane, pointer in _each(builder, *args[:2]):
            one = builder.extract_element(args[2], ir.Constant(_I32, lane))
            builder.store(one, pointer, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, _lanes), emit

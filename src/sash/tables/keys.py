"""Turns key columns into small integers, in the order of the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..kernels.spans import room
from .order import in_time
from .threads import BLOCK, PIECE, cut_groups, cut_rows, extremes, side_by_side

if TYPE_CHECKING:
    from .texts import KnownTexts

__all__ = [
    "by_group",
    "by_group_and_number",
    "key_codes",
    "maps_in_order",
    "one_zero_in",
    "repeated",
]

Run = tuple[int, int]  # a range of rows

_FIRST = pa.array([0])
_MANY_TEXTS = 1 << 14  # to sort so many takes 2 ms


def key_codes(
    columns: list[pa.Array],
    rows: int,
    threads: int = 1,
    known: Sequence[KnownTexts] | None = None,
) -> tuple[Array, list[pa.Array]]:
    """The number of each row's key, and the distinct keys in order: one array per column.  `known`
    has the texts of each column that are known from earlier batches.

    Null is a key, and so is NaN; 0.0 and -0.0 are the same key, and so are maps with the same
    entries.
    """
    if not columns:
        return np.zeros(rows, dtype=np.int64), []
    if rows == 1 and all(map(_as_it_is, columns)):
        # copies, because the caller may write over the memory of a batch
        return np.zeros(1, dtype=np.int64), [column.take(_FIRST) for column in columns]
    texts: Sequence[KnownTexts | None] = known or [None] * len(columns)
    coded = [
        _codes_by(one, column, rows, threads) for one, column in zip(texts, columns, strict=True)
    ]
    codes, parts = coded[0]
    many = [parts]
    for more, values in coded[1:]:
        codes, pairs = _numbered(_pairs(codes, more, len(values), threads), threads)
        old = pairs // max(len(values), 1)  # np.divmod takes longer
        given = [*((m, old) for m in many), (values, pairs - old * len(values))]
        many = side_by_side(_take, given, threads if len(pairs) >= PIECE else 1)
    return codes, many


def _codes_by(
    known: KnownTexts | None, column: pa.Array, rows: int, threads: int
) -> tuple[Array, pa.Array]:
    """The codes of one column, by the texts that are known, and its distinct values in order."""
    found = None if known is None else known.codes(column, threads)
    if found is None:
        found = _codes(column, threads)
        if known is not None:
            known.learn(found[1], rows)
    return found


def _as_it_is(column: pa.Array) -> bool:
    """True if equal keys of this column have equal bytes."""
    types = pa.types
    plain = (types.is_integer, types.is_string, types.is_large_string, types.is_boolean)
    return any(test(column.type) for test in (*plain, types.is_timestamp, types.is_date))


def _take(given: tuple[pa.Array, Array]) -> pa.Array:
    values, at = given
    return values.take(pa.array(at))


def _pairs(codes: Array, more: Array, many: int, threads: int) -> Array:
    """A number for each pair of codes; the second codes are less than `many`."""
    made = np.empty(len(codes), dtype=np.int64)

    def pair(piece: Run) -> None:
        for first in range(*piece, BLOCK):
            some = slice(first, min(first + BLOCK, piece[1]))
            np.multiply(codes[some], many, out=made[some])
            made[some] += more[some]

    side_by_side(pair, cut_rows(len(codes), most=8), threads)
    return made


def _numbered(values: Array, threads: int) -> tuple[Array, Array]:
    """The codes of integers, and the distinct integers in order."""
    # a table with one place per row takes a quarter of the time of a sort
    near = _codes_of_near(values, threads, len(values)) if len(values) else None
    if near is not None:
        return near
    found, codes = np.unique(values, return_inverse=True)
    return codes, found


def _codes(column: pa.Array, threads: int = 1) -> tuple[Array, pa.Array]:
    """The codes of one column, and its distinct values in order: null first, NaN last."""
    if pa.types.is_dictionary(column.type):
        # a dictionary may repeat values or have unused ones, which does no harm
        values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
        ranks, found = _codes(values)
        at = column.indices.cast(pa.int64()).fill_null(len(values) - 1)  # int8 may be too small
        return ranks[np.asarray(at)], found
    if isinstance(column.type, pa.BaseExtensionType):
        codes, found = _codes(column.storage)
        return codes, pa.ExtensionArray.from_storage(column.type, found)
    if pa.types.is_struct(column.type):
        return _codes_of_structs(column)
    if pa.types.is_nested(column.type):
        return _codes_of_lists(column)
    if pa.types.is_float16(column.type):  # Arrow cannot sort it
        codes, found = _codes(column.cast(pa.float32()))
        return codes, found.cast(column.type)
    if pa.types.is_floating(column.type):
        column = _one_zero(column)
    elif pa.types.is_integer(column.type) and len(column) and not column.null_count:
        # if equal values come in long runs, as in a table ordered by key, one of each run suffices
        values = column.to_numpy()
        heads = _heads(values)
        if heads is not None:
            codes, found = _codes(column.take(pa.array(heads)))
            return np.repeat(codes, np.diff(heads, append=len(values))), found
        near = _codes_of_near(values, threads)
        if near is not None:
            codes, distinct = near
            return codes, pa.array(distinct).cast(column.type)
    try:
        parts, values = _encoded(column, threads)
        ranks, found = _ranked(values, threads, distinct=len(parts) == 1)
    except pa.ArrowNotImplementedError:
        return _codes_of_lists(column)
    codes = room(len(column), np.int64)

    def fill(part: _Encoded) -> None:
        first, last, indices, begin = part
        np.take(ranks[begin:], indices, out=codes[first:last], mode="clip")

    side_by_side(fill, parts, threads)
    return codes, found


def _ranked(values: pa.Array, threads: int, *, distinct: bool) -> tuple[Array, pa.Array]:
    """The number of each value among the distinct values in order, null first, and these.  To
    compare texts takes long, so one thread has those below a middle one, and another the rest."""
    types = pa.types
    text = types.is_string(values.type) or types.is_large_string(values.type)
    if threads == 1 or not text or len(values) < _MANY_TEXTS:
        return _ranks_of(values, distinct=distinct)
    sample = values.take(pa.array(np.arange(0, len(values), len(values) // 256 or 1)))
    middle = sample.take(pc.array_sort_indices(sample).slice(len(sample) // 2, 1))[0]
    less = np.asarray(pc.less(values, middle).fill_null(True))

    def of_half(some: Array) -> tuple[Array, Array, pa.Array]:
        at = np.flatnonzero(some)
        return at, *_ranks_of(values.take(pa.array(at)), distinct=distinct)

    (low, lower, below), (high, upper, above) = side_by_side(of_half, [less, ~less], threads)
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[low], ranks[high] = lower, upper + len(below)
    return ranks, pa.concat_arrays([below, above])


def _ranks_of(values: pa.Array, *, distinct: bool) -> tuple[Array, pa.Array]:
    """The same in one thread."""
    at = None
    if not distinct:
        encoded = values.dictionary_encode(null_encoding="encode")
        values, at = encoded.dictionary, np.asarray(encoded.indices)
    order = np.asarray(pc.array_sort_indices(values), dtype=np.int64)
    if values.null_count:  # Arrow puts nulls last, after NaN
        null = np.asarray(values.is_null())[order]
        order = np.concatenate([order[null], order[~null]])
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks if at is None else ranks[at], values.take(pa.array(order))


def _heads(values: Array) -> Array | None:
    """The first row of each run of equal values; None if runs are short."""
    start = values[:BLOCK]
    if 2 * np.count_nonzero(start[1:] != start[:-1]) > len(start):
        return None
    heads = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return heads if 1 < len(heads) < len(values) // 8 else None


#: A piece of a column: its first row, the row after its last, the number of each row's value among
#: the distinct values of the piece, and the place of the first of these among those of all pieces.
_Encoded = tuple[int, int, Array, int]


def _encoded(column: pa.Array, threads: int) -> tuple[list[_Encoded], pa.Array]:
    """Number the distinct values of a column, null among them, in pieces.  Return the pieces, and
    the distinct values of each, one piece after the other."""
    pieces = cut_rows(len(column), weight=2) if threads > 1 else [(0, len(column))]
    if len(pieces) > 2:
        sample = column.slice(0, BLOCK // 4)
        repeats = 4 * len(sample.dictionary_encode().dictionary) < len(sample)
        pieces = cut_rows(len(column), most=16 if repeats else 2, weight=2)

    def encode(piece: tuple[int, int]) -> pa.DictionaryArray:
        first, last = piece
        return column.slice(first, last - first).dictionary_encode(null_encoding="encode")

    parts: list[_Encoded] = []
    values: list[pa.Array] = []
    begin = 0
    for piece, made in zip(pieces, side_by_side(encode, pieces, threads), strict=True):
        parts.append((*piece, np.asarray(made.indices), begin))
        values.append(made.dictionary)
        begin += len(made.dictionary)
    return parts, values[0] if len(values) == 1 else pa.concat_arrays(values)


def _codes_of_near(
    values: Array, threads: int, most: int | None = None
) -> tuple[Array, Array] | None:
    """The codes of integers that are not far apart, and the distinct integers in order; else None.
    Each integer has its own place in a table, which has at most `most` places, by default a quarter
    of the number of rows.  For 2 million rows that takes a third of the time of a hash table."""
    least, greatest = extremes(values, threads)
    span = greatest - least + 1
    if span > max(1 << 10, len(values) // 4 if most is None else most):
        return None
    # differences of small signed integers could overflow; large unsigned ones do not fit int64
    wide = values.dtype.type if values.dtype.kind == "u" else np.int64
    as_they_are = least == 0 and values.dtype == np.int64
    codes = values if as_they_are else room(len(values), np.int64)
    pieces = cut_rows(len(values), least=span)
    head = np.zeros(span, dtype=bool)
    head[np.subtract(values[:BLOCK], wide(least), dtype=wide).astype(np.int64)] = True
    if as_they_are and head.all():
        return codes, np.arange(span)

    def look(piece: Run) -> Array:
        there = head.copy()
        missing = not there.all()
        for first in range(*piece, BLOCK):
            some = slice(first, min(first + BLOCK, piece[1]))
            if not as_they_are:
                into = codes[some]
                np.subtract(values[some], wide(least), out=into, dtype=wide, casting="unsafe")
            if missing:
                there[codes[some]] = True
                missing = not there.all()
        return there

    there = np.logical_or.reduce(side_by_side(look, pieces, threads))
    found = np.flatnonzero(there)
    if len(found) < span:
        # small integers, since a large table is read at random places
        rank: Array = np.cumsum(there, dtype=np.int32 if span < 2**31 else np.int64)
        rank -= 1
        before, codes = codes, room(len(values), np.int64)

        def renumber(piece: Run) -> None:
            for first in range(*piece, BLOCK):
                some = slice(first, min(first + BLOCK, piece[1]))
                codes[some] = rank[before[some]]

        side_by_side(renumber, cut_rows(len(values)), threads)
    return codes, found.astype(wide, copy=False) + wide(least)


def _one_zero(column: pa.Array) -> pa.Array:
    """Floats with only one kind of NaN and of zero."""
    plain = column.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    plain[np.isnan(plain)] = np.nan
    return pa.array(plain, mask=np.asarray(column.is_null())).cast(column.type)


def _codes_of_structs(column: pa.Array) -> tuple[Array, pa.Array]:
    """The codes of structs, and the distinct structs in order.  A struct is a key of several
    columns; a null struct comes first."""
    codes, (there, *found) = key_codes([column.is_valid(), *column.flatten()], len(column))
    fields = list(column.type)
    parts = [part.cast(field.type) for part, field in zip(found, fields, strict=True)]
    return codes, pa.StructArray.from_arrays(parts, fields=fields, mask=pc.invert(there))


def _codes_of_lists(column: pa.Array) -> tuple[Array, pa.Array]:
    """The codes of values of a type that Arrow cannot sort, and the distinct values in order."""
    items = [one_zero_in(maps_in_order(x, column.type)) for x in column.to_pylist()]
    keys = [_ordered(x) for x in items]
    try:
        seen = dict(zip(keys, items, strict=True))
        rank = {key: i for i, key in enumerate(sorted(seen))}
    except TypeError:
        raise TypeError(
            f"a key column of {column.type} has no order; use one of another type"
        ) from None
    codes = np.array([rank[key] for key in keys], dtype=np.int64)
    return codes, pa.array([seen[key] for key in rank], type=column.type)


def maps_in_order(item: Any, kind: pa.DataType) -> Any:
    """Sort the entries of all maps in a value by key: two maps are equal, as in Spark, if they have
    the same entries."""
    if item is None or not pa.types.is_nested(kind):
        return item
    if pa.types.is_map(kind):
        pairs = [(key, maps_in_order(x, kind.item_type)) for key, x in item]
        return sorted(pairs, key=lambda pair: _ordered(pair[0]))
    if pa.types.is_struct(kind):
        return {field.name: maps_in_order(item[field.name], field.type) for field in kind}
    return [maps_in_order(x, kind.value_type) for x in item]


def one_zero_in(item: Any) -> Any:
    """A value with only one kind of NaN and of zero inside."""
    if isinstance(item, float):
        return item + 0.0 if item == item else np.nan
    if type(item) in (list, tuple):
        return type(item)(map(one_zero_in, item))
    if isinstance(item, dict):
        return {name: one_zero_in(x) for name, x in item.items()}
    return item


def _ordered(item: Any) -> Any:
    """A sort key for a value that may be null, NaN or nested: null first, NaN last."""
    if item is None:
        return (0,)
    if isinstance(item, list | tuple):
        return (1, *(_ordered(x) for x in item))
    if isinstance(item, dict):
        return (1, *(_ordered(x) for x in item.values()))
    return (2,) if item != item else (1, item)


def by_group(codes: Array, groups: int, order: Array | None) -> tuple[Array, Array]:
    """Put rows in order of group, and within a group in the order `order`, or as they came if that
    is None.  Return the row numbers in that order, and the bounds of the groups: one more than
    there are groups."""
    bounds = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=groups), out=bounds[1:])
    if order is not None:
        codes = codes[order]
    if (codes[1:] >= codes[:-1]).all():
        sorted_ = np.arange(len(codes), dtype=np.int64)
    elif groups <= 2**16:
        sorted_ = np.argsort(codes.astype(np.uint16), kind="stable")  # a radix sort
    else:
        sorted_ = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
        high = codes >> 16
        for shift in range(0, int(groups - 1 >> 16).bit_length(), 16):
            part = ((high >> shift) & 0xFFFF).astype(np.uint16)
            sorted_ = sorted_[np.argsort(part[sorted_], kind="stable")]
    return (sorted_ if order is None else order[sorted_]), bounds


def by_group_and_number(codes: Array, groups: int, numbers: Array) -> tuple[Array, Array]:
    """Put rows in order of group, and within a group in order of their numbers, then as they came.
    Return what `by_group` returns."""
    least, greatest = extremes(numbers) if len(numbers) else (0, 0)
    span = greatest - least + 1
    if groups * span > 1 << 16:
        return by_group(codes, groups, in_time(numbers))
    places = codes * span  # one sort instead of two: 10,000 rows in 63 µs, and not in 106
    places += numbers - least
    rows, bounds = by_group(places, groups * span, None)
    return rows, bounds[::span]


def _repeat(items: Array, bounds: Array, made: Array) -> None:
    """Do the same as `counting_sort.repeat`."""
    made[:] = np.repeat(items, np.diff(bounds))


def repeated(keys: list[pa.Array], ends: Array, threads: int = 1) -> list[pa.Array]:
    """Repeat each key for its rows, of which key k has those from ends[k - 1] up to ends[k].

    >>> repeated([pa.array(["a", "b"])], np.array([1, 3]))[0].to_pylist()
    ['a', 'b', 'b']
    """
    bounds = np.append(0, ends)
    ranges = cut_groups(bounds) if threads > 1 else [(0, len(ends))]
    repeat_into = _repeat
    if bounds[-1] >= PIECE:  # the kernel takes 0.1 s to compile
        from .counting_sort import repeat as repeat_into  # kernels, which Spark's packers leave out

    def column(values: pa.Array) -> pa.Array:
        words = made = None
        wide = pa.types.is_primitive(values.type) and values.type.bit_width == 64
        if wide and not values.null_count:
            words, made = values.view(pa.int64()).to_numpy(), room(bounds[-1], np.int64)

        def fill(some: tuple[int, int]) -> pa.Array | None:
            low, high = some
            places = bounds[low : high + 1]
            if words is not None and made is not None:
                repeat_into(words[low:high], places, made[places[0] : places[-1]])
                return None
            return values.take(pa.array(np.repeat(np.arange(low, high), np.diff(places))))

        found = side_by_side(fill, ranges, threads)
        if made is not None:
            return pa.array(made).view(values.type)
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    return [column(values) for values in keys]

"""Operators that estimate in fixed space, each with a stated bound on its error.

`bloom` and `count_min` are vectors that sash itself combines, compiled for numbers.  `hll`,
`quantiles` and `top_k` use sketches of Apache DataSketches, whose bytes that library can read
anywhere; they need `pip install 'sash[sketches]'`.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from .codec import encode_value
from .contract import Operator, objects_only, ready
from .numeric import WIDE, _number
from .position import check_whole
from .ranks import float_key, rank

__all__ = ["bloom", "count_min", "estimate", "hll", "might_contain", "quantiles", "top_k"]

Vector = np.ndarray[Any, Any]


# hashing: the finaliser of splitmix64, on signed 64-bit integers

_POSITIVE = 2**63 - 1
_STEP = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _wrap(v: int) -> int:
    """The low 64 bits as a signed integer.

    Compiled arithmetic already wraps, so this changes nothing there; Python's does not wrap.
    """
    return (v & _POSITIVE) | (-((v >> 63) & 1) << 63)


def _mix(v: int) -> int:
    """A 64-bit integer in which every bit depends on every bit of `v`."""
    v = _wrap((v ^ ((v >> 30) & 0x3FFFFFFFF)) * _FIRST)
    v = _wrap((v ^ ((v >> 27) & 0x1FFFFFFFFF)) * _SECOND)
    return v ^ ((v >> 31) & 0x1FFFFFFFF)


def _place(seed: int, i: int, size: int) -> int:
    """The i-th position, from 0 to size - 1, of the value with this seed."""
    return (_mix(_wrap(seed + (i + 1) * _STEP)) & _POSITIVE) % size


def _code(value: Any) -> int:
    """The integer that stands for a value, the same in every process.

    Numbers and times get the same integer as in a typed column: the number itself, microseconds, or
    the float's bits, with -0.0 as 0.0 and a single NaN.
    """
    if isinstance(value, np.datetime64):
        micros = value.astype("M8[us]")
        # the cast to a coarser unit may round towards zero
        return int(micros.view(np.int64)) - bool(micros > value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return int(value)
    if isinstance(value, float):
        return float_key(value)
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (at - _EPOCH) // timedelta(microseconds=1)
    digest = hashlib.blake2b(_text(value), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _text(value: Any) -> bytes:
    """Bytes that are equal for equal values."""
    if isinstance(value, tuple | list):
        return b"(" + b"".join(_sized(_text(x)) for x in value)
    if isinstance(value, frozenset | set):
        return b"{" + b"".join(sorted(_sized(_text(x)) for x in value))
    if isinstance(value, dict):
        return b":" + b"".join(sorted(_sized(_text(item)) for item in value.items()))
    if isinstance(value, float):
        return encode_value(float("nan") if value != value else value + 0.0)
    if isinstance(value, Decimal):
        return encode_value(WIDE.normalize(WIDE.plus(value)))
    return encode_value(value)


def _sized(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def _by_type(
    make: Callable[[Callable[[Any], int]], Operator],
) -> Callable[[tuple[str, ...]], Operator | None]:
    """Tie a sketch to a column type: choose how values of the type become integers."""

    def typed(types: tuple[str, ...]) -> Operator | None:
        return None if types[0] == "object" else make(rank(types[0]).key)

    return typed


# bloom: the bits, and a last word with the number of hashes if there is a value


def bloom(bits: int, hashes: int = 7) -> Operator:
    """A Bloom filter of the values, as an array of 64-bit words for `might_contain`.

    `bits` is rounded up to a multiple of 64.  The filter never misses a value that it holds.  If it
    holds n distinct values, it wrongly reports a share of about (1 - e^(-hashes·n/bits))^hashes of
    other values as held: 1% with 10 bits per value and 7 hashes.  An integer and the equal float
    differ.

    >>> op = bloom(1024)
    >>> held = op.fold(["a", "b"])
    >>> might_contain(held, "a"), might_contain(held, "c")
    (True, False)
    """
    check_whole("bits of bloom", bits, 1, 2**40)
    check_whole("hashes of bloom", hashes, 1, 64)
    words = (bits + 63) // 64
    size = 64 * words

    def make(code: Callable[[Any], int]) -> Operator:
        def lift(out: Vector, x: Any) -> None:
            seed = _mix(code(x))
            for i in range(hashes):
                at = _place(seed, i, size)
                out[at >> 6] = out[at >> 6] | np.uint64(1 << (at & 63))
            out[words] = np.uint64(hashes)

        return Operator(
            f"bloom({bits}, {hashes})",
            np.zeros(words + 1, dtype=np.uint64),
            lift,
            _either,
            commutative=True,
            typed=_by_type(make),
            adds=True,
        )

    return ready(make(_code), parameters=(bits, hashes))


def _either(out: Vector, a: Vector, b: Vector) -> None:
    np.bitwise_or(a, b, out)


def might_contain(vector: Vector, value: Any) -> bool:
    """True if a Bloom filter may hold a value; if False, it certainly does not.

    >>> might_contain(bloom(1024).fold([1, 2, 3]), 2)
    True
    """
    size, hashes = 64 * (len(vector) - 1), int(vector[-1])
    if hashes == 0:
        return False
    seed = _mix(_code(value))
    places = (_place(seed, i, size) for i in range(hashes))
    return all((int(vector[at >> 6]) >> (at & 63)) & 1 for at in places)


# count-min: `depth` rows of `width` counts, one after another


def count_min(width: int, depth: int) -> Operator:
    """A count-min sketch of how often each value occurs, for `estimate`.

    For n values, an estimate is never below the true count, and with a probability of at least 1 -
    e^-depth it is at most e·n/width above.  An integer and the equal float differ.

    >>> op = count_min(256, 4)
    >>> estimate(op.fold(["a", "b", "a"]), "a", 256, 4)
    2
    """
    check_whole("width of count_min", width, 1, 2**32)
    check_whole("depth of count_min", depth, 1, 64)

    def make(code: Callable[[Any], int]) -> Operator:
        def lift(out: Vector, x: Any) -> None:
            seed = _mix(code(x))
            for i in range(depth):
                out[i * width + _place(seed, i, width)] += 1

        return Operator(
            f"count_min({width}, {depth})",
            np.zeros(width * depth, dtype=np.int64),
            lift,
            _add,
            inverse=_subtract,
            commutative=True,
            typed=_by_type(make),
            adds=True,
        )

    return ready(make(_code), parameters=(width, depth))


def _add(out: Vector, a: Vector, b: Vector) -> None:
    np.add(a, b, out)


def _subtract(out: Vector, a: Vector, b: Vector) -> None:
    np.subtract(a, b, out)


def estimate(vector: Vector, value: Any, width: int, depth: int) -> int:
    """Estimate how often a value occurs, from the answer of `count_min(width, depth)`.

    >>> estimate(count_min(64, 3).fold([5, 5, 6]), 5, 64, 3)
    2
    """
    if len(vector) != width * depth:
        raise ValueError(
            f"this vector has {len(vector)} counts, not width {width} times depth {depth}; give "
            "the same numbers as to count_min"
        )
    seed = _mix(_code(value))
    return min(int(vector[i * width + _place(seed, i, width)]) for i in range(depth))


# sketches of Apache DataSketches


def _library() -> Any:
    try:
        import datasketches
    except ImportError:
        raise ImportError(
            "hll, quantiles and top_k need Apache DataSketches: pip install 'sash[sketches]'"
        ) from None
    return datasketches


def hll(lg_k: int = 12) -> Operator:
    """Estimates the number of distinct values, by HyperLogLog with 2^lg_k registers.

    The relative error is within about 3.1/√(2^lg_k) in 997 of 1000 cases: 5% for 12, 1.2% for 16.
    Two partials are `equal` if their intervals of three standard deviations overlap.

    >>> op = hll()
    >>> round(op.lower(op.fold(["a", "b", "a", None])))
    2
    """
    check_whole("lg_k of hll", lg_k, 4, 21)
    library = _library()

    def lift(x: Any) -> Any:
        made = library.hll_sketch(lg_k, library.HLL_8)
        made.update(_countable(x))
        return made

    def combine(a: Any, b: Any) -> Any:
        if a.is_empty():
            return b
        if b.is_empty():
            return a
        union = library.hll_union(lg_k)
        union.update(a)
        union.update(b)
        return union.get_result(library.HLL_8)

    def equal(a: Any, b: Any) -> bool:
        return bool(
            a.get_lower_bound(3) <= b.get_upper_bound(3)
            and b.get_lower_bound(3) <= a.get_upper_bound(3)
        )

    return ready(
        Operator(
            f"hll({lg_k})",
            library.hll_sketch(lg_k, library.HLL_8),
            lift,
            combine,
            lambda a: a.get_estimate(),
            commutative=True,
            encode=lambda a: a.serialize_compact(),
            decode=library.hll_sketch.deserialize,
            equal=equal,
        ),
        parameters=(lg_k,),
    )


def _countable(x: Any) -> Any:
    """The value in the form that the library hashes, if it can, so that sketches of the same values
    built elsewhere merge with ours.  The library skips the empty string, and knows few other
    types."""
    if isinstance(x, np.generic) and not isinstance(x, np.datetime64):
        x = x.item()
    if isinstance(x, float) or (isinstance(x, str) and x):
        return x
    return _code(x)


def _merged(a: Any, b: Any) -> Any:
    """Two sketches of one kind as one; neither is changed."""
    if a.is_empty():
        return b
    if b.is_empty():
        return a
    made = a.__copy__()
    made.merge(b)
    return made


def quantiles(k: int = 200, at: float | Sequence[float] = (0.5,)) -> Operator:
    """Estimates the quantiles at the ranks `at` (or at one rank), as a tuple, by a KLL sketch; null
    if there are no values.

    An answer's rank is off by at most about 2.3/k^0.9 with 99% probability: 1.33% for 200.  For up
    to about k values it is exact: the least value with at least that share of all values at or
    below it.  It leaves out NaN.  Two partials are `equal` if they hold the same number of values
    and rank each other's deciles alike to within three times that error.

    >>> op = quantiles(at=(0.5, 1.0))
    >>> op.lower(op.fold([3, 1, 2]))
    (2.0, 3.0)
    """
    check_whole("k of quantiles", k, 8, 65535)
    given = [at] if isinstance(at, int | float) else at
    if isinstance(given, str) or not all(isinstance(p, int | float | np.number) for p in given):
        raise TypeError(f"at is a rank from 0 to 1, or several, such as (0.5, 0.99), not {at!r}")
    ranks = [float(p) for p in given]
    if not ranks or not all(0.0 <= p <= 1.0 for p in ranks) or len(set(ranks)) != len(ranks):
        raise ValueError(f"at must be one or more different ranks from 0 to 1, not {at!r}")
    library = _library()
    bound = 3.0 * library.kll_doubles_sketch.get_normalized_rank_error(k, False)
    deciles = [p / 10 for p in range(11)]

    def lift(x: Any) -> Any:
        made = library.kll_doubles_sketch(k)
        made.update(float(_number(x)))
        return made

    def lower(a: Any) -> Any:
        return None if a.is_empty() else tuple(a.get_quantiles(ranks, True))

    def equal(a: Any, b: Any) -> bool:
        if a.n != b.n or a.is_empty():
            return bool(a.n == b.n)
        points = a.get_quantiles(deciles, True) + b.get_quantiles(deciles, True)
        return all(abs(a.get_rank(x, True) - b.get_rank(x, True)) <= bound for x in points)

    return ready(
        Operator(
            f"quantiles({k})",
            library.kll_doubles_sketch(k),
            lift,
            _merged,
            lower,
            commutative=True,
            encode=lambda a: a.serialize(),
            decode=library.kll_doubles_sketch.deserialize,
            equal=equal,
            fields=tuple(f"q{p:g}" if float(f"{p:g}") == p else f"q{p!r}" for p in ranks),
        ),
        parameters=(k, tuple(ranks)),
    )


def top_k(k: int) -> Operator:
    """The `k` most frequent strings with estimated counts, as a list, most frequent first.

    It uses a frequent-items sketch with a map of at least 1024 and 16·k places.  For n values, an
    estimate is off by at most 3.5/places·n: 0.35% for up to 64 strings.  It is exact as long as
    there are no more than three quarters as many distinct strings as places.  Strings with equal
    counts are in order of the string.  Two partials are `equal` if they hold the same number of
    values and their bounds for each string overlap.

    >>> op = top_k(2)
    >>> op.lower(op.fold(["b", "a", "c", "a", "b", "a"]))
    [('a', 3), ('b', 2)]
    """
    check_whole("k of top_k", k, 1, 2**20)
    library = _library()
    lg_size = math.ceil(math.log2(max(1024, 16 * k)))

    def rows(a: Any) -> list[Any]:
        return a.get_frequent_items(library.NO_FALSE_NEGATIVES)  # type: ignore[no-any-return]

    def lift(x: Any) -> Any:
        if not isinstance(x, str):
            raise TypeError(f"top_k counts strings, not {x!r} ({type(x).__name__})")
        made = library.frequent_strings_sketch(lg_size)
        made.update(x)
        return made

    def lower(a: Any) -> Any:
        ordered = sorted((-count, item) for item, count, _, _ in rows(a))
        return [(item, -count) for count, item in ordered[:k]]

    def equal(a: Any, b: Any) -> bool:
        return bool(a.total_weight == b.total_weight) and all(
            a.get_lower_bound(x) <= b.get_upper_bound(x)
            and b.get_lower_bound(x) <= a.get_upper_bound(x)
            for x in {row[0] for row in rows(a) + rows(b)}
        )

    return ready(
        Operator(
            f"top_k({k})",
            library.frequent_strings_sketch(lg_size),
            lift,
            _merged,
            lower,
            commutative=True,
            encode=lambda a: a.serialize(),
            decode=library.frequent_strings_sketch.deserialize,
            typed=objects_only("top_k", "strings"),
            equal=equal,
        ),
        parameters=(k,),
    )

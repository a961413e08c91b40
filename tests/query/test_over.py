"""Several sizes in one row: what `Aggregate.over` takes and a query refuses."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

import sash
from sash.engine.identity import differences, fingerprint

HOUR = 3_600_000_000


def make(window: Any, **select: sash.Aggregate) -> sash.Query:
    return sash.Query(time="t", window=window, select=select)


@pytest.mark.parametrize("size", ["1 hour", timedelta(hours=1), HOUR])
def test_a_size_is_a_duration(size: Any) -> None:
    chosen = sash.max("x").over(size)
    assert (chosen.size, repr(chosen)) == (HOUR, "max('x').over('1 hour')")


@pytest.mark.parametrize(
    "chosen", [sash.count().over("90 seconds"), sash.max("x").over(sash.lifetime())]
)
def test_an_aggregate_is_what_its_text_says_and_goes_to_other_processes(
    chosen: sash.Aggregate,
) -> None:
    assert eval(repr(chosen), vars(sash)) == chosen
    assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_a_query_knows_the_size_of_each_aggregate() -> None:
    lasting, short = sash.sum("x").over(sash.lifetime()), sash.count().over(3)
    q = make(sash.trailing(5), n=sash.count(), short=short, ever=lasting)
    assert q.sizes == {"n": 5, "short": 3, "ever": None}
    assert q.several
    assert make(sash.lifetime(), n=sash.count(), short=short).sizes == {"n": None, "short": 3}
    assert make(sash.tumbling(5), n=sash.count(), short=short).sizes == {"n": 5, "short": 3}
    assert not make(sash.trailing(3), short=short).several
    assert not make(sash.lifetime(), ever=lasting).several
    assert not make(sash.rows(3), n=sash.count()).several


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        ("1 month", ValueError, "the size of an aggregate's windows of '1 month': months are not"),
        (0, ValueError, "size"),
        (-5, ValueError, "size"),
        (1.5, TypeError, "the size of an aggregate's windows is text such as"),
        (sash.trailing("1 hour"), TypeError, r"give the size itself, such as '1 hour'"),
        (sash.sliding(4, 2), TypeError, r"over takes a size, and sliding\(.*\) is a window"),
        (sash.lifetime(delay=3), TypeError, r"the query's windows end, so give sash.lifetime\(\)"),
    ],
)
def test_refuses_sizes(size: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sash.count().over(size)


def test_refuses_a_second_size() -> None:
    with pytest.raises(ValueError, match=r"count\(\)\.over\('1 hour'\) has a size already"):
        sash.count().over("1 hour").over("1 hour")


@pytest.mark.parametrize(
    "window",
    [
        sash.cumulate(4, 2),
        sash.tumbling("1 day", timezone="Europe/Berlin"),
        sash.rows(3),
        sash.session(5),
        sash.delta("x", 3),
        sash.window(keep=sash.rows(4), every="1 second"),
        sash.policies.at_most_sum(100, column="x"),
    ],
)
def test_refuses_windows_that_have_no_one_size(window: Any) -> None:
    with pytest.raises(
        ValueError, match=r"select has count\(\)\.over\(.* for 'n', but an aggregate c"
    ):
        make(window, n=sash.count().over(3))


def test_refuses_a_size_that_is_too_long_with_the_delay() -> None:
    long = make(sash.trailing(3, delay=10), n=sash.count()).window
    with pytest.raises(ValueError, match="a window's delay is a length of time"):
        make(long, n=sash.count().over(2**60 - 5))


def test_a_fingerprint_names_the_size_that_differs() -> None:
    def of(**select: sash.Aggregate) -> dict[str, str]:
        return fingerprint(make(sash.trailing(5), n=sash.count(), **select))

    one, other = of(m=sash.max("x").over(7)), of(m=sash.max("x").over("1 hour"))
    assert differences(one, other) == ["m: size was 7 microseconds and is 1 hour"]
    # a size that is the query's own is none
    assert of(m=sash.max("x").over(5)) == of(m=sash.max("x"))

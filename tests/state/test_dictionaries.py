"""Dictionaries of streams: labels stand for values, in their order where they are compared."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.tables.dictionaries import Picked, Ranked
from sash.tables.numbers import places_in_order

pytestmark = pytest.mark.plain

#: Ways for new values to come: anywhere, above all, below all, and just beside one that stays.
WAYS: dict[str, Any] = {
    "anywhere": lambda i, source: f"{source.randrange(10**6):06}",
    "above": lambda i, source: f"{i:06}",
    "below": lambda i, source: f"{10**6 - i:06}",
    "below one": lambda i, source: "zz" if i == 0 else f"{i:06}",
    "above one": lambda i, source: "" if i == 0 else f"{10**6 - i:06}",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("most", [1, 50])
def test_labels_have_the_order_of_their_values(way: str, most: int) -> None:
    source, d, made = random.Random(way), Ranked(), 0
    labels: dict[str, int] = {}
    relabelled = 0
    for _ in range(120):
        some = sorted({WAYS[way](made + j, source) for j in range(source.randint(1, most))})
        made += len(some)
        found = d.add(pa.array(some))
        if found is None:
            places = d.places(np.array(list(labels.values())))
            kept = d.keep(np.full(len(d), True), pa.array(some))
            labels = dict(zip(labels, kept[places].tolist(), strict=True))
            relabelled += 1
            found = d.add(pa.array(some))
        assert found is not None
        labels |= dict(zip(some, found.tolist(), strict=True))
        in_order = [labels[value] for value in sorted(labels)]
        assert in_order == sorted(set(in_order))
        assert in_order[0] > 0
    assert d.take(pa.array(list(labels.values()))).to_pylist() == list(labels)
    assert len(d) == len(labels)
    assert relabelled < 12, "labels are spread so that this is rare"


@pytest.mark.parametrize("make", [Picked, Ranked])
def test_what_is_not_kept_is_gone(make: Any) -> None:
    d = make()
    values = [Decimal(i) / 4 for i in range(20)]
    labels = d.add(pa.array(values, pa.decimal128(9, 2)))
    held = np.isin(d.places(labels), [3, 4, 11])
    kept = d.keep(held)
    assert len(d) == 3
    assert (kept[~held] == 0).all()
    assert d.take(pa.array(kept[held])).to_pylist() == [values[3], values[4], values[11]]
    assert d.places(np.array([0, -1, 2**62])).tolist() == [-1, -1, -1]
    other = make()
    other.load(d.dump())
    assert other.take(pa.array(kept[held])).to_pylist() == [values[3], values[4], values[11]]
    assert d.take(pa.array([None, kept[3]])).to_pylist() == [None, values[3]]


def test_values_that_are_known_in_order_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `calm` gave has its labels by place, until something comes or is labelled anew."""
    d = Ranked()
    for some in (["m", "p"], ["a", "n", "z"], ["b", "o"]):
        d.add(pa.array(some))
    assert d.calm() is None
    known = d.calm()
    assert known is not None
    assert known.to_pylist() == ["a", "b", "m", "n", "o", "p", "z"]
    at = np.array([0, 2, 6])
    right = d.add(known.take(pa.array(at)))
    with monkeypatch.context() as patch:
        patch.setattr(Ranked, "add", None)
        assert d.add_some(known, at).tolist() == right.tolist()
        numbers, values = places_in_order(pa.array(["z", "a", None, "m"]), 1, known)
        assert values is known
        assert numbers.to_pylist() == [7, 1, None, 3]
    kept = d.keep(np.arange(7) != 1)  # "p" is dropped
    assert d.add_some(known, at).tolist() == [kept[i] for i in (2, 0, 4)]
    (again,) = d.add_some(known, np.array([5]))  # and comes anew
    assert again not in kept
    assert d.take(pa.array([again])).to_pylist() == ["p"]

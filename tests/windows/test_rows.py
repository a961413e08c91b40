"""The last so many events of a key."""

from __future__ import annotations

from typing import Any

import pytest

import sash
from sash.windows import Rows


def test_fires_at_every_so_many_events_and_before_it_is_full() -> None:
    #   rows(3, every=2)    a  b  c  d  e
    #                       [---]
    #                          [------]
    q = sash.Query(time="t", window=sash.rows(3, every=2), select={"all": sash.concat("x")})
    found = q.run({"t": [5, 1, 2, 3, 4], "x": list("eabcd")})
    assert found.to_pylist() == [
        {"t": 2, "x": "b", "window_start": 1, "window_end": 2, "all": "ab"},
        {"t": 4, "x": "d", "window_start": 2, "window_end": 4, "all": "bcd"},
    ]


def test_names_and_fields() -> None:
    assert sash.rows(3) == Rows(3, 1)
    assert repr(sash.rows(3)) == "rows(3)"
    assert repr(sash.rows(3, every=2)) == "rows(3, every=2)"
    assert sash.rows(3).kind == "driven"


@pytest.mark.parametrize("given", [(0,), (3, 0), (-1,), (2**61,)], ids=repr)
def test_refuses_numbers_that_make_no_sense(given: Any) -> None:
    with pytest.raises(ValueError, match="is a number of events, of at least 1, not"):
        sash.rows(*given)


@pytest.mark.parametrize("given", [("3",), (True,), (3, 1.5), (None,)], ids=repr)
def test_refuses_what_is_no_number(given: Any) -> None:
    with pytest.raises(TypeError, match="is a number of events, not"):
        sash.rows(*given)

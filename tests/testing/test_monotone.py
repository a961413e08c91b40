"""The tester of policies: ready ones are monotone, and it tells those that are not."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

import sash
from sash import operators as ops
from sash import policies
from sash.testing import LawError, monotone


@pytest.mark.parametrize(
    "policy",
    [
        policies.at_most(0),
        policies.at_most(3),
        policies.at_most_span(5),
        policies.since_maximum(),
        policies.since_longest_run(),
        policies.limited_by(0),
        policies.any_of(policies.at_most(4), policies.since_maximum(), policies.at_most_span(3)),
    ],
    ids=repr,
)
def test_ready_policies_are_monotone(policy: sash.Policy) -> None:
    numbers = st.none() | st.integers(-9, 9)
    monotone(policy, numbers)


def test_a_sum_is_monotone_for_values_that_are_not_negative() -> None:
    monotone(policies.at_most_sum(9), st.none() | st.integers(0, 9))
    with pytest.raises(LawError, match=r"at_most_sum\(9\) .* is not monotone") as error:
        monotone(policies.at_most_sum(9), st.integers(-9, 9))
    assert error.value.laws == ("monotone",)


def test_it_shows_a_small_window() -> None:
    odd = sash.policy(lambda total, old: total - old != 2, over=ops.count)
    with pytest.raises(LawError, match=r"in the window \[(None|0)(, (None|0)){2}\] it holds for"):
        monotone(odd)


def test_only_policies() -> None:
    with pytest.raises(TypeError, match="monotone is for policies"):
        monotone(ops.max)  # type: ignore[arg-type]

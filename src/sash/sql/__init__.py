"""Read SQL that people already write, as a statement that runs over tables and streams.

    sash.sql(text, time=None, timezone=None, operators={}) -> Statement

The text writes windows as Spark, Flink, the standard or CQL do:

    GROUP BY k, window(ts, '3 hours', '1 minute')                                          Spark
    FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '3' HOUR))       Flink
    max(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '3' HOUR PRECEDING …)   standard
    FROM t [RANGE 3 HOURS SLIDE 1 MINUTE]                                                  CQL

`time` names the column of times if the text does not, as in CQL.  With a `timezone`, windows of
days, weeks and months follow its calendar, and EXTRACT and CAST read times by its clock.
`operators` has your own operators, by the names that the text uses.

>>> import sash
>>> hourly = sash.sql(
...     "SELECT k, window.start AS hour, max(x) AS worst FROM t GROUP BY k, window(ts, '1 hour')"
... )
>>> table = {"ts": [1, 2], "k": ["a", "a"], "x": [3, 4]}
>>> hourly.run(table).to_pylist()
[{'k': 'a', 'hour': 0, 'worst': 4}]

The modules:

tokens, numbers, cursor, read_…                read a text into nodes
forms, windows, intervals                      find its window
aggregates                                     turn calls into aggregates of sash
plan, planned, scope                           plan it: before, query, after
evaluate, arithmetic, casts, functions, …      compute expressions over Arrow columns, as Spark
tabled, statement, stream                      run it
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..operators.contract import Operator
    from .statement import Statement


def sql(
    text: str,
    time: str | None = None,
    timezone: Any = None,
    operators: Mapping[str, Operator] | None = None,
) -> Statement:
    """Read a text of SQL and return its statement, which runs like a query.

    >>> import sash
    >>> sash.sql("SELECT count(*) FROM t [RANGE 1 HOUR SLIDE 1 MINUTE]", time="ts").query.window
    sliding('1 hour', '1 minute')
    """
    from .statement import statement

    return statement(text, time, timezone, operators)


class _Callable(ModuleType):
    """Makes this module callable: `sash.sql` is both the folder and the function."""

    def __call__(
        self,
        text: str,
        time: str | None = None,
        timezone: Any = None,
        operators: Mapping[str, Operator] | None = None,
    ) -> Statement:
        return sql(text, time, timezone, operators)


sys.modules[__name__].__class__ = _Callable

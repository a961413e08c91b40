"""Tools for your tests and ours: the laws of operators, an oracle, counts, schedules.

    laws(operator)             checks an operator's declarations, by hypothesis
    answer(operator, values)   the answer by definition; `agrees` compares an answer with it
    monotone(policy)           looks for windows in which a policy is not monotone
    counting(operator)         a copy that counts its calls
    schedule(kind)             operations on a window, with `windows` and `replay` to check them;
                               `schedules()` is a hypothesis strategy of them
    timed_schedule(disorder)   the same with times, out of order, and `arrivals` alone
    queries                    the rows of a query by brute force, over a table or a stream
    streams                    tables of events to try queries on
    loops, worst               loops of operations, and a search for the most expensive
    fuzz                       random cases without end: python -m sash.testing.fuzz
    stored                     streams whose state is in a store

The extra `test` installs hypothesis; this package imports it only when it needs it.
"""

from .counting import Counted, counting
from .disorder import DISORDERS, arrivals, timed_replay, timed_schedule, timed_windows
from .laws import LawError, laws, values_of
from .monotone import monotone
from .oracle import agrees, answer
from .schedules import KINDS, Step, draw_value, replay, schedule, schedules, windows

__all__ = [
    "DISORDERS",
    "KINDS",
    "Counted",
    "LawError",
    "Step",
    "agrees",
    "answer",
    "arrivals",
    "counting",
    "draw_value",
    "laws",
    "monotone",
    "replay",
    "schedule",
    "schedules",
    "timed_replay",
    "timed_schedule",
    "timed_windows",
    "values_of",
    "windows",
]

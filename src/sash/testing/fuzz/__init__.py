"""Compare random cases with the oracles, for as long as you like: `python -m sash.testing.fuzz`.

    aggregators   operations on every aggregator, over operators of every shape
    streams       queries over streams, with state in memory and in a store, any cutting into
                  batches, final and live, over snapshots; and the same queries by `run`

A case is plain data; the same number gives the same case.  The fuzzer shrinks a failing case as far
as it can, and prints it as a test to paste.
"""

from .aggregators import WindowCase
from .cases import Case, Finding, Target, search
from .shrink import smallest
from .streams import StreamCase

__all__ = ["TARGETS", "Case", "Finding", "StreamCase", "Target", "WindowCase", "search", "smallest"]

#: The kinds of cases, by name.
TARGETS: dict[str, type[Case]] = {"aggregators": WindowCase, "streams": StreamCase}

"""Random cases against the oracles, for as long as one likes: `python -m sash.testing.fuzz`.

    aggregators   operations on every aggregator, over operators of every shape
    streams       queries over streams, with state in memory and in a store, any cutting into
                  batches, final and live, over snapshots; and the same queries by `run`

A case is plain data, and the same for the same number.  One that fails is made as small as it gets
and printed as a test to paste.
"""

from .aggregators import WindowCase
from .cases import Case, Finding, Target, search
from .shrink import smallest
from .streams import StreamCase

__all__ = ["TARGETS", "Case", "Finding", "StreamCase", "Target", "WindowCase", "search", "smallest"]

#: What can be tried, by name.
TARGETS: dict[str, type[Case]] = {"aggregators": WindowCase, "streams": StreamCase}

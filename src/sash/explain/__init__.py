"""How a query runs, and why: `Query.explain`, `Stream.explain`.

explanation   the result: data, and text
sizes         words and numbers on the windows; drawing draws them
partials      which aggregates run together, and share a partial
tables        over a table; streams: over a stream
costs         combines that are expected; measured: a sample, run and counted
cautions      warnings
shared        several queries that share what they can
"""

from .explanation import Explanation
from .shared import SharedExplanation

__all__ = ["Explanation", "SharedExplanation"]

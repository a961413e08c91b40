"""How a query runs, and why: `Query.explain`, `Stream.explain`.

explanation   the result: data, and text
sizes         the windows in words and numbers; drawing draws them
partials      which aggregates run together, and which share a partial
tables        a query over a table; streams: over a stream
costs         expected combines; measured: run a sample and count its combines
cautions      warnings
shared        several queries that share one pass
"""

from .explanation import Explanation
from .shared import SharedExplanation

__all__ = ["Explanation", "SharedExplanation"]

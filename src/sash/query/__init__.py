"""A query and its parts.

aggregates   operators over columns
query        aggregates, a window, and keys
shared       several queries over the same events
registry     facts about each ready operator: its names, the type of its answers, …
elsewhere    names of other libraries, and what sash calls the same thing
plan         a query tied to the types of a table: operators to run, columns of the result
"""

from .aggregates import Aggregate, aggregate
from .query import Query
from .shared import Shared, share

__all__ = ["Aggregate", "Query", "Shared", "aggregate", "share"]

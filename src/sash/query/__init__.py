"""A query and what it is made of.

aggregates   operators over columns
query        aggregates, a window, and keys
shared       several queries over the same events
registry     what is known of each ready operator: its names, the type of its answers, …
elsewhere    what other libraries call what is here under another name
plan         a query tied to the types of a table: operators to run, columns of the result
"""

from .aggregates import Aggregate, aggregate
from .query import Query
from .shared import Shared, share

__all__ = ["Aggregate", "Query", "Shared", "aggregate", "share"]

"""A query and what it is made of.

aggregates   operators over columns
query        aggregates, a window, and keys
plan         a query tied to the types of a table: operators to run, columns of the result
"""

from .aggregates import NAMES, Aggregate, aggregate, named
from .query import Query

__all__ = ["NAMES", "Aggregate", "Query", "aggregate", "named"]

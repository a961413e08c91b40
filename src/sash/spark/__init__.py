"""Queries on Spark: a DataFrame in, a DataFrame out.

aggregate   the results of a query over a bounded or streaming DataFrame
"""

from .frames import aggregate

__all__ = ["aggregate"]

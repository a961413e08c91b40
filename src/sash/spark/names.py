"""Matches names of columns as Spark does: `ts` finds `TS`, unless spark.sql.caseSensitive is on."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

__all__ = ["check_result_names", "is_case_sensitive", "with_names"]


def is_case_sensitive(df: DataFrame) -> bool:
    """True if names that differ only in case are different names."""
    said = df.sparkSession.conf.get("spark.sql.caseSensitive", "false")
    return str(said).lower() == "true"


def with_names(df: DataFrame, wanted: Sequence[str], *, sensitive: bool) -> DataFrame:
    """Rename a DataFrame's columns to the spelling of the query."""
    if sensitive:
        return df
    spelt: dict[str, str] = {}
    renamed: dict[str, str] = {}
    for name in wanted:
        other = spelt.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"the query reads {other!r} and {name!r}, which are one column to Spark; spell it "
                "one way"
            )
        found = [column for column in df.columns if column.lower() == name.lower()]
        if len(set(found)) > 1:
            raise KeyError(
                f"the query reads column {name!r}, and {' and '.join(map(repr, found))} could be "
                "it: Spark does not tell them apart; rename one, or set spark.sql.caseSensitive"
            )
        if found and found[0] != name:
            renamed[found[0]] = name
    return df.withColumnsRenamed(renamed) if renamed else df


def check_result_names(names: Sequence[str], own: Sequence[str], *, sensitive: bool) -> None:
    """Refuse names that sash reserves in the result, and names that it would have twice."""

    def same(name: str) -> str:
        return name if sensitive else name.lower()

    taken = {same(name): name for name in own}
    seen: dict[str, str] = {}
    for name in names:
        if same(name) in taken:
            raise ValueError(
                f"the result has {taken[same(name)]!r} of its own; choose another name than "
                f"{name!r}, for a key with df.withColumnRenamed"
            )
        other = seen.setdefault(same(name), name)
        if other != name:
            raise ValueError(
                f"the result would have {other!r} and {name!r}, which are one name to Spark; "
                "choose another for one of them, for a key with df.withColumnRenamed"
            )

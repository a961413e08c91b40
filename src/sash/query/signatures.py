"""Types for signatures: the modes of a stream, and the kinds of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

__all__ = ["ArrowStream", "Columns", "Emit", "Frame", "LazyFrame", "Mode", "SlicingName"]

#: When a stream emits a window: once, when it closes, or as soon as it ends and at each change.
Mode: TypeAlias = Literal["final", "live"]
#: Which windows a query emits: all, or only windows whose values differ from the window before.
Emit: TypeAlias = Literal["all", "changes"]
#: How to cut windows aligned to the clock into slices.
SlicingName: TypeAlias = Literal["auto", "panes", "pairs", "cutty"]
#: A table as plain Python: lists or arrays by column name.
Columns: TypeAlias = Mapping[str, Sequence[Any]]


class _Frame(Protocol):
    """The attributes that only DataFrames of pandas and Polars and tables of Arrow have: a lazy
    frame has no shape, and a record batch no join.

    A type checker thus knows the type of the result, even if the library's stubs are not installed.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def join(self, *args: Any, **kwargs: Any) -> Any: ...


#: A DataFrame of pandas or Polars, or a table of Arrow: the result is of the same type.
Frame = TypeVar("Frame", bound=_Frame)
_Collected = TypeVar("_Collected", bound=_Frame, covariant=True)


class LazyFrame(Protocol[_Collected]):
    """A lazy frame of Polars: the result is of the type that it collects into."""

    def collect(self) -> _Collected: ...


class ArrowStream(Protocol):
    """Any other table that Arrow can read: the result is a table of Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

"""Events between marks in the stream, as the punctuated windows of SPL.

punctuated("last")      last    .  .  x  .  x  x
                                [-----]
                                         [--]
                                               [-]
"""

from __future__ import annotations

from dataclasses import dataclass

from .contract import Driven, Mark

__all__ = ["Punctuated", "punctuated"]


@dataclass(frozen=True)
class Punctuated(Driven):
    """The events of a key after one marked event, up to and including the next marked event.

    >>> Punctuated("last")
    punctuated('last')
    """

    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise TypeError(f"marks are in a column, given by its name, not {self.column!r}")

    @property
    def keeps(self) -> Mark:
        """The events since the last mark."""
        return Mark(self.column)

    @property
    def fires(self) -> Mark:
        """Every mark."""
        return Mark(self.column)

    def __repr__(self) -> str:
        return f"punctuated({self.column!r})"


def punctuated(column: str) -> Punctuated:
    """The events of a key after one marked event, up to and including the next.  A bool column
    marks events; a null is no mark.

    >>> import sash
    >>> q = sash.Query(time="t", window=punctuated("last"), select={"sum": sash.sum("x")})
    >>> found = q.run({"t": [1, 2, 3, 4], "x": [1, 2, 3, 4], "last": [False, True, None, True]})
    >>> found["sum"].to_pylist(), found["window_start"].to_pylist()
    ([3, 7], [1, 3])
    """
    return Punctuated(column)

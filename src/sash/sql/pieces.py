"""A text that is made of pieces of another one, and where each of its characters comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import Source
from .nodes import At

__all__ = ["Pieces"]


@dataclass
class Pieces:
    """A text for Spark, made of pieces of a statement; what Spark says about a place in it can be
    said about the place in the statement.

    >>> made = Pieces(Source("SELECT max(x) FROM t"))
    >>> made.add("SELECT ").copy((11, 12)).add("`t`", (19, 20))
    Pieces('SELECT x`t`')
    >>> made.place(7, 7), made.place(9, 9), made.place(0, 1)
    ((11, 12), (19, 20), None)
    """

    source: Source
    text: str = ""
    _marks: list[tuple[int, int, At, bool]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Pieces({self.text!r})"

    def add(self, text: str, at: At | None = None) -> Pieces:
        """Add text, which stands for a part of the statement."""
        if at is not None:
            self._marks.append((len(self.text), len(self.text) + len(text), at, False))
        self.text += text
        return self

    def copy(self, at: At) -> Pieces:
        """Add a part of the statement as it is written."""
        text = self.source[at[0] : at[1]]
        self._marks.append((len(self.text), len(self.text) + len(text), at, True))
        self.text += text
        return self

    def join(self, other: Pieces) -> Pieces:
        """Add another such text."""
        by = len(self.text)
        self._marks += [(start + by, end + by, at, same) for start, end, at, same in other._marks]
        self.text += other.text
        return self

    def place(self, first: int, last: int) -> At | None:
        """Where the characters from the first to the last one come from; None if they are of no
        part of the statement."""
        start, end = self._of(first), self._of(last)
        if start is None or end is None:
            return None
        return start[0], max(end[1], start[1])

    def _of(self, index: int) -> At | None:
        for start, end, at, same in self._marks:
            if start <= index < end:
                return (at[0] + index - start, at[0] + index - start + 1) if same else at
        return None

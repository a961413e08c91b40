"""A text composed of pieces of another text, with the origin of each character."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import Source
from .nodes import At

__all__ = ["Pieces"]


@dataclass
class Pieces:
    """A text for Spark, composed of pieces of a statement; it maps a place in Spark's error to the
    place in the statement.

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
        """Add text that stands for a part of the statement."""
        if at is not None:
            self._marks.append((len(self.text), len(self.text) + len(text), at, False))
        self.text += text
        return self

    def copy(self, at: At) -> Pieces:
        """Add a part of the statement unchanged."""
        text = self.source[at[0] : at[1]]
        self._marks.append((len(self.text), len(self.text) + len(text), at, True))
        self.text += text
        return self

    def join(self, other: Pieces) -> Pieces:
        """Append another text of pieces."""
        by = len(self.text)
        self._marks += [(start + by, end + by, at, same) for start, end, at, same in other._marks]
        self.text += other.text
        return self

    def place(self, first: int, last: int) -> At | None:
        """The place in the statement from which a range of characters comes; None if there is no
        such place."""
        start, end = self._of(first), self._of(last)
        if start is None or end is None:
            return None
        return start[0], max(end[1], start[1])

    def _of(self, index: int) -> At | None:
        for start, end, at, same in self._marks:
            if start <= index < end:
                return (at[0] + index - start, at[0] + index - start + 1) if same else at
        return None

"""The error for a text of SQL: the place of the mistake, what is allowed there, and the known name
nearest to a misspelt one.

    line 1, column 8: there is no function mx; did you mean max?
        SELECT mx(x) FROM t
               ^^
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Source", "SqlError", "quoted"]


class SqlError(ValueError):
    """A mistake in a text of SQL, or SQL that is not supported.

    `line` and `column` count from 1 and give the place of the mistake.  `problem` describes the
    mistake, `allowed` lists what can stand there instead (empty if there is no such list), and
    `nearest` is the known name closest to a misspelt one, or None.

    >>> import sash
    >>> try:
    ...     sash.sql("SELECT mx(x) FROM t GROUP BY window(ts, '1 hour')")
    ... except sash.SqlError as error:
    ...     print(error.line, error.column, error.nearest)
    1 8 max
    """

    def __init__(
        self,
        problem: str,
        *,
        line: int,
        column: int,
        shown: str,
        allowed: tuple[str, ...] = (),
        nearest: str | None = None,
    ) -> None:
        self.problem, self.line, self.column = problem, line, column
        self.allowed, self.nearest = allowed, nearest
        meant = f"; did you mean {nearest}?" if nearest else ""
        between = "\n    " if any(", " in one for one in allowed) else ", "
        listed = f"\nallowed here: {between.join(map(quoted, allowed))}" if allowed else ""
        super().__init__(f"line {line}, column {column}: {problem}{meant}\n{shown}{listed}")
        self._shown = shown

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (
            self.problem,
            self.line,
            self.column,
            self._shown,
            self.allowed,
            self.nearest,
        )


def quoted(allowed: str) -> str:
    """What may stand at a place, as a message shows it: signs in quotes."""
    return allowed if any(c.isalnum() for c in allowed) else f"'{allowed}'"


def _again(
    problem: str,
    line: int,
    column: int,
    shown: str,
    allowed: tuple[str, ...],
    nearest: str | None,
) -> SqlError:
    return SqlError(
        problem, line=line, column=column, shown=shown, allowed=allowed, nearest=nearest
    )


class Source:
    """A text of SQL, and the errors that point into it.

    >>> print(Source("SELECT a\\nFORM t").error("this is no clause", 9, 13))
    line 2, column 1: this is no clause
        FORM t
        ^^^^
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __getitem__(self, at: slice) -> str:
        return self.text[at]

    def error(
        self,
        problem: str,
        start: int,
        end: int,
        allowed: Iterable[str] = (),
        nearest: str | None = None,
    ) -> SqlError:
        """The error for the characters from `start` up to `end`."""
        begins = self.text.rfind("\n", 0, start) + 1
        stops = self.text.find("\n", start)
        stops = len(self.text) if stops < 0 else stops
        row = self.text[begins:stops]
        before = "".join("\t" if c == "\t" else " " for c in row[: start - begins])
        carets = "^" * max(1, min(end, stops) - start)
        return SqlError(
            problem,
            line=self.text.count("\n", 0, start) + 1,
            column=start - begins + 1,
            shown=f"    {row.rstrip()}\n    {before}{carets}",
            allowed=tuple(allowed),
            nearest=nearest,
        )

"""A position among the tokens of a text, with the methods that readers need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..query.names import nearest
from .errors import Source, SqlError, quoted
from .nodes import At
from .tokens import Token, tokens

__all__ = ["RESERVED_WORDS", "Cursor"]

_WORDS = (
    "SELECT FROM WHERE GROUP HAVING WINDOW ORDER LIMIT OFFSET FETCH UNION INTERSECT "
    "EXCEPT MINUS QUALIFY CLUSTER DISTRIBUTE SORT LATERAL PIVOT UNPIVOT TABLESAMPLE JOIN "
    "INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI ON USING AS AND OR NOT IN BETWEEN "
    "LIKE RLIKE ILIKE IS CASE WHEN THEN ELSE END OVER FILTER WITHIN IGNORE RESPECT "
    "DISTINCT ALL BY ASC DESC NULLS EXCLUDE RANGE ROWS GROUPS PARTITION WITH ESCAPE FOR "
    "DIV "
)

#: Words that are no alias without AS before them.
RESERVED_WORDS = frozenset(_WORDS.split())

_Made = TypeVar("_Made")


class Cursor:
    """A position among the tokens of a text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.at = 0

    @property
    def token(self) -> Token:
        """The token here."""
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        """A token further on, or the last token."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    @property
    def done(self) -> bool:
        """True behind the last token."""
        return self.token.kind == "end"

    @property
    def begins(self) -> int:
        """The place in the text where the token here begins."""
        return self.token.start

    @property
    def ended(self) -> int:
        """The place in the text where the token before this one ends."""
        return self.tokens[self.at - 1].end if self.at else 0

    def since(self, start: int) -> At:
        """The span from a place up to the last token read."""
        return start, max(self.ended, start)

    def step(self) -> Token:
        """Read the token here."""
        found = self.token
        self.at += found.kind != "end"
        return found

    def sees(self, *words: str) -> bool:
        """True if these words, in capitals, are next."""
        return all(self.ahead(i).word == word for i, word in enumerate(words))

    def takes(self, *words: str) -> bool:
        """Read these words, if they are next."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def sees_sign(self, sign: str, ahead: int = 0) -> bool:
        """True if a sign is next, or a number of tokens ahead."""
        token = self.ahead(ahead)
        return token.kind == "sign" and token.value == sign

    def takes_sign(self, sign: str) -> bool:
        """Read a sign, if it is next."""
        if not self.sees_sign(sign):
            return False
        self.at += 1
        return True

    def needs(self, *words: str, behind: str = "") -> None:
        """Read these words, or fail."""
        for word in words:
            if not self.takes(word):
                raise self.unexpected([" ".join(words)], behind)

    def needs_sign(self, sign: str, behind: str = "") -> None:
        """Read a sign, or fail."""
        if not self.takes_sign(sign):
            raise self.unexpected([sign], behind)

    def name(self, what: str) -> Token:
        """Read a name: of a column, a table, an alias."""
        if self.token.kind in ("word", "name"):
            return self.step()
        raise self.unexpected([what])

    def listed(self, read: Callable[[], _Made]) -> list[_Made]:
        """Read one or more of something, with commas between."""
        found = [read()]
        while self.takes_sign(","):
            found.append(read())
        return found

    def unexpected(self, allowed: Iterable[str], behind: str = "") -> SqlError:
        """The error for a token that cannot stand here."""
        allowed = list(allowed)
        token = self.token
        after = f" behind {behind}" if behind else ""
        if token.kind == "end":
            wanted = " or ".join(map(quoted, allowed))
            return self.source.error(
                f"the text ends{after}, where {wanted} is missing", token.start, token.end, allowed
            )
        shown = self.source[token.start : token.end]
        words = [one for one in allowed if one.isupper()]
        near = nearest(token.value, words) if token.kind == "word" else None
        return self.source.error(
            f"{shown} cannot stand here{after}", token.start, token.end, allowed, near
        )

    def skip_parentheses(self) -> None:
        """Move behind the parenthesis that closes the one here."""
        opened, depth = self.token, 0
        while True:
            token = self.step()
            if token.kind == "end":
                raise self.source.error(
                    "this parenthesis is never closed", opened.start, opened.end, [")"]
                )
            if token.kind == "sign":
                depth += (token.value in "([") - (token.value in ")]")
            if not depth:
                return

"""Split a text of SQL into words, numbers, strings and signs, each with its place in the text.

The rules are Spark's: names in backticks, text in quotes with backslash escapes, a doubled quote
for a quote, comments after `--` and between `/*` and `*/`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .errors import Source

__all__ = ["Token", "tokens"]

Kind = Literal["word", "name", "string", "number", "sign", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its kind, its value without quotes, and its place."""

    kind: Kind
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in capitals; empty for everything else, also for a name in backticks."""
        return self.value.upper() if self.kind == "word" else ""


_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | --[^\n]* | /\*.*?\*/ )
    | (?P<string> [rR]?'(?:[^'\\]|\\.|'')*' | [rR]?"(?:[^"\\]|\\.|"")*" )
    | (?P<name> `(?:[^`]|``)*` )
    | (?P<number> (?: \d+ (?:\.\d*)? | \.\d+ ) (?:[eE][+-]?\d+)? (?:BD|bd|[LlSsYyDdFf])? (?!\w) )
    | (?P<word> [^\W\d]\w* )
    | (?P<sign> <=> | <> | != | >= | <= | == | => | -> | :: | \|\| | /(?!\*)
              | [-+*%=<>()\[\],.;&|^~!:?] )
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


def tokens(source: Source) -> list[Token]:
    """All tokens, with a token of kind `end` at the end.

    >>> [t.value for t in tokens(Source("max(`a b`) -- of 'it'"))]
    ['max', '(', 'a b', ')', '']
    """
    text, found, at = source.text, [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unknown(source, at)
        kind, end = match.lastgroup, match.end()
        if kind == "string":
            found.append(Token("string", _unquoted(match[0]), at, end))
        elif kind == "name":
            found.append(Token("name", match[0][1:-1].replace("``", "`"), at, end))
        elif kind != "space":
            found.append(Token(kind, match[0], at, end))  # type: ignore[arg-type]
        at = end
    while found and found[-1].value == ";" and found[-1].kind == "sign":
        found.pop()
    return [*found, Token("end", "", len(text.rstrip()), len(text.rstrip()))]


def _unknown(source: Source, at: int) -> Exception:
    sign = source.text[at]
    if sign in "'\"`":
        what = "name" if sign == "`" else "text"
        return source.error(f"this {what} has no closing {sign}", at, at + 1)
    if source.text.startswith("/*", at):
        return source.error("this comment has no closing */", at, at + 2)
    if sign.isdigit():
        end = at
        while end < len(source.text) and (source.text[end].isalnum() or source.text[end] in "_."):
            end += 1
        odd = source.text[at:end]
        return source.error(
            f"{odd} is neither a number nor a name; write a name that begins with a digit as "
            f"`{odd}`",
            at,
            end,
        )
    return source.error(f"{sign!r} is no part of SQL", at, at + 1)


def _unquoted(given: str) -> str:
    """The text between quotes, with its escapes replaced."""
    raw = given[0] in "rR"
    quote = given[-1]
    inner = given[2:-1] if raw else given[1:-1]
    if raw:
        return inner
    inner = inner.replace(quote * 2, quote)
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _escaped, inner, flags=re.DOTALL)


def _escaped(match: re.Match[str]) -> str:
    sign = match[1]
    if sign[0] == "u" and len(sign) == 5:
        return chr(int(sign[1:], 16))
    if sign in "%_":  # LIKE needs these escapes
        return "\\" + sign
    return _ESCAPES.get(sign, sign)

"""Rewrite the text of a CSV file so that Arrow reads it as Spark does.

Spark knows one escape: within quotes, a backslash before a quote or before another backslash.
Arrow reads two quotes as one.  This module rewrites fields with such escapes.  It refuses a quote
that is neither around a field nor escaped, because Spark guesses there.
"""

from __future__ import annotations

import re

__all__ = ["NotAsSpark", "for_arrow"]


class NotAsSpark(ValueError):
    """Raised for a line that Spark would read in another way."""


def for_arrow(data: bytes, *, sep: str = ",", quote: str = '"', escape: str = "\\") -> bytes:
    """The text of a file with Arrow's escapes.

    >>> for_arrow(b'1,"a \\\\"b\\\\" c"').decode()
    '1,"a ""b"" c"'
    >>> for_arrow(b'x\\n1,"a ""b"" c"')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sash.cli.csv_text.NotAsSpark: line 2 has a quote within a field that no ...
    """
    if not quote or quote.encode() not in data:
        return data
    shape = _Shape(*(re.escape(c.encode()) for c in (sep, quote, escape)))
    if escape != quote and re.search(shape.odd, data) is None:
        return data
    mark = quote.encode()
    made, at = [], 0
    while at < len(data):
        found = shape.field.match(data, at)
        if found is None:
            raise NotAsSpark(_said(data.count(b"\n", 0, at) + 1, quote, escape))
        text, plain, end = found.groups()
        if text is None:
            made.append(plain + end)
        else:
            text = re.sub(shape.pair, rb"\1", text).replace(mark, mark + mark)
            made.append(mark + text + mark + end)
        at = found.end()
    return b"".join(made)


def _said(line: int, quote: str, escape: str) -> str:
    doubled = ", or, where two quotes stand for one, say options = { escape = '\"' }"
    return (
        f"line {line} has a quote within a field that no {escape or 'sign'} escapes, and Spark "
        f"guesses what that means; write {escape}{quote} for it{doubled * (escape != quote)}"
    )


class _Shape:
    """Regular expressions for fields; the arguments are already escaped for them."""

    def __init__(self, sep: bytes, quote: bytes, escape: bytes) -> None:
        ends = sep + rb"\r\n"
        # an escape; a quote in the middle of a field, or two; one that is never closed
        self.odd = rb"%s|[^%s]%s(?![%s]|\Z)|(?:^|[%s])%s[^%s]*(?:[\r\n]|\Z)" % (
            *(escape or b"(?!)", ends, quote, ends),
            *(ends, quote, quote),
        )
        inner = rb"[^%s%s\r\n]" % (quote, escape)
        if escape == quote:
            inner += rb"|%s%s" % (quote, quote)
        elif escape:
            inner += rb"|%s[^\r\n]" % escape
        text = rb"%s((?:%s)*)%s[ \t]*" % (quote, inner, quote)
        self.field = re.compile(rb"(?:%s|((?!%s)[^%s]*))(%s|\r?\n|\Z)" % (text, quote, ends, sep))
        self.pair = rb"%s([%s%s])" % (escape, quote, escape) if escape else rb"(?!)()"

'''Find the line of each key in a TOML file, which neither tomllib nor pydantic reports.

tomllib has read the file, so it is valid TOML, and a scan needs to recognise only headers, keys and
the ends of values:

    [source]              ("source",)          1
    path = "reports"      ("source", "path")   2
    [[query]]             ("query", 0)         3
    sql = """             ("query", 0, "sql")  4, whose text starts on line 5
    SELECT 1"""
'''

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Lines", "scan"]

Path = tuple[str | int, ...]

_OPEN, _CLOSE = "[{", "]}"


@dataclass(frozen=True)
class Lines:
    """The lines of keys in a file, by their path; lines count from 1."""

    keys: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, int] = field(default_factory=dict)  # the first line of a string's content

    def of(self, path: Path) -> int:
        """The line of a key, or of the nearest table around it."""
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path, 1)

    def text(self, path: Path) -> int:
        """The line on which the content of a string begins."""
        return self.texts.get(path, self.of(path))


def scan(text: str) -> Lines:
    """Find the lines of all keys.

    >>> scan('[source]\\npath = "x"\\n[[query]]\\nname = "a"').keys[("query", 0, "name")]
    4
    """
    found = Lines()
    table: Path = ()
    counts: dict[Path, int] = {}
    cursor = _Cursor(text)
    while cursor.to_statement():
        line = cursor.line
        if cursor.here("[["):
            name = tuple(cursor.key(2, "]"))
            number = counts.get(name, 0)
            counts[name] = number + 1
            table = (*name, number)
            found.keys.setdefault(name, line)
            found.keys[table] = line
            cursor.to_line_end()
        elif cursor.here("["):
            table = _within(tuple(cursor.key(1, "]")), counts)
            found.keys.setdefault(table, line)
            cursor.to_line_end()
        else:
            path = (*table, *cursor.key(0, "="))
            for end in range(len(table) + 1, len(path) + 1):
                found.keys.setdefault(path[:end], line)
            cursor.blanks()
            found.texts[path] = cursor.line + cursor.starts_below()
            for inner, at in cursor.value():
                found.keys.setdefault((*path, *inner), at)
    return found


def _within(name: Path, counts: dict[Path, int]) -> Path:
    """The path of a table below the last one of an array of tables."""
    path: Path = ()
    for part in name:
        path = (*path, part)
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


class _Cursor:
    """A position in the text of a TOML file."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0

    @property
    def line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def here(self, what: str) -> bool:
        return self._text.startswith(what, self._at)

    def blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1

    def to_statement(self) -> bool:
        """Move to the next header or key; returns False at the end."""
        while self._at < len(self._text):
            if self._text[self._at].isspace():
                self._at += 1
            elif self.here("#"):
                self.to_line_end()
            else:
                return True
        return False

    def to_line_end(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def key(self, skip: int, end: str) -> Iterator[str]:
        """Read the parts of a dotted key, up to and including its end mark."""
        self._at += skip
        part = ""
        while self._at < len(self._text) and not self.here(end):
            if self._text[self._at] in "\"'":
                part += self.string()
            elif self.here("."):
                yield part.strip()
                part, self._at = "", self._at + 1
            else:
                part += self._text[self._at]
                self._at += 1
        self._at += 1
        yield part.strip()

    def string(self) -> str:
        """Move behind a string, and return the raw text between its quotes."""
        mark = self._text[self._at]
        quotes = mark * 3 if self.here(mark * 3) else mark
        start = at = self._at + len(quotes)
        while at < len(self._text) and not self._text.startswith(quotes, at):
            at += 2 if mark == '"' and self._text[at] == "\\" else 1
        end = at
        if len(quotes) == 3:  # up to two quotes may stand before those that end it
            while self._text.startswith(quotes, end + 1):
                end += 1
        self._at = end + len(quotes)
        return self._text[start:end]

    def starts_below(self) -> bool:
        """True if a string's content begins on the next line: TOML drops a newline after the
        quotes."""
        return self.here('"""\n') or self.here("'''\n")

    def value(self) -> Iterator[tuple[Path, int]]:
        """Move behind a value, and return the keys of inline tables in it, with their lines."""
        depth: list[str] = []
        path: list[str] = []
        word, word_line = "", self.line
        while self._at < len(self._text):
            mark = self._text[self._at]
            if mark in "\"'":
                if not word:
                    word_line = self.line
                word += self.string()
                continue
            if mark == "#" or (mark == "\n" and not depth):
                self.to_line_end()
                if not depth:
                    return
                continue
            if mark in _OPEN:
                depth.append(mark)
                path.append("")
                word = ""
            elif mark in _CLOSE:
                depth.pop()
                path.pop()
                word = ""
            elif mark == "=" and depth and depth[-1] == "{":
                path[-1] = word.strip()
                yield tuple(p for p in path if p), word_line
                word = ""
            elif mark == ",":
                word = ""
            else:
                if not word.strip():
                    word_line = self.line
                word += mark
            self._at += 1

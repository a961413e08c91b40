"""Find the root cause of a failure on Spark in pages of traces."""

from __future__ import annotations

import re

__all__ = ["root_cause"]

_TRACEBACK = "Traceback (most recent call last):"
_CLASS = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+([\w$]*(?:Exception|Error)[\w$]*): (.*)", re.S)
_PYTHON = re.compile(r"^(?:\w+\.)*([A-Z]\w*): (.*)", re.S)
_LONGEST = 600


def root_cause(text: str) -> str:
    """The root cause in one message: the last line of the innermost Python trace, or of the last
    "Caused by", or else Spark's message.

    >>> root_cause('''org.apache.spark.SparkException: Job aborted
    ... Caused by: java.io.IOException: Mkdirs failed to create file:/x
    ...     at org.apache.hadoop.fs''')
    'Mkdirs failed to create file:/x (IOException)'
    """
    found = _of_python(text) or _of_java(text) or _first_line(text)
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]} …"


def _of_python(text: str) -> str | None:
    traces = text.split(_TRACEBACK)[1:]
    return next((said for said in map(_raised, reversed(traces)) if said), None)


def _raised(trace: str) -> str | None:
    """The error at the end of a Python trace; None if it only passes on an error of Java's."""
    last: list[str] = []
    for line in trace.splitlines()[1:]:
        if _ends(line) and last:
            break
        if line.startswith((" ", "\t")) and not last:
            continue  # the place of the error, and the code there
        if last or _PYTHON.match(line):
            last.append(line.strip())
    found = _PYTHON.match(" ".join(line for line in last if line))
    if found is None or found[1].startswith("Py4J"):
        return None
    return _said(found[2], found[1])


def _ends(line: str) -> bool:
    """True if a line comes after the message of an error."""
    return not line.strip() or line.lstrip().startswith(("at ", "Driver stacktrace", "JVM stack"))


def _of_java(text: str) -> str | None:
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    for line in reversed(causes):
        found = _CLASS.match(line)
        if found is not None and found[2].strip():
            return _said(found[2], found[1])
    return None


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = lines[0] if lines else "no reason was given"
    found = re.search(r"terminated with exception: (.*)", said)
    said = found[1] if found else said
    java = _CLASS.match(said)
    return _said(java[2], java[1]) if java else re.sub(r"\s*SQLSTATE: \w+$", "", said)


def _said(message: str, kind: str) -> str:
    message = re.sub(r"\s*SQLSTATE: \w+$", "", message.strip())
    return f"{message} ({kind})"

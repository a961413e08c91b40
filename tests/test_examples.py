"""The examples run, and are as short as they claim to be."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.plain

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

#: A line that each example prints.
SHORT = {
    "web_sessions": "ann 2024-05-01 09:58:00 2024-05-01 11:01:00 3 / /order 410",
    "larger_than_memory": "'sensor': 0, 'n': 993",
    "policy_window": "{'card': 'a', 'amount': 250, 'payments': 3, 'spent': 950}",
    "short_against_long": "pay 2024-05-01 01:30:",
    "three_sizes": "a 2024-05-20 12:00:00 2024-05-20 13:00:00 1 1 224",
    "top_talkers": "window_end host bytes flows",
}


@pytest.mark.parametrize("name", SHORT)
def test_an_example_prints_what_it_is_about(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(SHORT[name] in line for line in said), said


@pytest.mark.parametrize("name", SHORT)
def test_an_example_is_short(name: str) -> None:
    lines = [line for line in (EXAMPLES / f"{name}.py").read_text().splitlines() if line.strip()]
    assert 10 <= len(lines) <= 32

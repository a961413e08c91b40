"""Pictures: what they show is in the data, and nothing else is changed."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sash

Q = sash.Query(time="t", by=["k"], window=sash.tumbling(10), select={"n": sash.count()})
COLUMNS = ("k", "window_start", "window_end", "n")


def rows(*given: tuple[Any, ...], **more: list[Any]) -> pa.Table:
    return pa.table(dict(zip(COLUMNS, zip(*given, strict=True), strict=True)) | more)


def drawn(figure: Any) -> None:
    """A picture can be written."""
    figure.savefig(BytesIO(), format="png")


def found(**more: list[int]) -> pa.Table:
    given = {"rows": [100] * 3, "late": [8, 2, 0], "partly_late": [4, 1, 0], "kept": [1, 5, 9]}
    waits = pa.array([0, 1_000_000, 60_000_000]).cast(pa.duration("us"))
    return pa.table({"allowance": waits, **(given | more)})


class TestLateness:
    def test_the_headline_says_what_each_way_costs(self) -> None:
        figure = sash.plot.lateness(found())
        said = figure.axes[0].get_title(loc="left")
        assert said.splitlines() == [
            "12 % of 100 rows would miss windows if the stream waited for none",
            "1 min loses none",
        ]
        line = figure.axes[0].get_lines()[0]
        assert line.get_ydata().tolist() == [12.0, 3.0, 0.0]
        assert line.get_xdata().tolist() == [0.0, 1.0, 60.0]
        drawn(figure)

    def test_nothing_is_late(self) -> None:
        none = sash.plot.lateness(found(late=[0] * 3, partly_late=[0] * 3))
        assert none.axes[0].get_title(loc="left").startswith("no row of 100 would miss")
        assert none.axes[0].get_legend() is None
        drawn(none)
        drawn(sash.plot.lateness(found().slice(0, 1)))
        drawn(sash.plot.lateness(found().to_pandas()))

    def test_other_tables_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no column 'kept'"):
            sash.plot.lateness(found().drop_columns("kept"))
        with pytest.raises(ValueError, match="no allowance"):
            sash.plot.lateness(found().slice(0, 0))


class TestResults:
    def test_the_largest_keys(self) -> None:
        many = rows(*((f"k{i}", w, w + 10, i) for i in range(12) for w in (0, 10)))
        figure = sash.plot.results(many, Q)
        (axes,) = figure.axes
        assert {line.get_label() for line in axes.get_lines()} == {f"k{i}" for i in range(4, 12)}
        assert "8 largest of 12 keys" in axes.get_title(loc="left")
        assert axes.get_lines()[0].get_xdata().tolist() == [10, 20]
        drawn(figure)
        assert len(sash.plot.results(many.to_pandas(), Q, keys=2).axes[0].get_lines()) == 2

    def test_a_line_ends_where_windows_are_missing(self) -> None:
        spans = [(0, 10), (10, 20), (40, 50), (70, 80), (80, 90)]
        table = rows(*(("a", start, end, i) for i, (start, end) in enumerate(spans)))
        (line,) = sash.plot.results(table, Q).axes[0].get_lines()
        assert str(line.get_ydata().tolist()) == "[0.0, 1.0, nan, 2.0, nan, 3.0, 4.0]"
        days = [("a", 1000 * day + hour, 1000 * day + hour + 10, 1) for day in range(40)
                for hour in ((0, 10) if day else (0,))]  # fmt: skip
        figure = sash.plot.results(rows(*days), Q)
        line, alone = figure.axes[0].get_lines()
        assert np.isnan(line.get_ydata()).sum() == 39
        assert alone.get_xdata().tolist() == [10]
        drawn(figure)
        changes = sash.Query(time="t", by=["k"], window=Q.window, select=Q.select, emit="changes")
        (line,) = sash.plot.results(table, changes).axes[0].get_lines()
        assert line.get_ydata().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]

    def test_corrections(self) -> None:
        live = rows(("a", 0, 10, 5), ("a", 10, 20, 1), ("a", 0, 10, 7), revision=[0, 0, 1])
        (axes,) = sash.plot.results(live, Q).axes
        assert axes.get_lines()[0].get_ydata().tolist() == [7.0, 1.0]
        strokes, circles = axes.collections
        assert np.asarray(strokes.get_segments()).tolist() == [[[10.0, 5.0], [10.0, 7.0]]]
        assert circles.get_offsets().tolist() == [[10.0, 5.0]]
        assert "1 windows corrected" in axes.get_title(loc="left")

    def test_sessions_that_were_withdrawn_are_not_drawn(self) -> None:
        visits = sash.Query(time="t", by=["k"], window=sash.session(5), select={"n": sash.count()})
        live = rows(("a", 0, 9, 5), ("a", 3, 8, 1), ("a", 3, 8, None), revision=[0, 0, 1])
        live = live.append_column("deleted", pa.array([False, False, True]))
        (axes,) = sash.plot.results(live, visits).axes
        assert axes.get_lines()[0].get_xdata().tolist() == [9]

    def test_times_nulls_and_no_rows(self) -> None:
        at = pd.to_datetime(["2024-05-01", "2024-05-02"])
        table = pa.table({"k": [None, None], "window_start": at, "window_end": at, "n": [1, 2]})
        figure = sash.plot.results(table, Q)
        assert figure.axes[0].get_lines()[0].get_label() == "null"
        drawn(figure)
        drawn(sash.plot.results(table.slice(0, 0), Q))

    def test_what_cannot_be_drawn_is_refused(self) -> None:
        table = rows(("a", 0, 10, 5))
        with pytest.raises(ValueError, match="no column 'window_end'"):
            sash.plot.results(table.drop_columns("window_end"), Q)
        with pytest.raises(ValueError, match="'m' is no number among them; draw one of: n"):
            sash.plot.results(table, Q, "m")
        with pytest.raises(ValueError, match="1 to 8 keys, not 9"):
            sash.plot.results(table, Q, keys=9)
        with pytest.raises(TypeError, match=r"of a sash\.Query"):
            sash.plot.results(table, "q")  # type: ignore[arg-type]


def test_without_matplotlib_the_error_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import sash\n"
        "from sash.plot.look import new_figure\n"
        "try:\n    new_figure(1, 1)\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'sash[plots]'" in done.stdout

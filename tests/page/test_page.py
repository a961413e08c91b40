"""The live page: its feed, its heat map, and its server, by real HTTP requests."""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

import sash
from sash.engine.delays import BUCKETS
from sash.page import Batch, Feed, Heat, Page, serve
from sash.page.feed import KEPT

HOUR = 3_600_000_000


def results(rows: list[tuple[str | None, int, float | None, int]]) -> pa.Table:
    keys, starts, values, revisions = zip(*rows, strict=True)
    return pa.table(
        {
            "k": pa.array(keys, pa.string()),
            "window_start": pa.array([s * HOUR for s in starts], pa.timestamp("us", "UTC")),
            "n": pa.array(values, pa.float64()),
            "revision": pa.array(revisions, pa.int64()),
        }
    )


def late(key: str, first: int, last: int) -> pa.Table:
    at = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "k": [key],
            "x": [7],
            "reason": ["all its windows were closed before it came"],
            "missed": [1],
            "missed_start": pa.array([first * HOUR], at),
            "missed_end": pa.array([last * HOUR], at),
        }
    )


class TestFeed:
    def test_totals_and_the_last_batches(self) -> None:
        feed = Feed("job", allowance=60_000_000, clock=lambda: 5.0)
        counts = [1, *[0] * (BUCKETS - 1), 2]
        for i in range(KEPT + 50):
            watermark = (900 + i) * 1_000_000
            told = Batch(1000.0 + i, 0.5, 10, watermark, {"null": 1, "x": 0}, 2, 3, 77, counts)
            feed.batch(told)
        made = feed.since(0)
        many = KEPT + 50
        expected = {"rows": 10 * many, "emitted": 3 * many, "corrections": 2 * many}
        assert made["totals"] == expected | {"batches": many}
        assert made["late"] == {"null": many}
        assert made["lateness"] == [many, *[0] * (BUCKETS - 1), 2 * many]
        assert len(made["batches"]) == KEPT
        assert (made["state_bytes"], made["explain"]) == (77, "")
        assert (made["rate"], made["lag"], made["replay"]) == (20.0, 100.0, False)
        feed.batch(Batch(2000.0, 0.1, 0))  # closes windows, and has no rows
        assert feed.since(0)["rate"] == 20.0

    def test_only_what_is_new_comes_again(self) -> None:
        feed = Feed("job", heat=Heat(["k"], "n"), explain="a plan")
        feed.emitted(results([("a", 0, 1.0, 0)]))
        feed.batch(Batch(1.0, 1.0, 1))
        first = feed.since(0)
        assert first["heat"]["keys"] == ["a"]
        feed.batch(Batch(2.0, 1.0, 5))
        then = feed.since(first["version"])
        assert [batch["rows"] for batch in then["batches"]] == [5]
        assert "heat" not in then
        assert "explain" not in then
        assert not feed.wait(then["version"], 0.0)
        feed.emitted(results([("a", 1, 1.0, 0)]))
        assert feed.wait(then["version"], 0.0)
        assert "heat" in feed.since(then["version"])

    def test_a_job_ends_once(self) -> None:
        feed = Feed("job")
        feed.state("running")
        feed.failed("no such file")
        feed.ended()
        feed.state("running")
        made = feed.since(0)
        assert (made["state"], made["message"], feed.over) == ("failed", "no such file", True)

    def test_a_watermark_weeks_behind_is_a_replay(self) -> None:
        feed = Feed("job")
        feed.batch(Batch(8 * 86_400.0, 1.0, 1, watermark=0))
        assert feed.since(0)["replay"]


class TestHeat:
    def test_the_largest_keys_and_the_last_windows(self) -> None:
        heat = Heat(["k"], "n", keys=2, windows=3)
        heat.add(results([(k, w, v, 0) for w in range(5) for k, v in zip("abc", (1.0, 9.0, -5.0))]))
        shown = heat.shown()
        assert shown["keys"] == ["b", "c"]
        assert shown["starts"] == [2 * HOUR, 3 * HOUR, 4 * HOUR]
        assert shown["values"] == [[9.0] * 3, [-5.0] * 3]

    def test_memory_is_bounded(self) -> None:
        heat = Heat(["k"], "n", keys=3, windows=4)
        for w in range(50):
            heat.add(results([(f"key {w} {i}", w, float(w + i), 0) for i in range(20)]))
        assert len(heat._keys) <= 6
        assert len(heat._numbered) <= 6
        assert len(heat._cells.keys) <= 6 * 4
        heat.add_late(pa.concat_tables([late("key 49 19", 49, 50)] * 500))
        assert len(heat._keys[("key 49 19",)].late) <= 100

    def test_revisions_and_rows_that_missed_a_cell(self) -> None:
        heat = Heat(["k"], "n")
        heat.add(results([("a", 0, 1.0, 0), ("a", 1, 2.0, 0), (None, 0, float("nan"), 0)]))
        heat.add(results([("a", 0, 4.0, 1), ("a", 0, 6.0, 2)]))
        heat.add_late(late("a", 0, 1))
        shown = heat.shown()
        assert shown["keys"] == ["a", "null"]
        assert shown["values"] == [[6.0, 2.0], [None, None]]
        assert shown["corrected"] == [[0, 0]]
        number = shown["numbers"][0]
        cell = heat.cell(number, 0)
        assert cell is not None
        assert [(c["revision"], c["value"]) for c in cell["revisions"]] == [(0, 1), (1, 4), (2, 6)]
        assert cell["late"] == ["k = a, x = 7, reason = all its windows were closed before it came"]
        other = heat.cell(number, HOUR)
        assert other is not None
        assert other["late"] == []
        assert heat.cell(number, 9 * HOUR) is None
        assert heat.cell(99, 0) is None

    def test_revisions_in_any_order_and_only_the_last_are_kept(self) -> None:
        heat = Heat(["k"], "n")
        draw = random.Random(5)
        rows = [("a", w, float(100 * w + r), r) for w in range(3) for r in range(30)]
        draw.shuffle(rows)
        for i in range(0, len(rows), 7):
            heat.add(results(rows[i : i + 7]))
        heat.add(results([("a", 1, -1.0, 29)]))  # again, with another value
        shown = heat.shown()
        assert shown["values"] == [[29.0, -1.0, 229.0]]
        assert shown["corrected"] == [[0, 0], [0, 1], [0, 2]]
        cell = heat.cell(shown["numbers"][0], HOUR)
        assert cell is not None
        assert len(cell["revisions"]) <= 20
        assert cell["revisions"][-2:] == [
            {"revision": 28, "value": 128.0},
            {"revision": 29, "value": -1.0},
        ]

    def test_which_queries_have_one(self) -> None:
        select = {"who": sash.first("s"), "n": sash.count()}
        q = sash.Query(time="t", by=["s"], window=sash.tumbling(10), select=select)
        made = pa.table({"s": ["a", "b"], "window_start": [0, 10], "who": ["a", "b"], "n": [1, 1]})
        heat = Heat.of(q, made.schema)
        assert heat is not None
        heat.add(made)
        assert (heat.value, heat.shown()["keys"]) == ("n", ["a", "b"])
        session = sash.Query(time="t", window=sash.session(10), select=select)
        assert Heat.of(session, made.schema) is None
        text = sash.Query(time="t", window=sash.tumbling(10), select={"who": sash.first("s")})
        assert Heat.of(text, made.schema) is None


@pytest.fixture
def page() -> Iterator[tuple[Feed, Page]]:
    feed = Feed("flights", explain="the plan", allowance=60_000_000, heat=Heat(["k"], "n"))
    feed.emitted(results([("<b>x</b>", 0, 1.0, 0)]))
    made = serve(feed, port=0)
    with closing(made):
        yield feed, made


def asked(page: Page, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
    port = int(page.url.split(":")[-1].strip("/"))
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def events(page: Page) -> Iterator[Any]:
    """What comes from /events."""
    port = int(page.url.split(":")[-1].strip("/"))
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/events")
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def test_files_and_their_headers(page: tuple[Feed, Page]) -> None:
    _, made = page
    status, headers, body = asked(made, "/")
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    html = body.decode()
    for path in re.findall(r'(?:src|href)="([^"]+)"', html):
        assert path.startswith("/")  # from this server
        assert asked(made, path)[0] == 200
    # a policy of 'self' lets no code or style be written into the page
    assert not re.search(r"<script>|<style|\son\w+=|style=", html)
    assert asked(made, "/", "HEAD")[2] == b""
    assert asked(made, "/nothing")[0] == 404
    assert asked(made, "/../server.py")[0] == 404
    assert asked(made, "/", "POST")[0] == 501


def test_code_makes_nothing_but_text() -> None:
    from importlib.resources import files

    for name in ("page.js", "map.js", "lateness.js"):
        code = files("sash.page").joinpath("static", name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", code)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.io:80", 403),
    ],
)
def test_only_this_machine_is_served(page: tuple[Feed, Page], host: str, status: int) -> None:
    for path in ("/", "/cell?key=0&start=0"):
        assert asked(page[1], path, Host=host)[0] == status


def test_events_follow_the_feed(page: tuple[Feed, Page]) -> None:
    feed, made = page
    messages = events(made)
    first = next(messages)
    assert (first["job"], first["state"], first["explain"]) == ("flights", "starting", "the plan")
    assert first["heat"]["keys"] == ["<b>x</b>"]
    feed.state("running")
    feed.batch(Batch(100.0, 2.0, 30, 40_000_000, {"null time": 2}, 1, 4))
    then = next(messages)
    while not then["batches"]:
        then = next(messages)
    assert (then["state"], then["totals"]["rows"], then["rate"]) == ("running", 30, 15.0)
    assert (then["lag"], then["late"]) == (60.0, {"null time": 2})
    assert "explain" not in then
    feed.failed("the reason")
    last = next(messages)
    assert (last["state"], last["message"]) == ("failed", "the reason")
    threading.Thread(target=made.close).start()
    assert not list(messages)  # the connection ends with the server


def test_a_cell(page: tuple[Feed, Page]) -> None:
    feed, made = page
    number = feed.since(0)["heat"]["numbers"][0]
    status, headers, body = asked(made, f"/cell?key={number}&start=0")
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert json.loads(body)["key"] == "<b>x</b>"
    assert asked(made, f"/cell?key={number}&start=1")[0] == 404
    assert asked(made, "/cell?key=x")[0] == 400


def test_a_port_that_is_taken_is_named(page: tuple[Feed, Page]) -> None:
    port = int(page[1].url.split(":")[-1].strip("/"))
    with pytest.raises(OSError, match=rf"port {port} .* another port, or 0"):
        serve(page[0], port)

"""The live page in a real Chromium: what it shows is the stream's own.

It needs Debian's `chromium-headless-shell`, or any Chromium that SASH_CHROMIUM names.  With
SASH_SHOTS, screenshots are written into that folder.
"""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from playwright.sync_api import Page as Tab

import sash
from sash.page import Batch, Feed, Heat, Page, serve

SECOND = 1_000_000
MINUTE = 60 * SECOND
ALLOWANCE = 90 * SECOND


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = os.environ.get("SASH_CHROMIUM") or shutil.which("chromium-headless-shell")
    if path is None:
        pytest.fail("needs a Chromium: apt-get install chromium-headless-shell", pytrace=False)
    # a name that a foreign site could let resolve to this machine
    rules = "--host-resolver-rules=MAP foreign.example 127.0.0.1"
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", rules])
        yield made
        made.close()


#: What went wrong in tabs.
WRONG: list[str] = []


@pytest.fixture(autouse=True)
def nothing_goes_wrong() -> Iterator[None]:
    WRONG.clear()
    yield
    assert WRONG == []


@dataclass
class Run:
    """A stream that was run, and its page."""

    stream: sash.Stream
    feed: Feed
    page: Page
    results: list[dict[str, Any]]
    watermark: int
    rows: int


@pytest.fixture
def run() -> Iterator[Run]:
    """A live stream of three keys over ten minutes, out of order, reported batch by batch."""
    q = sash.Query(time="t", by=["k"], window=sash.tumbling("1 minute"), select={"n": sash.count()})
    s = q.stream(lateness=ALLOWANCE, mode="live")
    start = int(time.time() // 60 - 30) * MINUTE
    feed = Feed("three keys", explain="tumbling('1 minute')\n  by k", allowance=ALLOWANCE)
    feed._heat = Heat(["k"], "n")
    feed.state("running")
    results, rows, before = [], 0, [0] * len(s.delays)
    keys = ["<b>x</b>", "plain", None]
    for i in range(10):
        # some of each minute's rows come two and five minutes late
        late = [2 * MINUTE] * (i == 4) + [5 * MINUTE] * (i == 8)
        times = [start + i * MINUTE + j * 7 * SECOND for j in range(8)]
        times += [start + i * MINUTE - d for d in late]
        batch = pa.table(
            {
                "t": pa.array(times, pa.timestamp("us", "UTC")),
                "k": pa.array([keys[j % (3 if i % 2 else 2)] for j in range(len(times))]),
            }
        )
        made = s.push(batch)
        missed, counts = s.take_late(), s.counts
        feed.late(missed)
        feed.emitted(made)
        results += made.to_pylist()
        rows += batch.num_rows
        delays = [new - old for new, old in zip(s.delays, before, strict=True)]
        before = s.delays
        reasons = missed["reason"].to_pylist()
        told = {why: reasons.count(why) for why in reasons}
        again = int((made["revision"].to_numpy() > 0).sum())
        assert counts["rows"] == rows
        watermark = s.watermark or 0
        size = s.state_size()["bytes"]
        at = time.time() - 10 + i
        feed.batch(
            Batch(at, 0.5, batch.num_rows, watermark, told, again, made.num_rows, size, delays)
        )
    with closing(serve(feed, 0)) as page:
        yield Run(s, feed, page, results, watermark, rows)


def opened(browser: Browser, run: Run, width: int = 1280, scheme: Any = "light") -> Tab:
    """A tab with the page, in which nothing may go wrong, and which may ask nobody else."""
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.on("pageerror", lambda error: WRONG.append(str(error)))
    tab.on("console", lambda said: WRONG.append(said.text) if said.type == "error" else None)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(run.page.url)
    expect(tab.locator("#rows")).not_to_have_text("–")
    assert asked
    assert all(url.startswith(run.page.url) for url in asked)
    return tab


def text(tab: Tab, name: str) -> str:
    return tab.locator(f"#{name}").inner_text()


def test_each_number_is_the_streams_own(browser: Browser, run: Run) -> None:
    tab = opened(browser, run)
    counts = run.stream.counts
    assert text(tab, "rows") == f"{counts['rows']:,}"
    assert text(tab, "emitted") == f"{counts['emitted']:,}"
    corrections = sum(row["revision"] > 0 for row in run.results)
    assert corrections > 0
    assert text(tab, "corrections") == f"{corrections:,}"
    assert counts["late"] > 0
    assert text(tab, "late") == f"{counts['late']:,}"
    assert f"{counts['late']}: all its windows were closed" in text(tab, "reasons")
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(run.watermark / SECOND))
    assert text(tab, "watermark").replace("\n", " ") == moment
    assert text(tab, "rate") == "16"
    assert text(tab, "lag").endswith("min")
    assert text(tab, "bytes").endswith("B")
    assert "running" in text(tab, "state")
    assert text(tab, "explain") == "tumbling('1 minute')\n  by k"
    assert tab.locator("canvas").count() >= 4  # two charts, the histogram, the map


def test_dragging_the_line_counts_rows_that_came_later(browser: Browser, run: Run) -> None:
    tab = opened(browser, run)
    delays = run.stream.delays
    line = tab.locator("#lateness")
    line.scroll_into_view_if_needed()
    box = line.bounding_box()
    assert box is not None
    each = (box["width"] - 16) / 24
    y = box["y"] + 50
    tab.mouse.move(box["x"] + 8 + 6 * each, y)
    tab.mouse.down()
    for bucket in (6, 1, 8):
        tab.mouse.move(box["x"] + 8 + bucket * each, y, steps=4)
        later = sum(delays[bucket + 1 :])
        assert text(tab, "later").startswith(f"{later} of {sum(delays)} rows")
    tab.mouse.up()
    assert later > 0
    line.focus()
    tab.keyboard.press("ArrowRight")
    assert text(tab, "later").startswith(f"{sum(delays[10:])} of")
    assert line.get_attribute("aria-valuenow") == "9"


def test_a_click_shows_revisions_and_late_rows(browser: Browser, run: Run) -> None:
    tab = opened(browser, run)
    heat = run.feed.since(0)["heat"]
    canvas = tab.locator("#map")
    box = canvas.bounding_box()
    assert box is not None
    label = min(140, max(60, box["width"] * 0.22))
    each = (box["width"] - label) / len(heat["starts"])

    def click(i: int, j: int) -> None:
        canvas.click(position={"x": label + (j + 0.5) * each, "y": i * 16 + 8})
        start = time.strftime("%H:%M", time.gmtime(heat["starts"][j] / SECOND))
        expect(tab.locator("#cell-title")).to_contain_text(start)

    row = heat["keys"].index("<b>x</b>")
    column = next(j for i, j in heat["corrected"] if i == row)
    click(row, column)
    assert text(tab, "cell-title").startswith("<b>x</b>, window from")
    shown = tab.locator("#cell-revisions tr").all_inner_texts()
    start = heat["starts"][column]
    expected = [
        f"{r['revision']}\t{r['n']}"
        for r in run.results
        if r["k"] == "<b>x</b>" and int(r["window_start"].timestamp() * SECOND) == start
    ]
    assert [" ".join(line.split()) for line in shown] == [" ".join(e.split()) for e in expected]
    assert len(shown) > 1
    missed = 3  # five minutes before the ninth
    click(row, missed)
    assert "1 late row(s) missed it" in text(tab, "cell")
    assert "k = <b>x</b>" in text(tab, "cell-late")
    assert tab.locator("b").count() == 0  # what looks like HTML is text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_it_fits_its_window(browser: Browser, run: Run, width: int, scheme: str) -> None:
    tab = opened(browser, run, width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(ground[4:].split(",")[0]) < 128) == (scheme == "dark")
    tab.set_viewport_size({"width": 700, "height": 900})
    tab.wait_for_timeout(100)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 700
    tab.set_viewport_size({"width": width, "height": 900})
    tab.wait_for_timeout(100)
    if folder := os.environ.get("SASH_SHOTS"):
        tab.screenshot(path=Path(folder) / f"page-{width}-{scheme}.png", full_page=True)


def test_labels_of_old_data_have_room(browser: Browser, run: Run) -> None:
    """The lag of a replay is long, and so is the text beside the chart."""
    tab = opened(browser, run)
    left = "document.querySelector('#lag-chart .u-over').offsetLeft"
    before = tab.evaluate(left)
    run.feed.batch(Batch(time.time(), 1.0, 1, watermark=1_600_000_000 * SECOND))
    expect(tab.locator("#lag")).to_have_text("replay")
    tab.wait_for_function(f"{left} > {before} + 10")


def test_it_follows_the_job_to_its_end_and_stays(browser: Browser, run: Run) -> None:
    tab = opened(browser, run)
    run.feed.note("the window from 10:00 waits for an event after 10:11")
    run.feed.batch(Batch(time.time(), 1.0, 1000))
    expect(tab.locator("#rows")).to_have_text(f"{run.rows + 1000:,}")
    assert "waits for an event" in text(tab, "note")
    run.feed.failed("no such file: <i>in</i>")
    expect(tab.locator("#what")).to_have_text("failed")
    assert text(tab, "message") == "no such file: <i>in</i>"
    run.page.close()
    tab.wait_for_timeout(500)
    WRONG.clear()  # the browser tries to connect again
    assert text(tab, "what") == "failed"
    assert text(tab, "rows") == f"{run.rows + 1000:,}"


def test_a_foreign_name_is_refused(browser: Browser, run: Run) -> None:
    tab = browser.new_page()
    port = run.page.url.split(":")[-1]
    answer = tab.goto(f"http://foreign.example:{port}")
    assert answer is not None
    assert answer.status == 403
    assert "three keys" not in tab.content()


def test_memory_does_not_grow_with_micro_batches() -> None:
    feed = Feed("job", heat=Heat(["k"], "n"))

    def report(batches: range) -> int:
        for i in batches:
            keys = [f"key {(i * 7 + j) % 5000}" for j in range(20)]
            starts = pa.array([i * MINUTE] * 20, pa.timestamp("us"))
            feed.emitted(pa.table({"k": keys, "window_start": starts, "n": list(range(20))}))
            feed.batch(Batch(float(i), 1.0, 20, i * MINUTE, {"late": 1}, 0, 20, 100, [1] * 25))
        feed.since(0)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = report(range(100))
    assert report(range(100, 10_100)) - before < 30_000  # kilobytes

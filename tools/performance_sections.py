"""The sections of docs/performance.md: questions, the workloads that answer them, and what a reader
needs to know of them.  Figures are none of its business."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SECTIONS", "SPARK_PARTS", "TEXT", "UNMEASURED", "Part", "Section"]


@dataclass(frozen=True)
class Part:
    """Workloads by the patterns of their names.  `peers` are those that are shown, if not all."""

    title: str
    names: tuple[str, ...]
    peers: tuple[str, ...] | None = None
    text: str = ""


@dataclass(frozen=True)
class Section:
    """A question, what there is to know, and the parts that answer it."""

    title: str
    parts: tuple[Part, ...]
    text: str = ""


TEXT = """\
# Performance

Written by `python tools/performance.py` from the figures in `benchmarks/figures`, which
`python -m benchmarks --save` and `python -m benchmarks.spark --save` keep. What is promised are
ratios to other libraries in the same run, side by side: 0.5 means half the peer's time. Where a
column is headed by a peer, it has the peer's own time first. Seconds are this machine's. A bound is
shown beside its figure, with PASS or MISS. How the runner measures is in
[benchmarks/README.md](../benchmarks/README.md)."""

UNMEASURED = """\
Apart from the runner, because their code does not come with this project: DABA, DABA Lite and
FlatFIT beside their authors' C++ (≤ 0.9). By a window of 1,024 they take 0.14 to 0.84 of its time;
by one of 2^20 operators of one's own take 0.12 to 0.63, `max` of DABA 0.53 and of DABA Lite 0.66,
`sum` of DABA 0.66 and of DABA Lite 0.92 (missed), if the C++ makes a new array of answers too. If
it writes into an array that it has, `max` and `sum` of DABA Lite take 1.4 and 1.6 of its time,
those of DABA 0.8 and 0.9 (on a busy machine)
([how it was measured](design.md#kernels-one-source-three-ways-to-run))."""

_TABLES = ("run-tumbling-*", "run-random-60", "run-trailing")

SECTIONS = (
    Section(
        "How fast is a table?",
        (
            Part(
                "Windows that overlap, max and mean",
                ("run-1", "run-10", "run-60", "run-600", "run-3600", "run-mixed"),
                text="Polars' `group_by_dynamic` gets its rows as it likes them best, in order of "
                "key and time, and once with keys mixed, as a stream leaves them.",
            ),
            Part(
                "Tables as users have them",
                ("run-tumbling-*", "run-random-60"),
                ("Polars", "DuckDB"),
                text="Two threads, and peers on both cores. Where windows overlap, Polars has the "
                "sort that it needs.",
            ),
            Part("Two keys of text", ("run-two-text-keys",)),
            Part("A row of the result, whatever size/slide is", ("run-flat",)),
            Part(
                "Peak of memory",
                ("run-memory",),
                text="Above what the process holds once it has its input; the result is in it.",
            ),
            Part("A statement of SQL beside its query", ("sql-*",)),
        ),
    ),
    Section(
        "How fast is a stream?",
        (
            Part(
                "Batches",
                ("stream-final", "stream-live", "stream-waits", "stream-many-keys"),
                text="Three million events a second are 333.3 ns an event. With 1,000 keys and "
                "3,600 slices the state is larger than the processor's caches.",
            ),
            Part(
                "A stream that is called often",
                ("small-pushes", "small-pushes-events"),
                text="100 keys, windows of an hour every minute, a thousand events a second. A "
                "question after each event, events of which each lets windows fall due, and events "
                "that make the windows have no bound.",
            ),
        ),
    ),
    Section(
        "What does the first result cost?",
        (
            Part("A first result", ("first-result", "first-use", "second-process")),
            Part("Importing sash, and the command line", ("import", "command-line")),
        ),
        text="Each figure is of a new process. *Empty cache* compiles all kernels that the query "
        "needs; *warm cache* has them from an earlier process. `import sash` and numba's import "
        "are in the figures of `run` and `stream`.",
    ),
    Section(
        "All cores",
        (
            Part("Tables, two threads beside one", _TABLES, ("one thread",)),
            Part("Streams", ("stream-threads", "stream-two-at-once")),
        ),
        text="Results are the same to the bit for any number of threads. A push of 65,536 rows or "
        "more into a stream takes its keys side by side; a smaller one runs in one thread. Two "
        "streams in two threads do not wait for each other but where Python itself is at work.",
    ),
    Section(
        "Text",
        (
            Part("Tables", ("run-text", "run-text-each", "run-collect")),
            Part("Streams, by processor time", ("stream-text-*",)),
        ),
        text="Text, dates, decimals and bytes run compiled, as numbers that stand for them; the "
        "peer is the same query over whole numbers. `collect` is beside writing as many numbers.",
    ),
    Section(
        "Many windows at once",
        (
            Part(
                "Queries that share a plan",
                ("shared-table", "shared-stream"),
                text="A million events of 100 keys, on one core. The 100 queries emit 5 % as many "
                "rows as there are events.",
            ),
            Part(
                "Queries that share a plan and emit many rows",
                ("shared-many-rows-*", "shared-nested-rows-*"),
                text="Slides with few edges in common, and nested ones. To write the rows as "
                "columns is to copy them in memory, which takes less than one query alone.",
            ),
            Part("Ten trailing sizes in one row", ("trailing-sizes-*",)),
            Part(
                "All ranges 1 … n at each slide (FlatFIT's second experiment)",
                ("all-ranges-*",),
                text="The paper's Figures 14 and 15 have FlatFIT at 10 times FlatFAT's throughput "
                "on average and at 17 times at most, over windows up to 2^27, in the authors' "
                "code. Here each algorithm is a kernel over the same primitives.",
            ),
        ),
    ),
    Section(
        "Windows that events drive",
        (
            Part(
                "The hour before each row",
                ("trailing-[!s]*", "trailing-stddev-*"),
                text="Rows in order of time. Polars has `rolling_*_by`, for arg_max and a user's "
                "operator its rolling max, which does less; DuckDB has SQL's RANGE.",
            ),
            Part("The last 1,000 rows", ("rows-*",)),
            Part("Sessions", ("session",)),
        ),
    ),
    Section(
        "What do aggregates cost beyond their operator?",
        (
            Part("Conditions, decimals, exact sums and medians", ("aggregate-[!a]*",)),
            Part("Answers as of a moment", ("aggregate-as-of",)),
        ),
    ),
    Section(
        "What do lateness and the live page cost?",
        (
            Part(
                "sash.lateness, 20 allowances",
                ("lateness-*",),
                text="300 ns a row are 3 s for ten million rows.",
            ),
            Part("The live page of a job", ("page-*",)),
        ),
    ),
    Section(
        "Stores",
        (
            Part(
                "A round of `slide` over a full window",
                ("stored-rounds-*",),
                text="With the paper's sizes, a cache of 512 nodes and a buffer of 256, most of a "
                "round is Python at the end of each page of 256 nodes; hence the default, pages of "
                "128 KB. The paper has about 1 µs for what a store adds.",
            ),
            Part("Bulk eviction", ("stored-bulk",)),
            Part(
                "Memory",
                ("stored-memory",),
                text="Above a process that has numba and rocksdict loaded; most of what a stored "
                "window takes is RocksDB's own. The chart, Experiment 4 of the paper on Amta, is "
                "drawn by `python -m benchmarks.stored_memory`.\n\n"
                "![the largest window by memory limit](images/stored-memory.png)",
            ),
            Part(
                "A stream of ten million keys",
                ("stored-keys*",),
                text="Batches of 1 M rows, count and max, `sync` after each. A batch of random "
                "keys touches every part of the state, so its cost grows with the state. 50,000 "
                "events a second are 20 µs an event.",
            ),
        ),
    ),
    Section(
        "One window",
        (
            Part("A whole array", ("max-*", "flat")),
            Part("Operators of one's own", ("user-operator", "ready-*")),
            Part("Other operators", ("mean", "stddev", "arg_max")),
            Part("Single operations from Python", ("round",)),
        ),
        text="`slide` over an array of ten million values. *First call* is the time to compile, "
        "with an empty cache, numba's import apart.",
    ),
    Section(
        "Bulk eviction and policies",
        (Part("", ("amta-*",)),),
        text="DabaLite has no policies: it is told the size, and finds the same answers in a "
        "window that is never cut short. Amta's figures under policies have the growth of the "
        "window from nothing in them.",
    ),
    Section(
        "Out of order",
        (Part("", ("fiba-*", "bulk-*", "memory", "late-*", "retract", "citibike-*")),),
        text="The yardstick of the tables by distance is `bottleneck.move_max(x, 1024, "
        "min_count=1)`, per row. A round is `slide(times, values, count=n)` on a full window: "
        "insert at a fixed distance behind a block of younger events, evict the oldest, query. "
        "Memory per event counts the words in use; the buffer beyond them is reserved and never "
        "touched. The tables of real trips are there where the machine has the data.",
    ),
    Section(
        "Pauses",
        (Part("", ("latency", "latency-*")),),
        text="What is sash's own doing comes at the same operation in each run, so the best of "
        "several runs is what is left of an operation without the machine's interruptions. Classes "
        "without a bound are copied as a whole when they grow; `capacity=` spares them that.",
    ),
)

SPARK_PARTS = {
    "": """\
## On Spark beside `window()`

`make bench-spark`: Spark in local mode on two cores, as many shuffle partitions as cores. A stream
is read from files and written to Parquet; the time of a micro-batch is what Spark reports for it,
the median of those after the first. sash keeps its state in RocksDB with its changelog; the native
side has Spark's default store, in memory, which serves it better, unless a line says otherwise.
Most of what a first micro-batch takes more is Spark's, which first starts a Python process on the
driver.""",
    "streaming": "A micro-batch as size/slide grows",
    "many-keys": "Many keys",
    "few-rows": "Few rows and many keys in state",
    "batch": "Batch, one key",
    "beside-window-tables": "sash beside `window()`: tables",
    "beside-window-small-100": "sash beside `window()`: small micro-batches, 100 keys",
    "beside-window-small-100000": "sash beside `window()`: small micro-batches, 100,000 keys",
    "beside-window-large-100": "sash beside `window()`: large micro-batches, 100 keys",
    "beside-window-large-100000": "sash beside `window()`: large micro-batches, 100,000 keys",
    "million-keys": "A million keys",
    "event-windows": "Windows that events drive",
    "ways": "Every window",
    "random-order": "Rows in random order",
    "large-batches": "Large micro-batches",
    "micro-batches": "Small micro-batches",
    "as-of": "Answers as of a moment",
    "sql": "Statements of SQL",
    "sizes": "Several sizes in one row",
    "shared": "Queries that share a plan",
}

"""What each way to run a query refuses.  Only this module decides it, and the table in the docs is
generated from it.

A place is a way to run a query.  If a place lacks an ability, it refuses a query that asks for it
when the query is set up, with the reason.  If the place has no argument to ask for the ability,
there is nothing to refuse, and only the table names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

from ..kernels.core import encoder
from ..query.plan import Plan
from ..query.query import Query
from ..tables.arrow import has_tie_number
from ..windows import Aligned, Merging, Session, Trailing

__all__ = ["ABILITIES", "PLACES", "Ability", "Asked", "Place", "check", "table"]

Place = Literal[
    "Query.run", "Query.stream", "Query.stream, in a store", "Spark batch", "Spark stream"
]
PLACES: tuple[Place, ...] = get_args(Place)
#: Streams whose state is in a store.
_STORED: tuple[Place, ...] = ("Query.stream, in a store", "Spark stream")


@dataclass(frozen=True)
class Asked:
    """A query and settings for a place to run.  The plan is None while column types are unknown."""

    query: Query
    plan: Plan | None = None
    mode: str = "final"
    early: bool = False
    late: bool = False


@dataclass(frozen=True)
class Ability:
    """Something a user may ask for, and why some places lack it."""

    what: str
    refused: dict[Place, str] = field(default_factory=dict)
    asked: Callable[[Asked], bool] | None = None
    error: type[Exception] = ValueError


def _ordered(asked: Asked) -> bool:
    if asked.query.window.kind == "driven" and asked.mode == "final":  # behind the watermark
        return False
    return asked.query.tie is not None and _needs_order(asked)


def _needs_order(asked: Asked) -> bool:
    """True if an aggregate needs events in order; that does not depend on the columns' types."""
    if asked.plan is not None:
        return asked.plan.ordered
    return not all(a.operator.commutative for a in asked.query.select.values())


def _ordered_by_events(asked: Asked) -> bool:
    return _ordered(asked) and asked.query.window.kind != "aligned"


def _text_tie(asked: Asked) -> bool:
    if not _ordered(asked) or asked.plan is None:
        return False
    return not has_tie_number(asked.plan.schema.field(asked.query.tie).type)


def _without_codec(asked: Asked) -> bool:
    for group in asked.plan.groups if asked.plan else ():
        if group.operator.shape == "object":
            encoder(group.operator)  # raises an error that names the operator
    return False


def _driven(asked: Asked) -> bool:
    return asked.query.window.kind == "driven"


def _by_time(asked: Asked) -> bool:
    """True if each event has a window that is a span of time."""
    return isinstance(asked.query.window, Trailing)


def _excludes(asked: Asked) -> bool:
    window = asked.query.window
    return isinstance(window, Trailing) and window.excludes_some


def _lifetime(asked: Asked) -> bool:
    window = asked.query.window
    return isinstance(window, Trailing) and window.length is None


def _several_aligned(asked: Asked) -> bool:
    return asked.query.several and not _by_time(asked)


def _ordered_lifetime(asked: Asked) -> bool:
    if not _several_aligned(asked):
        return False
    return _needs_order(asked) and None in asked.query.sizes.values()


def _endless_quantile(asked: Asked) -> bool:
    return any(
        a.operator.ready in ("quantile", "median") and asked.query.sizes[name] is None
        for name, a in asked.query.select.items()
        if _lifetime(asked) or a.size == "lifetime"
    )


def _empty(asked: Asked) -> bool:
    window = asked.query.window
    return isinstance(window, Aligned) and window.empty is not None


def _session(asked: Asked) -> bool:
    return isinstance(asked.query.window, Merging)


def _cuts_peers(asked: Asked) -> bool:
    return isinstance(asked.query.window, Session) and asked.query.window.cuts_peers


def _names_deleted(asked: Asked) -> bool:
    return "deleted" in (*asked.query.by, *asked.query.select)


_ONCE = "it has all its rows, and emits each window once"
_ARRIVAL = (
    "on a stream in this process, events of one time are in the order of their arrival, and `tie` "
    "cannot put them into another, unless events drive the window in final mode; leave it out, or "
    "select only what has no order"
)


def _lacks_live(why: str) -> dict[Place, str]:
    """Reasons for every place to refuse an ability of live mode: `why` for streams, and for tables
    that they have no modes."""
    table = f"mode='live' is for streams; a table is not one: {_ONCE}"
    lacks = dict.fromkeys(PLACES, why)
    return lacks | dict.fromkeys(("Query.run", "Spark batch"), table)


ABILITIES = (
    Ability("windows aligned to the clock: `sliding`, `tumbling`, `cumulate`"),
    Ability("windows of a calendar: `sliding` and `tumbling` with a `timezone`"),
    Ability("windows that hold nothing: `empty='zero'` with `idle`"),
    Ability(
        "`empty='zero'` without `idle`",
        dict.fromkeys(
            ("Query.stream", *_STORED),
            "a stream with empty='zero' remembers the last window of each key; give idle='30 "
            "days', say, after which it forgets a key, and a later event starts anew",
        ),
        lambda asked: _empty(asked) and asked.query.aligned.idle is None,
    ),
    Ability(
        "`empty='zero'` in live mode",
        dict.fromkeys(
            PLACES,
            "empty='zero' needs mode='final': in live mode a late event may fill a window that was "
            "emitted as empty, or end a gap elsewhere",
        ),
        lambda asked: asked.mode == "live" and _empty(asked),
    ),
    Ability(
        "`empty='zero'` with `emit='changes'`",
        dict.fromkeys(
            PLACES,
            "empty='zero' emits windows without events, and emit='changes' leaves out windows; "
            "give one of them",
        ),
        lambda asked: asked.query.emit == "changes" and _empty(asked),
    ),
    Ability("a window for each event: `trailing`, `lifetime`"),
    Ability("`trailing` and `lifetime` with `exclude='row'` or `'ties'`"),
    Ability("`lifetime(delay=…)`"),
    Ability("several sizes in one row, `sash.count().over('1 day')`, of `trailing` and `lifetime`"),
    Ability("several sizes in one row of `sliding` and `tumbling`"),
    Ability(
        "several sizes in one row of `sliding` and `tumbling` with `empty='zero'`",
        dict.fromkeys(
            PLACES,
            "a window that holds nothing is emitted without looking at longer ones, so "
            "empty='zero' and `over` exclude each other; leave one of them out",
        ),
        lambda asked: _several_aligned(asked) and _empty(asked),
    ),
    Ability(
        "several sizes in one row of other windows: calendars, `cumulate`, `session`, `rows`, …",
        dict.fromkeys(
            PLACES,
            "only spans of time with one fixed length end together at any size; `sash.Query` "
            "refuses others when it is made",
        ),
    ),
    Ability(
        "`over(sash.lifetime())` with `sliding`, where the order of events matters",
        {
            "Query.stream": "all that every later window holds is one partial here, and a late "
            "event belongs into its middle; give a size, or select only what has no order",
        },
        _ordered_lifetime,
    ),
    Ability(
        "exact `quantile` and `median` over a `lifetime`",
        dict.fromkeys(
            PLACES,
            "an exact quantile keeps all values of its window, and a lifetime never lets one go; "
            "use sash.quantiles('x', 0.5), which estimates in fixed space, or another window",
        ),
        _endless_quantile,
    ),
    Ability("`rows`, `delta`, `punctuated`, `window(keep=…, every=…)`, policies"),
    Ability("`session`"),
    Ability(
        "`session` with a column of gaps and `max_size`, in live mode",
        _lacks_live(
            "with a column of gaps and a max_size, two sessions of a key may start at one time, "
            "and in live mode a session is known by its start; use mode='final', leave out "
            "max_size, or give one gap for all"
        ),
        lambda asked: asked.mode == "live" and _cuts_peers(asked),
    ),
    Ability(
        "`session` with a key or an aggregate that is named `deleted`, in live mode",
        _lacks_live(
            "in live mode, sessions have a column `deleted` of their own; choose another name"
        ),
        lambda asked: asked.mode == "live" and _session(asked) and _names_deleted(asked),
    ),
    Ability("`mode='final'`: each window once, when it closes"),
    Ability(
        "`mode='live'`: windows as soon as stream time passes them, and again when they change",
        dict.fromkeys(
            ("Query.run", "Spark batch"), f"mode='live' is for streams; a table is not one: {_ONCE}"
        ),
        lambda asked: asked.mode == "live",
    ),
    Ability(
        "`mode='live'` of `lifetime`",
        _lacks_live(
            "mode='live' would change all later rows of a key with each late event, and a lifetime "
            "keeps one partial a key; use mode='final', or sash.trailing"
        ),
        lambda asked: asked.mode == "live" and _lifetime(asked),
    ),
    Ability(
        "`mode='live'` of `trailing` with `exclude='row'` or `'ties'`",
        _lacks_live(
            "in live mode, the events of one time are kept as one partial, and exclude='row' or "
            "'ties' would take it apart; use mode='final', exclude='group', or closed='left'"
        ),
        lambda asked: asked.mode == "live" and _excludes(asked),
    ),
    Ability(
        "`mode='live'` of `rows`, `delta`, `punctuated`, `window(keep=…, every=…)`, policies",
        _lacks_live(
            "what these windows hold goes by all of a key's earlier events, so a late one would "
            "change all later rows; use mode='final', which emits them behind the watermark"
        ),
        lambda asked: asked.mode == "live" and _driven(asked) and not _by_time(asked),
    ),
    Ability(
        "`early=True` for windows that events make",
        dict.fromkeys(
            PLACES,
            "early=True is for windows that end by the clock; in live mode the "
            "row of an event, or of its session, comes at once",
        ),
        lambda asked: asked.early and asked.query.window.kind != "aligned",
    ),
    Ability("`emit='changes'` in final mode, for windows aligned to the clock"),
    Ability(
        "`emit='changes'` for other windows",
        dict.fromkeys(
            PLACES,
            "emit='changes' leaves out a window that is as the one a slide before it, and only "
            "windows that are aligned to the clock have one; leave `emit` out",
        ),
        lambda asked: asked.query.emit == "changes" and asked.query.window.kind != "aligned",
    ),
    Ability(
        "`emit='changes'` in live mode",
        dict.fromkeys(
            PLACES,
            "emit='changes' needs mode='final': in live mode the window before may still be "
            "revised, so whether a window differs from it is not settled",
        ),
        lambda asked: asked.mode == "live" and asked.query.emit == "changes",
    ),
    Ability(
        "`early=True`, in live mode: the window that ends next, as it stands",
        dict.fromkeys(
            ("Query.run", "Spark batch", *_STORED),
            "early=True emits a window of every key after each batch, which only a state in memory "
            "can do cheaply",
        ),
        lambda asked: asked.early,
    ),
    Ability(
        "late rows on a second output",
        dict.fromkeys(
            ("Query.run", "Spark batch"),
            f"late=True is for streams; a table has no late rows: {_ONCE}",
        ),
        lambda asked: asked.late,
    ),
    Ability(
        "`tie`, where the order of events matters: numbers and times",
        {"Query.stream": _ARRIVAL},
        _ordered,
    ),
    Ability(
        "`tie`, where the order of events matters, for `session`, and for `trailing` in live mode",
        {
            "Query.stream": _ARRIVAL,
            **dict.fromkeys(
                _STORED,
                "a session, and a window for each event in live mode, keeps the events of one time "
                "as one partial, in the order of their arrival, and `tie` cannot put them into "
                "another; leave it out, or select only what has no order",
            ),
        },
        _ordered_by_events,
    ),
    Ability(
        "`tie`, where the order of events matters: text",
        {
            "Query.stream": _ARRIVAL,
            **dict.fromkeys(
                _STORED,
                "a tie column of text cannot be kept in a stream's state: use one of numbers or "
                "times",
            ),
        },
        _text_tie,
        TypeError,
    ),
    Ability(
        "nanoseconds of times, which put events of one microsecond in order",
        {
            **dict.fromkeys(
                ("Query.stream", "Query.stream, in a store"),
                "those of one batch; events of several batches are in the order of their arrival",
            ),
            **dict.fromkeys(("Spark batch", "Spark stream"), "Spark has none; use `tie`"),
        },
    ),
    Ability(
        "partials that are Python objects without `encode` and `decode`",
        dict.fromkeys(_STORED, "its state leaves the process, as bytes"),
        _without_codec,
        TypeError,
    ),
    Ability(
        "the values of `trailing` and `lifetime`, without `exclude='row'` or `'ties'`, as of any "
        "moment (`Query.at`, `Stream.query(at=…)`, `sash.spark.at`)",
        {"Spark stream": "its state cannot be asked"},
    ),
    Ability(
        "a key's values over any range of what is kept (`Stream.query`), of windows aligned to the "
        "clock",
        dict.fromkeys(("Query.run", "Spark batch", "Spark stream"), "there is no state to ask"),
    ),
    Ability(
        "the whole state as bytes (`Stream.to_bytes`)",
        {
            "Query.run": "there is no state",
            "Spark batch": "there is no state",
            "Spark stream": "Spark's checkpoint is that",
        },
    ),
)


def check(place: Place, asked: Asked) -> None:
    """Raise an error if a place lacks an ability that the query or its settings need."""
    if asked.early and asked.mode != "live":
        raise ValueError("early=True emits windows before they end, so it needs mode='live'")
    for ability in ABILITIES:
        why = ability.refused.get(place)
        if why is not None and ability.asked is not None and ability.asked(asked):
            raise ability.error(why)


def table() -> str:
    """The table of abilities and places, as Markdown."""
    lines = [f"| | {' | '.join(PLACES)} |", "|---|" + "---|" * len(PLACES)]
    notes: dict[str, int] = {}
    for ability in ABILITIES:
        cells = []
        for place in PLACES:
            why = ability.refused.get(place)
            cells.append("yes" if why is None else f"no [{notes.setdefault(why, len(notes) + 1)}]")
        lines.append(f"| {ability.what} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"{number}. {why}" for why, number in notes.items()]
    return "\n".join(lines)

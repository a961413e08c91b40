"""Windows: which events each result covers, and when sash emits it.

contract    the kinds of window, and the methods of each kind
durations   lengths of time, as users write them
sliding     windows of one size at regular distances
calendars   windows of days, weeks, months and years of a time zone
months      days and months by number
zones       when the days of a time zone begin
tumbling    windows of one size, one after the other
empty       windows without events, between two windows of a key with events
cumulate    windows that start together and end one step after the other
trailing    a window for each event, over the time up to it
rows        the last n events of a key
delta       events whose values are close to the newest event's value
punctuated  events between marks
kept        windows that keep events by one measure and fire by another
ruled       the events that a policy keeps
session     events that are close to each other
"""

from .calendars import Calendar
from .contract import Aligned, Driven, Merging, Sized, Ticked, Window
from .cumulate import Cumulate, cumulate
from .delta import Delta, delta
from .durations import duration, duration_text
from .kept import Kept, KeptByClock, window
from .punctuated import Punctuated, punctuated
from .rows import Rows, rows
from .ruled import Ruled
from .session import Session, session
from .sliding import Sliding, sliding
from .trailing import Trailing, lifetime, trailing
from .tumbling import tumbling

__all__ = [
    "Aligned",
    "Calendar",
    "Cumulate",
    "Delta",
    "Driven",
    "Kept",
    "KeptByClock",
    "Merging",
    "Punctuated",
    "Rows",
    "Ruled",
    "Session",
    "Sized",
    "Sliding",
    "Ticked",
    "Trailing",
    "Window",
    "cumulate",
    "delta",
    "duration",
    "duration_text",
    "lifetime",
    "punctuated",
    "rows",
    "session",
    "sliding",
    "trailing",
    "tumbling",
    "window",
]

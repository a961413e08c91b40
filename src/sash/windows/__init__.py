"""Which spans of a stream are asked for.

contract    the kinds of window and their questions
durations   lengths of time, as users write them
sliding     windows of one size at regular distances
calendars   windows of days, weeks, months and years of a time zone
months      days and months by number
zones       when the days of a time zone begin
tumbling    windows of one size, one after the other
empty       windows that hold nothing, between those of a key that do
cumulate    windows that start together and end one step after the other
trailing    a window for each event, over the time up to it
rows        the last so many events of a key
delta       events whose values are close to the youngest
punctuated  events between marks
kept        what is kept by one measure, at every so much of another
ruled       what a policy lets stay
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

"""Which spans of a stream are asked for.

contract    the kinds of window and their questions
durations   lengths of time, as users write them
sliding     windows of one size at regular distances
tumbling    windows of one size, one after the other
cumulate    windows that start together and end one step after the other
trailing    a window for each event, over the time up to it
rows        the last so many events of a key
session     events that are close to each other
"""

from .contract import Aligned, Driven, Merging, Window
from .cumulate import Cumulate, cumulate
from .durations import duration, duration_text
from .rows import Rows, rows
from .session import Session, session
from .sliding import Sliding, sliding
from .trailing import Trailing, lifetime, trailing
from .tumbling import tumbling

__all__ = [
    "Aligned",
    "Cumulate",
    "Driven",
    "Merging",
    "Rows",
    "Session",
    "Sliding",
    "Trailing",
    "Window",
    "cumulate",
    "duration",
    "duration_text",
    "lifetime",
    "rows",
    "session",
    "sliding",
    "trailing",
    "tumbling",
]

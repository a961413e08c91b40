"""Which spans of a stream are asked for.

contract    the kinds of window and their questions
durations   lengths of time, as users write them
sliding     windows of one size at regular distances
tumbling    windows of one size, one after the other
cumulate    windows that start together and end one step after the other
trailing    a window for each event, over the time up to it
"""

from .contract import Aligned, Driven, Window
from .cumulate import Cumulate, cumulate
from .durations import duration, duration_text
from .sliding import Sliding, sliding
from .trailing import Trailing, lifetime, trailing
from .tumbling import tumbling

__all__ = [
    "Aligned",
    "Cumulate",
    "Driven",
    "Sliding",
    "Trailing",
    "Window",
    "cumulate",
    "duration",
    "duration_text",
    "lifetime",
    "sliding",
    "trailing",
    "tumbling",
]

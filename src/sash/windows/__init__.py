"""Which spans of a stream are asked for.

contract    the kinds of window and their questions
durations   lengths of time, as users write them
sliding     windows of one size at regular distances
tumbling    windows of one size, one after the other
cumulate    windows that start together and end one step after the other
"""

from .contract import Aligned, Window
from .cumulate import Cumulate, cumulate
from .durations import duration, duration_text
from .sliding import Sliding, sliding
from .tumbling import tumbling

__all__ = [
    "Aligned",
    "Cumulate",
    "Sliding",
    "Window",
    "cumulate",
    "duration",
    "duration_text",
    "sliding",
    "tumbling",
]

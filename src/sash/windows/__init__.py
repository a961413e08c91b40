"""Which spans of a stream are asked for.

durations   lengths of time, as users write them
sliding     windows aligned to the clock: sliding, tumbling
"""

from .durations import duration, duration_text
from .sliding import Sliding, sliding, tumbling

__all__ = ["Sliding", "duration", "duration_text", "sliding", "tumbling"]

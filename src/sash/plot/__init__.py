"""Pictures of results and of lateness, by matplotlib: `pip install 'sash[plots]'`.

Each function returns a `matplotlib.figure.Figure`, which a notebook shows and `savefig` writes.
The functions do not change matplotlib's settings.
"""

from .lateness import lateness
from .results import results

__all__ = ["lateness", "results"]

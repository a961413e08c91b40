"""Aggregators: data structures that keep partials in order and answer queries over them.

One file for each algorithm, under its paper's name.
"""

from .b_int import BInt
from .daba import Daba
from .daba_lite import DabaLite
from .flat_fat import FlatFat
from .flat_fat_fifo import FlatFatFifo
from .flat_fit import FlatFit
from .in_order import InOrder
from .recalc import Recalc
from .subtract_on_evict import SubtractOnEvict
from .two_stacks import TwoStacks
from .two_stacks_lite import TwoStacksLite

__all__ = [
    "BInt",
    "Daba",
    "DabaLite",
    "FlatFat",
    "FlatFatFifo",
    "FlatFit",
    "InOrder",
    "Recalc",
    "SubtractOnEvict",
    "TwoStacks",
    "TwoStacksLite",
]

"""Aggregators: data structures that keep partials in order and answer queries over them.

One file for each algorithm, under its paper's name.
"""

from .amta import Amta
from .b_int import BInt
from .b_tree import BTree
from .cbix import Cbix
from .choose import Choice, choose
from .daba import Daba
from .daba_lite import DabaLite
from .fiba import Fiba
from .flat_fat import FlatFat
from .flat_fat_fifo import FlatFatFifo
from .flat_fit import FlatFit
from .in_order import InOrder
from .log_mta import LogMta
from .reactive import Reactive
from .recalc import Recalc
from .subtract_on_evict import SubtractOnEvict
from .timed_fifo import Timed
from .two_stacks import TwoStacks
from .two_stacks_lite import TwoStacksLite

__all__ = [
    "Amta",
    "BInt",
    "BTree",
    "Cbix",
    "Choice",
    "Daba",
    "DabaLite",
    "Fiba",
    "FlatFat",
    "FlatFatFifo",
    "FlatFit",
    "InOrder",
    "LogMta",
    "Reactive",
    "Recalc",
    "SubtractOnEvict",
    "Timed",
    "TwoStacks",
    "TwoStacksLite",
    "choose",
]

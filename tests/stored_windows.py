"""What tests of stored windows share."""

from __future__ import annotations

from typing import Any

from sash import operators as ops
from sash.aggregators import Amta, LogMta
from sash.aggregators.level_window import LevelWindow

__all__ = ["BOTH", "FIRST_AND_SUM", "SMALL", "SUM"]

BOTH: list[type[LevelWindow]] = [LogMta, Amta]
SUM = ops.sum.of(int)
FIRST_AND_SUM = ops.together(ops.first, ops.sum).of(int)
SMALL: dict[str, Any] = {"cache": 16, "buffer": 16}  # pages of eight nodes

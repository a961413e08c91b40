"""Partials with numbers in place of values, and the values beside them.

A batch is cut with numbers of its own: the rows of its values, or their places in order.  In memory
these numbers become labels of a lasting dictionary (`state.labels`).  A record in a store holds
partials together with their own values.  This module joins the partials of several records under
common numbers, and writes records with their own numbers again.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.columns import Array
from ..kernels.layout import words_of
from ..query.plan import Group, Plan
from ..query.registry import numbered_fields
from ..query.types import value_type
from ..tables.numbers import places_in_order, row_numbers
from .folds import Folds

__all__ = ["Numbered", "NumberedFolds", "folds_of", "numbered_words"]

_SIZE = struct.Struct("<I")


def numbered_words(group: Group) -> dict[int, list[int]]:
    """The words of a group's partials that hold numbers of values, by column.  The number 0 stands
    for no value."""
    made: dict[int, list[int]] = {}
    first = 0
    for part in group.operator.parts:
        if part.shares is not None:
            continue
        for field, column in zip(numbered_fields(part.operator), part.columns, strict=False):
            if group.hows[column] in ("rows", "places"):
                made.setdefault(column, []).append(first + field)
        first += words_of(part.operator)
    return made


@dataclass(frozen=True)
class _Source:
    """The values of a column, by number from 1 on."""

    values: pa.Array

    def take(self, numbers: pa.Array) -> pa.Array:
        return self.values.take(pc.subtract(numbers, 1))


@dataclass(frozen=True)
class Numbered:
    """Partials with numbers from 1 on in place of values, and the values for each column of the
    group."""

    words: Array
    values: Mapping[int, pa.Array]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, at: Any) -> Numbered:
        """The partials at these places."""
        return Numbered(self.words[at], self.values)

    @property
    def sources(self) -> dict[int, _Source]:
        """For each column, its values by number."""
        return {column: _Source(values) for column, values in self.values.items()}


class NumberedFolds(Folds):
    """Combines runs of partials with numbers in place of values."""

    def __init__(self, group: Group, schema: pa.Schema) -> None:
        super().__init__(group.operator)
        self._words = numbered_words(group)
        self._ranked = {column: group.hows[column] == "places" for column in self._words}
        self._schemas = {
            column: pa.schema([("", value_type(schema.field(group.columns[column]).type))])
            for column in self._words
        }

    @property
    def kinds(self) -> str:
        """The types of a partial's words, and of the values beside them."""
        types = [str(schema.field(0).type) for schema in self._schemas.values()]
        return f"{super().kinds} with {', '.join(types)}"

    @property
    def picked(self) -> list[int]:
        """The words with numbers of values that operators only pick: two partials with equal values
        may have different numbers there."""
        return [f for c, fields in self._words.items() if not self._ranked[c] for f in fields]

    def fold(self, partials: Numbered, order: Array, bounds: Array) -> Numbered:
        """Combine each run into one partial.  No run may be empty."""
        return Numbered(super().fold(partials.words, order, bounds), partials.values)

    def take(self, partials: Numbered, order: Array) -> Numbered:
        """The partials at these places, in this order."""
        return partials[order]

    def join(self, many: Sequence[Numbered]) -> Numbered:
        """Concatenate partials, and give all their values common numbers."""
        if len(many) == 1:
            return many[0]
        words: Array = super().join([part.words for part in many])
        sizes = [len(part) for part in many]
        values = {}
        for column, fields in self._words.items():
            none = pa.array([], self._schemas[column].field(0).type)
            given = [part.values[column] for part in many]
            before = np.cumsum([0, *map(len, given[:-1])]) if given else np.zeros(0, np.int64)
            values[column] = pa.concat_arrays([none, *(v for v in given if len(v))])
            held = words[:, fields]
            there = held > 0
            held += np.repeat(before, sizes)[:, None]
            if self._ranked[column]:
                numbers, values[column] = places_in_order(values[column], 1)
                held = np.append(0, numbers.to_numpy())[np.where(there, held, 0)]
            words[:, fields] = np.where(there, held, 0)
        return Numbered(words, values)

    def packed(self, partials: Numbered) -> list[bytes]:
        """Partials as bytes: their words, then for each column the number of bytes of the values
        that the partials hold, and these values."""
        words = partials.words.copy()
        made = [b""]
        for column, fields in self._words.items():
            held = words[:, fields]
            used = np.unique(np.append(held, 0))[1:]
            words[:, fields] = np.where(held > 0, np.searchsorted(used, held) + 1, 0)
            values = partials.values[column].take(pa.array(used - 1))
            batch = pa.RecordBatch.from_arrays([values], schema=self._schemas[column])
            data = batch.serialize().to_pybytes()
            made += [_SIZE.pack(len(data)), data]
        made[0] = words.astype("<i8", copy=False).tobytes()
        return made

    def unpacked(self, body: memoryview, entries: int, at: int) -> tuple[Numbered, int]:
        """Read `entries` partials, which begin at byte `at` of a record's body.  Also return the
        byte at which they end."""
        words = np.frombuffer(body, dtype="<i8", count=entries * self.width, offset=at)
        at += words.nbytes
        values = {}
        for column, schema in self._schemas.items():
            (size,) = _SIZE.unpack_from(body, at)
            at += _SIZE.size
            raw = pa.py_buffer(body[at : at + size])
            values[column] = pa.ipc.read_record_batch(raw, schema).column(0)
            at += size
        return Numbered(words.reshape(entries, self.width), values), at

    def as_column(self, partials: Numbered) -> pa.Array:
        """Partials as a column of structs: the words, and the value of each word that holds a
        number.
        """
        made = {"words": super().as_column(partials.words)}
        for column, fields in self._words.items():
            for field in fields:
                held = partials.words[:, field]
                at = pa.array(held - 1, mask=held == 0)
                kind = (
                    self._schemas[column].field(0).type
                )  # a dictionary without values lacks the type
                made[f"value {field}"] = partials.values[column].take(at).cast(kind)
        return pa.StructArray.from_arrays(list(made.values()), names=list(made))

    def from_column(self, column: pa.Array) -> Numbered:
        """The partials of a column that `as_column` returned."""
        parts = dict(zip(column.type.names, column.flatten(), strict=True))
        words: Array = super().from_column(parts["words"])
        values = {}
        for name, fields in self._words.items():
            given = pa.concat_arrays([parts[f"value {field}"] for field in fields])
            numbered = places_in_order if self._ranked[name] else row_numbers
            numbers, values[name] = numbered(given, 1)
            held = numbers.fill_null(0).to_numpy().reshape(len(fields), len(words))
            words[:, fields] = held.T
        return Numbered(words, values)

    def sizes(self, partials: Numbered) -> Array:
        """The bytes that the values of each partial take."""
        made = np.zeros(len(partials), dtype=np.int64)
        for column, fields in self._words.items():
            values = partials.values[column]
            if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
                each = pc.fill_null(pc.binary_length(values), 0).to_numpy() + 4
            else:
                each = np.full(len(values), -(-values.nbytes // max(len(values), 1)))
            made += np.append(0, each)[partials.words[:, fields]].sum(axis=1)
        return made


def folds_of(plan: Plan) -> list[Folds]:
    """The `Folds` of each group of aggregates: `NumberedFolds` if its partials have numbers in
    place of values."""
    return [
        NumberedFolds(group, plan.schema) if group.labelled else Folds(group.operator)
        for group in plan.groups
    ]

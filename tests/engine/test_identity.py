"""What a query is: state is accepted by the same program only, in whatever process it runs."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import operators as ops
from sash.engine.identity import differences, fingerprint
from sash.engine.stream import Stream
from sash.kernels.fingerprint import digest

SOURCE = Path(sash.__file__).parents[1]
COLUMNS = pa.schema({"t": pa.int64(), "x": pa.int64()})


def program(text: str) -> dict[str, Any]:
    """The names that a program's text defines, as if typed into a session of its own."""
    names: dict[str, Any] = {"__name__": "__main__", "np": np, "sash": sash, "ops": ops}
    names |= {"dataclasses": dataclasses, "functools": functools, "threading": threading}
    exec(textwrap.dedent(text), names)
    return names


def query(text: str, **given: Any) -> sash.Query:
    """A query with an aggregate `spread` by the operator that a program's `make()` returns, or by
    its functions."""
    names = program(text)
    roles = ("identity", "lift", "combine", "lower", "inverse", "encode", "decode", "commutative")
    made = {"identity": 0, "lift": lambda x: x, "combine": max, "compile": False}
    made |= {role: names[role] for role in roles if role in names}
    operator = names["make"]() if "make" in names else sash.operator(**made)
    return sash.Query(
        time="t",
        window=sash.tumbling(10),
        select={"n": sash.count(), "spread": sash.aggregate(operator, "x", returns=pa.int64())},
        **given,
    )


#: A program, what is changed in it, what it becomes, and what is said to differ.
CHANGES = {
    "a global": ("K = 3\ndef combine(a, b): return min(a + b, K)", "K = 3", "K = 4", "combine"),
    "a helper": (
        "def add(a, b): return a + b\ndef combine(a, b): return add(a, b)",
        "a + b\n",
        "a - b\n",
        "combine",
    ),
    "a helper's global": (
        "K = 3\ndef add(a, b): return min(a + b, K)\ndef combine(a, b): return add(a, b)",
        "K = 3",
        "K = 4",
        "combine",
    ),
    "a helper's closure": (
        """
        def add_to(k):
            def add(a, b): return a + b + k
            return add
        add = add_to(3)
        def combine(a, b): return add(a, b)
        """,
        "add_to(3)",
        "add_to(4)",
        "combine",
    ),
    "a closure's array": (
        """
        def over(table): return lambda x: table[x]
        lift = over(np.arange(10))
        """,
        "np.arange(10)",
        "np.arange(10) * 2",
        "lift",
    ),
    "an array's type": ("T = np.zeros(4, 'i8')\ndef lift(x): return T[x]", "i8", "f8", "lift"),
    "an array of objects": (
        "T = np.array(['a', None], dtype=object)\ndef lift(x): return T[x]",
        "'a'",
        "'b'",
        "lift",
    ),
    "a list": ("T = [1, [2, 3]]\ndef lift(x): return T[x]", "3]", "4]", "lift"),
    "a dict": ("T = {'a': {1: 2}}\ndef lift(x): return T[x]", "1: 2", "1: 3", "lift"),
    "a set": ("T = {'a', 'b'}\ndef lift(x): return x in T", "'b'", "'c'", "lift"),
    "a constant": ("def lift(x): return x in {'a', ('b', 1)}", "1)", "2)", "lift"),
    "a default": ("def combine(a, b, k=3): return a + k", "k=3", "k=4", "combine"),
    "a keyword": ("def lift(x, *, k=3): return x + k", "k=3", "k=4", "lift"),
    "a partial": (
        "def add(k, x): return k + x\nlift = functools.partial(add, 3)",
        "3)",
        "4)",
        "lift",
    ),
    "a function in a partial": (
        "def add(k, x): return k + x\nlift = functools.partial(add, 3)",
        "k + x",
        "k - x",
        "lift",
    ),
    "a cached function": (
        "@functools.cache\ndef lift(x): return x + 3",
        "+ 3",
        "+ 4",
        "lift",
    ),
    "an object's state": (
        """
        class Scale:
            def __init__(self, k): self.k = k
            def lift(self, x): return x * self.k
        lift = Scale(3).lift
        """,
        "Scale(3)",
        "Scale(4)",
        "lift",
    ),
    "a method": (
        """
        class Scale:
            def by(self): return 3
            def __call__(self, x): return x * self.by()
        lift = Scale()
        """,
        "return 3",
        "return 4",
        "lift",
    ),
    "a data class": (
        """
        @dataclasses.dataclass(frozen=True)
        class Scale:
            k: int
        SCALE = Scale(3)
        def lift(x): return x * SCALE.k
        """,
        "Scale(3)",
        "Scale(4)",
        "lift",
    ),
    "a ready operator inside": (
        "some = ops.first_n(3)\ndef lift(x): return some.lift(x)",
        "first_n(3)",
        "first_n(4)",
        "lift",
    ),
    "an exception's handler": (
        """
        def lift(x):
            try:
                x = 1 // x
                x = x + 1
            except ZeroDivisionError:
                x = 0
            return x
        """,
        "x = 1 // x\n                x = x + 1\n",
        "x = 1 // x\n",
        "lift",
    ),
    "the identity": ("identity = 0", "0", "1", "identity"),
    "the identity's type": ("identity = 0", "0", "0.0", "identity"),
    "an identity that is a tuple": ("identity = (0, 0.0)", "0.0", "-0.0", "identity"),
    "an identity that is an array": (
        "identity = np.zeros(3)\ndef lift(out, x): pass",
        "zeros",
        "ones",
        "identity",
    ),
    "an identity that is an object": ("identity = {'a': 1}", "1", "2", "identity"),
    "whether it commutes": ("commutative = True", "True", "False", "commutative"),
    "lower": ("def lower(a): return a", "a\n", "a + 1\n", "lower"),
    "inverse": ("def inverse(a, b): return a - b", "a - b", "b - a", "inverse"),
    "no inverse": ("def inverse(a, b): return a - b", "def inverse", "def other", "inverse"),
    "encode": (
        "def encode(a): return b'1'\ndef decode(a): return 1",
        "b'1'",
        "b'2'",
        "encode",
    ),
    "one of several": (
        """
        def make():
            own = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b)
            return ops.together(ops.max, own)
        """,
        "a + b",
        "a - b",
        "combine of part 2",
    ),
    "a ready operator with a function of one's own": (
        "def make(): return dataclasses.replace(ops.sum, lower=lambda a: a[1])",
        "a[1]",
        "a[0]",
        "lower",
    ),
    "a ready operator's parameter": (
        "def make(): return ops.quantiles(at=(0.5, 0.99999991))",
        "91",
        "92",
        "fields",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_operator_is_told_from_the_one_it_was(change: str) -> None:
    text, part, other, fact = CHANGES[change]
    text += "\n"
    assert text.count(part) == 1
    before, same, after = query(text), query(text), query(text.replace(part, other))
    assert differences(fingerprint(before), fingerprint(same)) == []
    (said,) = differences(fingerprint(before), fingerprint(after))
    assert re.match(rf"spread: {fact} (differs$|was )", said), said


@pytest.mark.parametrize("change", ["a global", "a helper", "a closure's array", "the identity"])
def test_a_snapshot_of_a_changed_operator_is_refused_unless_it_is_trusted(change: str) -> None:
    text, part, other, fact = CHANGES[change]
    before, after = query(text), query(text.replace(part, other))
    stream = before.stream(schema=COLUMNS)
    stream.push({"t": [1, 2], "x": [3, 4]})
    data = stream.to_bytes()
    for trust in ([], ["n"]):
        with pytest.raises(ValueError, match=f"another query \\(spread: {fact} .*trust="):
            Stream.from_bytes(data, after, trust)
    again = Stream.from_bytes(data, after, trust=["spread"])
    with pytest.raises(ValueError, match=f"spread: {fact} "):
        Stream.from_bytes(again.to_bytes(), before)
    assert Stream.from_bytes(again.to_bytes(), after).close().num_rows == 1
    with pytest.raises(ValueError, match=r"trust names 'spraed', .* its aggregates are: n, spread"):
        Stream.from_bytes(data, after, trust=["spraed"])
    with pytest.raises(TypeError, match=r"such as \['spread'\]"):
        Stream.from_bytes(data, after, trust="spread")


def test_trust_does_not_pass_over_what_partials_look_like() -> None:
    def of(**roles: Any) -> dict[str, str]:
        made: dict[str, Any] = {"identity": 0, "lift": lambda x: x, "combine": max}
        operator = sash.operator(**(made | roles))
        select = {"spread": sash.aggregate(operator, "x")}
        return fingerprint(sash.Query(time="t", window=sash.tumbling(10), select=select))

    same = of()
    for other, said in (
        (of(identity=(0, 0)), "spread: partial was scalar and is tuple of 2"),
        (of(commutative=True), "spread: commutative was no and is yes"),
    ):
        assert differences(same, other, trust=["spread"]) == [said]


def test_trust_does_not_pass_over_the_types_in_a_partial() -> None:
    def of(lift: Callable[[Any], Any]) -> sash.Query:
        own = sash.operator(identity=0, lift=lift, combine=lambda a, b: a + b)
        select = {"spread": sash.aggregate(own, "x", returns=pa.float64())}
        return sash.Query(time="t", window=sash.tumbling(10), select=select)

    stream = of(lambda x: x).stream(schema=COLUMNS)
    stream.push({"t": [1], "x": [3]})
    with pytest.raises(ValueError, match=r"partials of .*'i'.*; the query has .*'f'"):
        Stream.from_bytes(stream.to_bytes(), of(lambda x: x * 0.5), trust=["spread"])
    mended = Stream.from_bytes(stream.to_bytes(), of(lambda x: x + 1), trust=["spread"])
    assert mended.close()["spread"].to_pylist() == [3.0]


def test_each_difference_is_said_once() -> None:
    one, two = query("identity = 0"), query("identity = 1")
    none = dataclasses.replace(one, select={"n": sash.count()}, time="u")
    assert differences(fingerprint(one), fingerprint(two)) == ["spread: identity was 0 and is 1"]
    assert differences(fingerprint(one), fingerprint(none)) == [
        "time was t and is u",
        "select was n, spread and is n",
    ]
    ready = dataclasses.replace(one, select={"n": sash.count(), "spread": sash.max("x")})
    assert differences(fingerprint(one), fingerprint(ready)) == [
        "spread: operator was one's own and is max"
    ]


def test_names_of_aggregates_can_be_any_text() -> None:
    def named(combine: Callable[[Any, Any], Any]) -> dict[str, str]:
        own = sash.operator(identity=0, lift=lambda x: x, combine=combine)
        select = {"a": sash.aggregate(own, "x"), "a: combine": sash.max("x")}
        return fingerprint(sash.Query(time="t", window=sash.tumbling(10), select=select))

    one, two = named(max), named(min)
    assert differences(one, two) == ["a: combine differs"]
    assert differences(one, two, trust=["a: combine"]) == ["a: combine differs"]
    assert differences(one, two, trust=["a"]) == []


def test_functions_are_not_compared_under_another_python() -> None:
    text, part, other, _ = CHANGES["a helper"]
    before, after = fingerprint(query(text)), fingerprint(query(text.replace(part, other)))
    assert differences(before | {"Python": "3.9"}, after) == []
    changed = fingerprint(query(f"{text}\nidentity = 1"))
    assert differences(before | {"Python": "3.9"}, changed) == ["spread: identity was 0 and is 1"]


SAME = """
    import functools, os, re, sys, threading
    from decimal import Decimal
    import numpy as np, sash
    from sash.engine.identity import fingerprint

    LOCK, NOTHING, WORDS = threading.Lock(), object(), {"b", "a", "c", ("d", 1)}
    TABLE = {word: len(str(word)) for word in WORDS}
    SOME = {print, len, Decimal}
    PATTERN = re.compile("a+")

    class Tracker:
        LIMIT = 3
        def __init__(self): self.seen, self.lock, self.me = [1, (2, "x")], LOCK, self
        def merge(self, other): return self if other is None else other
        def __eq__(self, other): return True

    def even(n): return n == 0 or odd(n - 1)
    def odd(n): return n != 0 and even(n - 1)

    def combine(a, b):
        '''Join two.'''
        if a is NOTHING or not even(3):
            return TABLE.get(b) or PATTERN.match("a")
        with LOCK:
            return a.merge(b) if os.sep in WORDS else max(a, b, key=lambda x: x in SOME)

    own = sash.operator(
        identity=Tracker(), lift=functools.partial(max, np.arange(3)), combine=combine
    )
    select = {"own": sash.aggregate(own, "x"), "k": sash.first_n("x", n=3)}
    query = sash.Query(time="t", window=sash.tumbling(10), select=select)
"""


def test_the_same_program_has_the_same_fingerprint_in_every_process(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text(textwrap.dedent(SAME) + "\nprint(sorted(fingerprint(query).items()))\n")
    # once compiled from source and once from a file of bytecode, with other hashes of strings
    runs = [
        subprocess.run(
            [sys.executable, "-c", "import job"],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{tmp_path}:{SOURCE}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert "own: combine" in runs[0]
    assert runs[0] == runs[1] == runs[2]
    assert " at 0x" not in runs[0]


def test_where_a_function_stands_and_how_it_is_documented_does_not_matter() -> None:
    one = query("def combine(a, b):\n    'Join.'\n    return a + b")
    two = query("\n\n\ndef combine(a, b):\n    'Join two.'\n    # so\n    return a + b")
    assert fingerprint(one) == fingerprint(two)
    used = query("def combine(a, b):\n    'Join.'\n    return 'Join.'")
    other = query("def combine(a, b):\n    'Join two.'\n    return 'Join two.'")
    assert differences(fingerprint(used), fingerprint(other)) == ["spread: combine differs"]


def test_a_module_of_ones_own_is_read_as_far_as_it_is_used() -> None:
    def using(**names: Any) -> str:
        module = types.ModuleType("helpers")
        inner = types.ModuleType("helpers.inner")
        vars(module).update(names | {"inner": inner})
        vars(inner).update({"K": names.get("deep", 0)})
        given = {"helpers": module}
        exec("def f(x): return helpers.f(x) + helpers.K + helpers.inner.K", given)
        return digest(given["f"])

    one = using(f=lambda x: x, K=1, other=1)
    assert one == using(f=lambda x: x, K=1, other=2)
    assert one != using(f=lambda x: x, K=2, other=1)
    assert one != using(f=lambda x: -x, K=1, other=1)
    assert one != using(f=lambda x: x, K=1, other=1, deep=1)


def test_what_cannot_be_read_is_named_by_its_type() -> None:
    assert digest(threading.Lock()) == digest(threading.Lock())
    assert digest(threading.Lock()) != digest(threading.Event)


def test_ready_operators_have_no_functions_in_the_fingerprint() -> None:
    select = {"a": sash.max("x"), "b": sash.first_n("x", n=3), "c": sash.quantiles("x")}
    facts = fingerprint(sash.Query(time="t", window=sash.tumbling(10), select=select))
    assert not any(said.startswith("#") for said in facts.values())
    assert facts["b: operator"] == "first_n(3)"


@pytest.mark.plain
def test_a_policy_of_ones_own_is_compared_by_its_rule_and_operator() -> None:
    text = """
        digits = sash.operator(
            identity=0, lift=lambda x: x % 10, combine=lambda a, b: a + b, name="digits"
        )
        own = sash.policy(lambda total, old: total - old > 3, over=digits, columns="x")
        """
    once = program(text)["own"]
    at_most = sash.policies.at_most

    def facts(policy: Any) -> dict[str, str]:
        select = {"n": sash.count()}
        return fingerprint(sash.Query(time="t", window=policy, select=select))

    assert facts(once) == facts(program(text)["own"])
    for was, is_ in (("old > 3", "old > 4"), ("x % 10", "x % 9")):
        other = program(text.replace(was, is_))["own"]
        for both in ([once, other], [sash.policies.any_of(at_most(2), p) for p in (once, other)]):
            (found,) = differences(*map(facts, both))
            assert found.endswith("differs")
    assert not any("policy" in key for key in facts(sash.policies.any_of(at_most(2), at_most(3))))


def test_what_a_function_changes_while_it_runs_is_no_difference() -> None:
    text = """
        seen = {}
        def lift(x): return seen.setdefault(x, x)
    """
    stream = query(text).stream(schema=COLUMNS)
    stream.push({"t": [1, 2], "x": [3, 4]})
    assert Stream.from_bytes(stream.to_bytes(), query(text)).close().num_rows == 1

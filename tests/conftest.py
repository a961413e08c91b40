"""What all tests share: hypothesis settings, and the table of ready operators.

A test that asks for `ready` runs over every ready operator, untied; one that asks for `form`, over
every ready operator untied and tied to every combination of types that it takes; one that asks for
`home`, over every store.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sash import operators
from sash.operators.contract import TYPES, Operator
from sash.operators.together import together
from servers import KINDS, Home, RedisServer
from thinning import FULL, STAGE, cover, examples

# The same examples in every run, on machines of any speed.
settings.register_profile(
    "sash",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sash")

# Compilers and judges make many small objects that live: with fewer collections, tests take a
# tenth less processor time.
gc.set_threshold(20_000, 50, 100)

# A test's JVM lives for minutes on tiny tables, where Spark's own code is hot for no longer than
# it takes to optimise it: with the fast compiler and one collector thread, tests on Spark take
# half the processor time.  Long streams (`make test-faults`) keep what Java has by itself.
if not os.environ.get("SASH_FAULTS"):
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@atexit.register
def keep_quiet() -> None:
    """As the interpreter ends, datasketches lists on standard error every function of a class of
    which a sketch, a parameter of a test, is still around."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def ready_operators() -> list[Operator]:
    """Every ready operator, with parameters where it needs some."""
    o = operators
    plain = {id(op): op for op in (getattr(o, n) for n in o.__all__) if isinstance(op, Operator)}
    return [
        *plain.values(),
        o.count.ignore_nulls(),
        o.first.ignore_nulls(),
        o.last.ignore_nulls(),
        o.first_n(1),
        o.first_n(3),
        o.last_n(1),
        o.last_n(3),
        o.nth_youngest(1),
        o.nth_youngest(3),
        o.bloom(128),
        o.bloom(1000, 3),
        o.count_min(16, 3),
        o.hll(),
        o.quantiles(at=(0.0, 0.25, 0.5, 1.0)),
        o.top_k(2),
        o.quantile(0.3),
        o.ewm(3_600_000_000),
        o.rate(60.0),
        o.rate(2.5, rows=True),
        together(o.sum, o.max),
        together(o.mean, o.arg_max, o.count, columns=[0, (1, 0), 1]),
        together(o.collect, o.bloom(64)),
        together(o.count, together(o.count, o.count_min(8, 2))),
    ]


def forms_of(op: Operator) -> list[Operator]:
    """An operator untied, and tied to each combination of types that it takes."""
    forms = [op]
    for types in product(TYPES, repeat=len(op.skips)):
        try:
            forms.append(op.of(*types))
        except TypeError:
            continue
    return forms


def _told(op: Operator) -> str:
    nulls = "" if not any(op.skips) or op.name not in ("count", "first", "last") else " non-null"
    return f"{op!r}"[len("<operator ") : -1] + nulls


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "ready" in metafunc.fixturenames:
        metafunc.parametrize("ready", ready_operators(), ids=_told)
    if "form" in metafunc.fixturenames:
        forms = [form for op in ready_operators() for form in forms_of(op)]
        metafunc.parametrize("form", forms, ids=_told)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a product that is marked `thin`, a part runs."""
    products: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("thin") and not FULL:
            assert isinstance(item, pytest.Function)
            products[item.nodeid.partition("[")[0]].append(item)
    left_out: set[pytest.Item] = set()
    for product_ in products.values():
        mark = product_[0].get_closest_marker("thin")
        strength = mark.args[0] if mark and mark.args else 1
        cases = [item.callspec._idlist for item in product_]
        kept = cover(cases, strength, STAGE * (len(cases) // 2 + 1))
        left_out.update(item for i, item in enumerate(product_) if i not in kept)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def only_new() -> Iterator[None]:
    """`gc.collect` looks at what the test makes, and not at all that other tests and compilers have
    left: that takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis server for all tests of a process."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each kind of store in turn, empty."""
    server = request.getfixturevalue("redis_server") if request.param == "redis" else None
    made = Home(request.param, tmp_path / "store", server)
    yield made
    made.close()

"""Which folder may import what: checked on the source, and by looking into `sys.modules`.

Run as a script it checks the source only: `python tests/test_imports.py`.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "sash"


@dataclass(frozen=True)
class Rule:
    """What may be imported anywhere in a file, and what only inside a function, where it
    costs nothing until it is called."""

    anywhere: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()


_LIBRARY = ("sash.operators", "sash.windows", "sash.slicing", "sash.kernels", "sash.aggregators")
_LIBRARY += ("sash.stores", "sash.tables", "sash.state", "sash.query", "sash.engine")
_LIBRARY += ("sash.policies",)

#: The longest matching path wins.  A folder may always import itself and the standard library.
RULES = {
    "__init__.py": Rule(
        _LIBRARY,
        inside=(
            "sash.explain",
            "sash.plot",
            "sash.spark",
            "sash.sql",
            "sash.stores",
            "sash.testing",
        ),
    ),
    "__main__.py": Rule(("sash.cli",)),
    "operators/": Rule(("numpy",), inside=("datasketches",)),
    "windows/": Rule(),
    "windows/zones.py": Rule(("numpy",)),
    "policies/": Rule(("sash.operators", "numpy")),
    "kernels/": Rule(("sash.operators", "numpy", "pyarrow"), inside=("numba", "llvmlite")),
    "kernels/lanes.py": Rule(("numba", "llvmlite")),
    "kernels/linked.py": Rule(("numba",)),
    "kernels/native.py": Rule(("numba", "llvmlite")),
    "aggregators/": Rule(
        ("sash.kernels", "sash.operators", "sash.policies", "sash.stores", "numpy")
    ),
    "slicing/": Rule(("sash.kernels", "sash.operators", "sash.windows", "numpy")),
    "query/": Rule(
        ("sash.operators", "sash.policies", "sash.windows"),
        inside=("sash.engine", "sash.explain", "sash.stores", "pyarrow"),
    ),
    "query/plan.py": Rule(("sash.operators", "sash.windows", "pyarrow")),
    "query/registry.py": Rule(("sash.operators", "pyarrow")),
    "query/shared.py": Rule(inside=("sash.engine", "sash.explain", "sash.sql", "sash.stores")),
    "query/types.py": Rule(("pyarrow",)),
    "tables/": Rule(
        ("sash.kernels", "sash.query", "sash.windows", "numpy", "pyarrow"), inside=("polars",)
    ),
    "tables/counting_sort.py": Rule(("sash.kernels", "sash.operators", "numpy")),
    "tables/texts.py": Rule(("sash.kernels", "sash.operators", "numpy", "pyarrow")),
    "state/": Rule(
        (
            "sash.operators",
            "sash.policies",
            "sash.windows",
            "sash.slicing",
            "sash.kernels",
            "sash.aggregators",
            "sash.stores",
            "sash.tables",
            "sash.query",
            "numpy",
            "pyarrow",
        )
    ),
    "engine/": Rule((*_LIBRARY, "numpy", "pyarrow")),
    "engine/stream.py": Rule((*_LIBRARY, "numpy", "pyarrow"), inside=("sash.explain",)),
    "engine/shared_stream.py": Rule((*_LIBRARY, "numpy", "pyarrow"), inside=("sash.explain",)),
    "explain/": Rule((*_LIBRARY, "numpy", "pyarrow")),
    "engine/oracle.py": Rule((*_LIBRARY, "numpy", "pyarrow"), inside=("sash.testing",)),
    "engine/oracle_events.py": Rule((*_LIBRARY, "numpy", "pyarrow"), inside=("sash.testing",)),
    "page/": Rule(
        ("sash.kernels", "sash.query", "sash.tables", "sash.windows", "numpy", "pyarrow")
    ),
    "plot/": Rule(
        ("sash.kernels", "sash.query", "sash.tables", "sash.windows", "numpy", "pyarrow"),
        inside=("matplotlib",),
    ),
    "sql/": Rule((*_LIBRARY, "numpy", "pyarrow"), inside=("sash.explain",)),
    "sql/__init__.py": Rule(inside=("sash.operators",)),
    "stores/": Rule(),
    "stores/rocksdb.py": Rule(("rocksdict",)),
    "stores/redis.py": Rule(("redis",)),
    "spark/": Rule((*_LIBRARY, "sash.explain", "numpy", "pyarrow", "pandas", "pyspark")),
    "spark/frames.py": Rule(
        (*_LIBRARY, "numpy", "pyarrow", "pandas", "pyspark"), inside=("sash.sql",)
    ),
    "spark/statements.py": Rule((*_LIBRARY, "sash.sql", "numpy", "pyarrow", "pandas", "pyspark")),
    "spark/together.py": Rule((*_LIBRARY, "sash.sql", "pyspark")),
    "spark/sql_errors.py": Rule((*_LIBRARY, "sash.sql", "pyspark")),
    "cli/": Rule(
        (
            *(*_LIBRARY, "sash", "sash.explain", "sash.page", "sash.plot"),
            *("numpy", "pyarrow", "pydantic", "rich", "typer"),
        ),
        inside=(*("numba", "pandas", "pyspark", "sash.spark", "sash.sql", "sash.testing"),),
    ),
    "cli/__init__.py": Rule(inside=("sash.page",)),
    "cli/submit.py": Rule(inside=("sash.cli",)),
    "testing/": Rule(
        (
            "sash.operators",
            "sash.policies",
            "sash.windows",
            "sash.query",
            "sash.aggregators",
            "numpy",
        ),
        inside=("hypothesis", "pyarrow"),
    ),
    "testing/stored.py": Rule(("sash.engine", "sash.query", "sash.state", "sash.stores")),
    "testing/fuzz/": Rule(
        ("sash", "sash.operators", "sash.aggregators", "sash.engine", "sash.query", "pyarrow")
    ),
}


@dataclass(frozen=True)
class Import:
    """One imported name: `sash.x` for a folder of ours, else a top-level package."""

    name: str
    line: int
    inside: bool


def imports(text: str, path: str) -> list[Import]:
    """All imports in the source of the module at this path below src/sash.

    >>> imports("from ..kernels.core import x", "aggregators/daba.py")
    [Import(name='sash.kernels', line=1, inside=False)]
    """
    package = ("sash", *path.split("/")[:-1])
    return [
        Import(".".join(name.split(".")[: 2 if name.split(".")[0] == "sash" else 1]), line, inside)
        for node, inside in _walk(ast.parse(text), False)
        for name, line in _names(node, package)
    ]


def _walk(node: ast.AST, inside: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it runs only when a function is called (or never, being there
    for type checkers)."""
    for child in ast.iter_child_nodes(node):
        lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(node, ast.If)
            and child in node.body
            and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        )
        yield child, inside or lazy
        yield from _walk(child, inside or lazy)


def _names(node: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The full dotted names a node imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
    elif isinstance(node, ast.ImportFrom):
        start = package[: len(package) - node.level + 1] if node.level else ()
        base = ".".join([*start, *([node.module] if node.module else [])])
        # `from sash import x` may mean the folder x, which is what the rules are about.
        for alias in node.names:
            yield (f"{base}.{alias.name}" if base == "sash" else base), node.lineno
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func).split(".")[-1]
        given = node.args[0].value
        if called in ("import_module", "__import__") and isinstance(given, str):
            # A leading dot is relative to the package in the second argument: our own.
            level = len(given) - len(given.lstrip("."))
            start = package[: len(package) - level + 1] if level else ()
            yield ".".join([*start, given.lstrip(".")]), node.lineno


#: The classes of windows aligned to the clock.  Only these places know one from another; all
#: others ask what any window of its kind answers (`windows/contract.py`).
ALIGNED = {"Calendar", "Cumulate", "Sliding"}
KNOW_ALIGNED = ("windows/", "slicing/", "testing/", "__init__.py")


def known_windows(text: str, path: str) -> list[str]:
    """The classes of aligned windows that a module imports and should not know."""
    if path.startswith(KNOW_ALIGNED):
        return []
    return [
        f"src/sash/{path}:{node.lineno}: imports {alias.name}; ask the window's contract instead"
        for node, _ in _walk(ast.parse(text), False)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in ALIGNED
    ]


def broken(text: str, path: str) -> list[str]:
    """What is against the rules in one module, one line each."""
    places = [place for place in RULES if path == place or path.startswith(place)]
    if not places:
        return [f"src/sash/{path}: no import rule; add one to RULES in tests/test_imports.py"]
    rule = RULES[max(places, key=len)]
    own = ".".join(["sash", *path.split("/")[:-1]][:2])
    problems = known_windows(text, path)
    for found in imports(text, path):
        if found.name in sys.stdlib_module_names or (found.name == own and own != "sash"):
            continue
        if found.name in rule.anywhere or (found.inside and found.name in rule.inside):
            continue
        where = f"src/sash/{path}:{found.line}: imports {found.name}"
        if found.name in rule.inside:
            problems.append(f"{where} when it is loaded; import it inside the function using it")
        else:
            allowed = ", ".join(rule.anywhere + rule.inside) or "the standard library only"
            problems.append(f"{where}; allowed here: {allowed}")
    return problems


def all_broken() -> list[str]:
    """What is against the rules in the whole package."""
    return [
        problem
        for file in sorted(SOURCE.rglob("*.py"))
        for problem in broken(file.read_text(), file.relative_to(SOURCE).as_posix())
    ]


def test_the_source_keeps_the_rules() -> None:
    assert not all_broken(), "\n" + "\n".join(all_broken())


def test_the_rules_catch_what_they_are_for() -> None:
    def ok(path: str, text: str) -> bool:
        return not broken(text, path)

    assert not ok("operators/x.py", "from ..kernels import core")
    assert not ok("operators/x.py", "from .. import aggregators")
    assert not ok("operators/x.py", "import sash.kernels.core")
    assert not ok("operators/x.py", "import datasketches")
    assert ok("operators/x.py", "def f():\n    import datasketches")
    assert ok("operators/x.py", "if TYPE_CHECKING:\n    import datasketches")
    assert not ok("operators/x.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import datasketches")
    assert not ok("operators/x.py", "class A:\n    import datasketches")
    assert not ok("windows/x.py", "from ..operators import contract")
    assert not ok("query/x.py", "from ..engine import batch")
    assert not ok("engine/x.py", "def f():\n    import pyspark")
    assert not ok("kernels/x.py", "from numba import njit")
    assert not ok("kernels/x.py", "import_module('numba')")
    assert not ok("operators/x.py", "import_module('..kernels', __package__)")
    assert ok("__init__.py", "def f():\n    import_module('.testing', __name__)")
    assert ok("kernels/x.py", "def f():\n    from numba import njit")
    assert ok("kernels/native.py", "from numba import njit")
    assert not ok("aggregators/x.py", "def f():\n    from numba import njit")
    assert not ok("aggregators/x.py", "import pyspark")
    assert not ok("stores/memory.py", "def f():\n    import redis")
    assert ok("stores/redis.py", "import redis")
    assert not ok("testing/x.py", "import hypothesis")
    assert not ok("testing/x.py", "from sash import operator")  # the folder is operators
    assert not ok("engine/x.py", "from ..windows import Sliding")
    assert ok("engine/x.py", "from ..windows import Sized")
    assert ok("slicing/x.py", "from ..windows import Sliding")
    assert not ok("not_planned/x.py", "")


LAZY = ["datasketches", "http.server", "hypothesis", "matplotlib", "numba", "pandas", "polars"]
LAZY += ["pydantic", "pyspark", "redis", "rich", "rocksdict", "typer"]


def test_import_sash_loads_only_what_it_needs() -> None:
    program = (
        "import json, sys, time; start = time.perf_counter(); import sash; "
        "seconds = time.perf_counter() - start; "
        f"print(json.dumps([seconds, [m for m in {LAZY} if m in sys.modules]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seconds, loaded = json.loads(done.stdout)
    print(f"import sash: {seconds:.3f} s")  # its bound is checked by the benchmarks
    assert loaded == []


if __name__ == "__main__":
    found = all_broken()
    print("\n".join(found) or "imports: every folder keeps its rules")
    sys.exit(bool(found))

"""The public surface: each exported name is there, documented, tried out, and in the reference."""

from __future__ import annotations

import importlib
import inspect
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sash
from sash.query.elsewhere import ELSEWHERE
from sash.query.registry import REGISTRY

TOOL = Path(__file__).resolve().parent.parent / "tools" / "reference.py"
REFERENCE: dict[str, Any] = runpy.run_path(str(TOOL))
MODULES: tuple[str, ...] = REFERENCE["MODULES"]

#: Public names without a doctest, and why.
UNTRIED = {
    "sash.InterpretedWarning": "warns of what numba refuses, which takes a compilation",
    "sash.testing.Step": "is a type",
    "sash.testing.LawError": "is raised by laws, which has a doctest",
}


def public() -> Iterator[tuple[ModuleType, str]]:
    for name in MODULES:
        module = importlib.import_module(name)
        yield from ((module, exported) for exported in module.__all__)


NAMES = [pytest.param(m, n, id=f"{m.__name__}.{n}") for m, n in public()]


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_defines_or_imports_of_ours_is_exported(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(set(found.__all__))
    ours = {
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and str(getattr(value, "__module__", "")).startswith("sash")
    }
    assert ours <= set(found.__all__)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_name_has_a_description(module: ModuleType, name: str) -> None:
    assert REFERENCE["description"](module, name), "write a docstring, or a `#:` comment above it"
    found = getattr(module, name)
    if isinstance(found, type):
        for member, value in REFERENCE["members"](found):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_function_and_class_has_a_doctest(module: ModuleType, name: str) -> None:
    found = getattr(module, name)
    tried = inspect.isroutine(found) or isinstance(found, type)
    on_spark = module.__name__ == "sash.spark"  # an example would start Spark; tests/spark has some
    if tried and not on_spark and f"{module.__name__}.{name}" not in UNTRIED:
        assert ">>> " in (inspect.getdoc(found) or "")


@pytest.mark.parametrize("name", [*REGISTRY, *(a for f in REGISTRY.values() for a in f.aliases)])
def test_every_ready_operator_has_an_aggregate_with_parameters_by_name(name: str) -> None:
    name = name.removeprefix("exact_")  # which is a parameter of the aggregate
    function = getattr(sash, name)
    assert inspect.isfunction(function)
    assert (function.__name__, name in sash.__all__) == (name, True)
    signature = inspect.signature(function)
    kinds = {p.kind for p in signature.parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert signature.return_annotation == "Aggregate"
    assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert f"sash.{name}(" in (function.__doc__ or "")


def test_dir_shows_what_is_loaded_later(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(sash.__all__) | {"spark"} == set(dir(sash))
    with monkeypatch.context() as without_spark:
        without_spark.setattr(sash, "find_spec", lambda name: None)
        assert set(sash.__all__) == set(dir(sash))  # `help(sash)` loads each name
    with pytest.raises(AttributeError, match=r"no attribute 'nunique'; use sash\.count_distinct"):
        _ = sash.nunique
    with pytest.raises(AttributeError, match=r"no attribute 'rolling'; use sash\.trailing"):
        _ = sash.rolling
    for name, instead in ELSEWHERE.items():
        assert not hasattr(sash, name)
        eval(instead.partition(", which")[0], {"sash": sash})
    with pytest.raises(AttributeError, match="has no attribute 'averag'; did you mean 'avg'"):
        sash.averag  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(("place", "text"), [("PAGE", "page"), ("SUPPORTED", "supported")])
def test_the_generated_pages_are_up_to_date(place: str, text: str) -> None:
    page = REFERENCE[place]
    same = page.exists() and page.read_text() == REFERENCE[text]()
    assert same, f"docs/{page.name} differs from the code: run python tools/{TOOL.name}"

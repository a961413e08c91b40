"""Operators that users write: compiled when they can be, cached between processes."""

from __future__ import annotations

import math
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sash
from sash import operators as ops
from sash.aggregators import TwoStacksLite
from sash.kernels import checked, program
from sash.kernels.program import InterpretedWarning, jit_enabled

compiled_only = pytest.mark.skipif(not jit_enabled(), reason="about compiled code: SASH_JIT=0")

LIMIT = 2.5


def saturate(x: float) -> float:
    return min(x, LIMIT)


def mode(window: TwoStacksLite) -> str:
    return window._core.program.mode


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    full = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=full | env,
        timeout=300,
        check=False,
    )


@compiled_only
def test_plain_functions_lambdas_closures_and_helpers_compile() -> None:
    scale = 2.0
    op = sash.operator(
        identity=(-math.inf, 0),
        lift=lambda x: (saturate(x) * scale, 1),
        combine=lambda a, b: (max(a[0], b[0]), a[1] + b[1]),
        lower=lambda a: a[0] / scale if a[1] else None,
    )
    window = TwoStacksLite(op)
    got = window.slide(np.array([1.0, 4.0, 2.0, 0.0, 1.0]), 3)
    assert mode(window) == "compiled"
    assert got.tolist() == [1.0, 2.5, 2.5, 2.5, 2.0]


@compiled_only
def test_functions_without_a_source_file_compile() -> None:
    names: dict[str, object] = {}
    exec("def lift(x): return x\ndef combine(a, b): return a if a > b else b", names)
    op = sash.operator(identity=-1.0, lift=names["lift"], combine=names["combine"])  # type: ignore[arg-type]
    window = TwoStacksLite(op)
    assert window.slide(np.array([1.0, 3.0, 2.0]), 2).tolist() == [1.0, 3.0, 3.0]
    assert mode(window) == "compiled"


@compiled_only
def test_an_identity_of_integers_takes_floats() -> None:
    op = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: a + b)
    window = TwoStacksLite(op)
    assert window.slide(np.array([0.5, 0.25]), 2).tolist() == [0.5, 0.75]
    assert TwoStacksLite(op).slide(np.array([3, 4]), 2).tolist() == [3, 7]
    assert mode(window) == "compiled"


@compiled_only
def test_vectors_write_into_out() -> None:
    def lift(out: np.ndarray, x: int) -> None:
        out[x % 3] = 1

    def combine(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        for i in range(3):
            out[i] = a[(i + 0) % 3] + b[i]

    op = sash.operator(identity=np.zeros(3, dtype=np.int64), lift=lift, combine=combine)
    window = TwoStacksLite(op)
    got = window.slide(np.array([0, 1, 4, 2]), 3)
    assert mode(window) == "compiled"
    assert got.tolist() == [[1, 0, 0], [1, 1, 0], [1, 2, 0], [0, 2, 1]]


@compiled_only
def test_what_is_no_constant_compiles_in_memory() -> None:
    table = np.array([0.0, 10.0, 20.0])
    op = sash.operator(
        identity=0.0, lift=lambda x: table[int(x)], combine=lambda a, b: a + b, name="looked_up"
    )
    window = TwoStacksLite(op)
    assert window.slide(np.array([1.0, 2.0, 1.0]), 2).tolist() == [10.0, 30.0, 30.0]
    assert mode(window) == "compiled"


@pytest.mark.parametrize(
    ("role", "functions"),
    [
        ("lift", {"lift": lambda x: sorted([x], key=str)[0]}),
        ("combine", {"combine": lambda a, b: eval("a + b")}),
        ("lower", {"lower": lambda a: f"{a:.3f}"}),
    ],
)
@compiled_only
def test_a_refused_function_is_named_once_and_runs_interpreted(
    role: str, functions: dict[str, object]
) -> None:
    given = {"lift": lambda x: x, "combine": lambda a, b: a + b, "lower": None} | functions
    op = sash.operator(identity=0.0, name=f"odd_{role}", **given)  # type: ignore[arg-type]
    window = TwoStacksLite(op)
    with pytest.warns(InterpretedWarning, match=f"numba refused its {role} of odd_{role}: "):
        got = window.slide(np.array([1.0, 2.0, 3.0]), 2)
    assert list(got) == (["1.000", "3.000", "5.000"] if role == "lower" else [1.0, 3.0, 5.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TwoStacksLite(op).slide(np.array([1.0]), 2)


@pytest.mark.parametrize(
    ("lift", "why"),
    [
        (lambda x: (1, None), "it returns a partial that is, or has, no number"),
        (lambda x: (1, x, x), r"another shape than identity \(3 field\(s\) where identity has 2\)"),
    ],
)
@pytest.mark.once
def test_a_partial_unlike_the_identity_is_why_an_operator_runs_interpreted(
    lift: object, why: str
) -> None:
    op = sash.operator(
        identity=(0, 0.0),
        lift=lift,  # type: ignore[arg-type]
        combine=lambda a, b: a if a[0] else b,
    )
    with pytest.warns(InterpretedWarning, match=f"numba refused its lift of operator: .*{why}"):
        TwoStacksLite(op).slide(np.array([1.0]), 2)


def test_user_operators_agree_on_lists_and_arrays() -> None:
    op = sash.operator(
        identity=(0, 0.0),
        lift=lambda x: (1, x),
        combine=lambda a, b: (a[0] + b[0], a[1] * 0.5 ** b[0] + b[1]),
        lower=lambda a: a[1],
        name="decayed",
    )
    values = [1.0, 4.0, -2.0, 8.0, 0.5]
    assert TwoStacksLite(op).slide(np.array(values), 3).tolist() == TwoStacksLite(op).slide(
        values, 3
    )


@compiled_only
def test_what_a_name_in_another_module_means_is_not_kept(tmp_path: Path) -> None:
    code = """
        import numpy as np, sash, cfg
        from sash.aggregators import TwoStacksLite
        op = sash.operator(identity=0, lift=lambda x: x, combine=lambda a, b: min(a + b, cfg.K))
        print(TwoStacksLite(op).slide(np.array([5, 5, 5]), 3).tolist())
    """
    for limit in (8, 12):
        (tmp_path / "cfg.py").write_text(f"K = {limit}")
        got = run(code, SASH_CACHE_DIR=str(tmp_path / "cache"), PYTHONPATH=str(tmp_path))
        assert got.stdout.strip() == str([5, min(10, limit), limit]), got.stderr


@compiled_only
def test_identities_of_different_types_are_told_apart() -> None:
    values = np.array([2**62] * 3)
    for zero in (0, 0.0, 0):
        op = sash.operator(identity=zero, lift=lambda x: x, combine=lambda a, b: a + b)
        got = TwoStacksLite(op).slide(values, 3)
        assert got.dtype == (np.float64 if isinstance(zero, float) else np.int64)


@compiled_only
def test_threads_can_meet_at_a_kernel(tmp_path: Path) -> None:
    code = """
        import sys, threading
        from sash import operators as ops
        from sash.aggregators import DabaLite
        sys.setswitchinterval(1e-5)
        failed = []
        def use():
            try:
                window = DabaLite(ops.max.of(float))
                window.insert(1.0)
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=use) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not failed, failed
        print("ok")
    """
    for _ in range(2):
        got = run(code, SASH_CACHE_DIR=str(tmp_path))
        assert got.stdout.strip() == "ok", got.stderr


USE = """
    import numpy as np, sash
    from sash.aggregators import TwoStacksLite
    op = sash.operator(identity=0.0, lift=lambda x: x, combine=lambda a, b: a + b, name="total")
    got = TwoStacksLite(op).slide(np.arange(6.0), 3).tolist()
    assert got == [0.0, 1.0, 3.0, 6.0, 9.0, 12.0], got
    print("ok", TwoStacksLite(op.of(float))._core.program.mode)
"""


@compiled_only
def test_many_processes_share_one_cache(tmp_path: Path) -> None:
    env = os.environ | {"SASH_CACHE_DIR": str(tmp_path)}
    code = textwrap.dedent(USE)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for process in started:
        out, err = process.communicate(timeout=300)
        assert out.split() == [b"ok", b"compiled"], err.decode()
    kernels = list(tmp_path.rglob("two_stacks_lite_*.py"))
    assert len(kernels) == 1
    assert not list(tmp_path.rglob("*.part"))
    stamp = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.nb?")}
    assert run(USE, SASH_CACHE_DIR=str(tmp_path)).stdout.split() == ["ok", "compiled"]
    after = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.nb?")}
    assert after == stamp, "a later process compiled again"


@compiled_only
def test_a_folder_that_cannot_be_written_compiles_in_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way of a folder, also for root")
    got = run(USE, SASH_CACHE_DIR=str(blocked / "cache"))
    assert got.stdout.split() == ["ok", "compiled"], got.stderr
    if os.geteuid():
        home = tmp_path / "home"
        home.mkdir()
        home.chmod(stat.S_IRUSR | stat.S_IXUSR)
        got = run(USE, HOME=str(home), SASH_CACHE_DIR="")
        assert got.stdout.split() == ["ok", "compiled"], got.stderr


LINKED = """
    import sash
    from sash.aggregators import Fiba
    from sash.kernels.linked import LINKED
    op = sash.operator(identity=0.0, lift=lambda x: x, combine=lambda a, b: a + b)
    window = Fiba(op.of(float))
    for time, value in ((3, 1.0), (1, 2.0), (2, 4.0), (9, 8.0)):
        window.insert(time, value)
        print(window.query())
    pipeline = window._core.run.slot._compiler.pipeline_class.__name__
    print(LINKED, pipeline, window._core.run.__name__)
"""
UNKNOWN = """
    import numba
    numba.__version__ = "99.0.0"
    from sash.kernels.linked import LINKED
    print(LINKED)
"""


@compiled_only
def test_kernels_answer_alike_linked_and_not(tmp_path: Path) -> None:
    names = set()
    for switch, linked in (("1", True), ("0", False)):
        got = run(LINKED, SASH_CACHE_DIR=str(tmp_path), SASH_LINKED=switch)
        *answers, said = got.stdout.splitlines() or [got.stderr]
        assert answers == ["1.0", "3.0", "7.0", "15.0"], got.stderr
        on, pipeline, name = said.split()
        assert (on, pipeline) == (str(linked), "LinkedCompiler" if linked else "Compiler")
        names.add(name)
    assert len(names) == 2, "what is compiled in one way is not taken for the other"


@compiled_only
def test_an_unknown_numba_links_nothing() -> None:
    got = run(UNKNOWN)
    assert got.stdout.split() == ["False"], got.stderr


def test_the_installed_numba_was_tried() -> None:
    from importlib.metadata import version

    from sash.kernels.linked import TRIED

    assert version("numba") in TRIED, "try it, both ways, and add it to kernels/linked.py"


SOURCES = sorted(p.name for p in Path(program.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_of_the_kernels_counts_in_what_is_kept(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(Path(program.__file__).parent, folder)
    before = program.digest_of(folder)
    assert before == program._sources()
    with (folder / name).open("a") as file:
        file.write("# touched\n")
    assert program.digest_of(folder) != before


def test_sources_can_be_read_from_a_zip_file(tmp_path: Path) -> None:
    place = shutil.make_archive(str(tmp_path / "kernels"), "zip", Path(program.__file__).parent)
    assert program.digest_of(zipfile.Path(place)) == program._sources()


def test_with_the_jit_off_numba_is_not_even_imported() -> None:
    code = USE + "\n    import sys; assert 'numba' not in sys.modules"
    got = run(code, SASH_JIT="0")
    assert got.stdout.split() == ["ok", "checked"], got.stderr


def test_checked_memory_refuses_what_lies_outside() -> None:
    array = np.arange(4, dtype=np.int64)
    checked.register(array)
    start = array.ctypes.data
    assert checked.load_i(start + 24) == 3
    for address in (start + 32, start - 8, start + 28):
        with pytest.raises(IndexError, match="outside its memory"):
            checked.load_i(address)
    checked.store_f(start, 1.5)
    assert checked.load_f(start) == 1.5


def test_operator_refuses_what_makes_no_sense() -> None:
    good = {"identity": 0, "lift": lambda x: x, "combine": lambda a, b: a + b}
    for wrong, message in (
        ({"identity": None}, "emptiness is a value of its own"),
        ({"combine": 3}, "combine must be a function, not 3"),
        ({"combine": None}, "combine must be a function, not None"),
        ({"encode": str}, "encode and decode go together"),
        ({"lift": lambda: 0}, "at least one column"),
        ({"combine": lambda a: a}, r"combine takes \(a, b\), and this one takes \(a\)"),
        ({"inverse": lambda a: a}, r"inverse takes \(total, old\), and this one takes \(a\)"),
        ({"lower": lambda a, b: a}, r"lower takes \(a\), and this one takes \(a, b\)"),
        ({"identity": np.zeros(2)}, r"combine takes \(out, a, b\), because identity is an array"),
        ({"combine": lambda a, b: None}, "of two identities it returns None"),
        (
            {"identity": [], "lift": lambda x: [x], "combine": lambda a, b: a.extend(b)},
            "change neither argument",
        ),
        (
            {
                "identity": np.zeros(2),
                "lift": lambda out, x: None,
                "combine": lambda out, a, b: a + b,
            },
            "write its result into out, because identity is an array, and it returns a new array",
        ),
        ({"identity": np.zeros(2), "combine": np.add}, r"lift takes \(out, x\)"),
        ({"identity": np.zeros((2, 2))}, "one dimension"),
    ):
        with pytest.raises(TypeError, match=message):
            sash.operator(**(good | wrong))  # type: ignore[arg-type]
    narrow = sash.operator(
        identity=np.zeros(2, dtype=np.float32),
        lift=lambda out, x: None,
        combine=lambda out, a, b: None,
    )
    with pytest.raises(TypeError, match="dtype int64, uint64 or float64, not float32"):
        TwoStacksLite(narrow.of(float))
    for fine in (
        {"combine": lambda a, b: 1 // a},  # the laws find it
        {"identity": np.ones(2), "lift": lambda out, x: None, "combine": np.multiply},
        {
            "identity": np.zeros(2),
            "lift": lambda out, x: None,
            "combine": lambda out, a, b: np.add(a, b, out),
        },
    ):
        sash.operator(**(good | fine))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="reads 1 column"):
        ops.max.of(float, int)
    with pytest.raises(TypeError, match="tied to its types already"):
        ops.max.of(float).of(int)
    with pytest.raises(TypeError, match="sum takes numbers"):
        ops.sum.of("timestamp")

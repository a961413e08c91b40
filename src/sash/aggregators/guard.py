"""One call at a time on an aggregator, and none after a call that broke off in mid-change.

A call takes the aggregator by deleting its attribute `_free`, and sets it again when it is done.
The deletion is one step of the interpreter, so of two threads one finds the attribute gone, and so
does a function of an operator that calls back into its own aggregator: both are refused.  It costs
some 50 ns a call, of 400 to 500, the call itself among them; a `threading.Lock` alone takes twice
that.

A call that raises leaves the aggregator taken, unless all in it is proved to be sound:

    raised by                             sound if
    a compiled kernel                     it had not begun a change (its header field BUSY is 0)
    lift, combine, … in a Python kernel   likewise
    anything else in a Python kernel      never: Ctrl-C may come between any two steps
    Python code around kernels            it was not replacing the memory (`_changing`)
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dis import Instruction, get_instructions
from functools import wraps
from types import CodeType, TracebackType
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from ..kernels.core import BufferCore, ObjectCore
from ..kernels.slots import BUSY

__all__ = ["Guarded", "InUse", "alone", "raised_by_operator", "sound_after"]

P = ParamSpec("P")
T = TypeVar("T")
G = TypeVar("G", bound="Guarded")


class InUse(RuntimeError):
    """Another thread, or an operator's function, uses a window that is in the middle of a call.

    Windows are not shared between threads without a lock around them; different windows can be
    used side by side.  A stream has a lock of its own, so it refuses only a function that calls
    back.

    >>> import sash
    >>> from sash.aggregators import TwoStacksLite
    >>> longest = sash.operator(
    ...     identity="", lift=str, combine=lambda a, b: max(a, b, key=lambda _: window.query())
    ... )
    >>> window = TwoStacksLite(longest)
    >>> window.insert("a")
    Traceback (most recent call last):
    ...
    sash.aggregators.guard.InUse: this TwoStacksLite is in the middle of a call, of another \
thread or of one that an operator's function was called by; use a window for each thread, or \
a lock around it
    """


class _Free:
    """A slot for an attribute that comes and goes."""

    __slots__ = ("_free",)

    _free: bool  # there while no call has the aggregator


class Guarded(_Free):
    """What an aggregator needs to refuse a second call."""

    _changing = False  # whether Python code is replacing what the aggregator holds
    _broken = ""  # why the aggregator cannot be used any more
    _core: BufferCore | ObjectCore
    _takes_policy = False

    def __new__(cls, *given: Any, **named: Any) -> Self:
        if "policy" in named and not cls._takes_policy:
            raise TypeError(
                f"{cls.__name__} has no policies, so it cannot take {named['policy']!r}; Amta and "
                "LogMta have them: Amta(operator, policy=…)"
            )
        made = object.__new__(cls)
        made._free = True
        return made

    def _alone(self, run: Callable[..., T], *given: Any, **named: Any) -> T:
        """Run a function during which no other call is allowed."""
        try:
            del self._free
        except AttributeError:
            self._refuse()
        try:
            found = run(*given, **named)
        except BaseException as error:
            self._give_back(error)
            raise
        self._free = True
        return found

    def _refuse(self) -> NoReturn:
        """Say why a call is refused."""
        if self._broken:
            raise RuntimeError(self._broken)
        forked = ""
        if _forked:
            forked = ", or was when this process was forked, and then cannot be used here"
        raise InUse(
            f"this {type(self).__name__} is in the middle of a call{forked}, of another thread or "
            "of one that an operator's function was called by; use a window for each thread, or a "
            "lock around it"
        )

    def _give_back(self, error: BaseException) -> None:
        """Let others use the aggregator after an error, or nobody."""
        if not self._changing and self._intact(error):
            self._free = True
            return
        self._broken = self._why(error)

    def _intact(self, error: BaseException) -> bool:
        """Whether all is sound after an error."""
        return sound_after(self._core, error)

    def _why(self, error: BaseException) -> str:
        """Why the aggregator cannot be used after an error."""
        what = f"{type(error).__name__} came"
        if isinstance(error, Exception) and self._core.header[BUSY]:
            what = f"combine of {self._core.operator.name} raised"
        return (
            f"{what} in the middle of a change, and this window is not sound any more: make a new "
            "one, or restore it from its bytes"
        )

    def _said_length(self, what: str) -> str:
        """The length as a repr says it, also of a window that cannot be used just now."""
        try:
            return f", {len(self)} {what}"  # type: ignore[arg-type]
        except InUse:
            return ", in use"
        except RuntimeError:
            return ", not sound any more"

    def _replace(self, replace: Callable[..., None], *given: Any) -> None:
        """Have the memory replaced by another."""
        core = self._core
        before = _memory(core)
        self._changing = True
        try:
            replace(*given)
        except BaseException:
            if _memory(core) is before:  # there was no room for the new one
                self._changing = False
            raise
        self._changing = False


def alone(method: Callable[Concatenate[G, P], T]) -> Callable[Concatenate[G, P], T]:
    """A method during which no other call is allowed.

    The call is made with the method's own parameters, by position: to pass `*args` and `**kwargs`
    on would take a good part of the microsecond that some methods take.
    """
    parameters = inspect.signature(method).parameters.values()
    given = ", ".join(
        f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters
    )
    plain = [p.replace(annotation=p.empty, default=p.empty) for p in parameters]
    scope: dict[str, Any] = {"method": method}
    exec(_CALL.format(signature=inspect.Signature(plain), given=given), scope)
    made: Any = scope["call"]
    made.__defaults__, made.__kwdefaults__ = method.__defaults__, method.__kwdefaults__
    return wraps(method)(made)


_CALL = """
def call{signature}:
    try:
        del self._free
    except AttributeError:
        self._refuse()
    try:
        found = method({given})
    except BaseException as error:
        self._give_back(error)
        raise
    self._free = True
    return found
"""


def sound_after(core: BufferCore | ObjectCore, error: BaseException) -> bool:
    """Whether a kernel's memory is sound after an error."""
    return not core.header[BUSY] and raised_by_operator(core, error)


def raised_by_operator(core: BufferCore | ObjectCore, error: BaseException) -> bool:
    """Whether an error came out of a kernel because a function of the operator raised it, or came
    at a time when no kernel ran."""
    return core.program.mode == "compiled" or _out_of_operator(error.__traceback__)


def _memory(core: BufferCore | ObjectCore) -> Any:
    """What is replaced first when a core gets another memory."""
    return core.buffer if isinstance(core, BufferCore) else core.m


#: How the functions of an operator are called in kernels that run in plain Python.
_OPERATOR = re.compile(
    r"(combine|inverse|lift|lower|rule)(_\d+)?|_(fold|splice|weave|accumulate|fold_rows|holds)"
)


def _out_of_operator(traceback: TracebackType | None) -> bool:
    """Whether an error came out of a function of an operator, or out of no kernel at all.

    An error that a signal's handler raises looks like any other.  What tells them apart is the
    step of the kernel at which they come: a call of the operator's function, or another.
    """
    found: TracebackType | None = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith("<sash "):
            found = traceback
        elif found is not None:
            break
        traceback = traceback.tb_next
    return found is None or _calls_operator(found.tb_frame.f_code, found.tb_lasti)


def _calls_operator(code: CodeType, at: int) -> bool:
    """Whether the step of a kernel at this place is a call of an operator's function."""
    steps = list(get_instructions(code))
    here = [step for step in steps if step.offset <= at][-1]
    if not here.opname.startswith(("CALL", "PRECALL")):
        return False
    # a call begins where the name of what is called does
    names = (s.argval for s in steps if s.opname == "LOAD_GLOBAL" and _alike(s, here))
    return any(_OPERATOR.fullmatch(name) for name in names)


def _alike(one: Instruction, other: Instruction) -> bool:
    """Whether two steps begin at the same place of the source."""
    a, b = one.positions, other.positions
    return a is not None and b is not None and a[::2] == b[::2]  # line and column


_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)

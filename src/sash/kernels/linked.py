"""Compiling functions that only other compiled functions call.

numba compiles each function with all that it calls, optimises the lot and makes machine code of
it, and does so again for each caller: in a kernel of fifty functions, four in a row, most of the
time goes into code that is never run.  A function under `linked` is only brought into the
compiler's own form, and is optimised as a part of the functions that Python calls.  A Fiba of a
user's sum compiles in 4.7 s instead of 7 s, and rounds take as long as before.

What is overridden here are inner methods of numba.  Where a version of numba does not have them,
functions are compiled as numba does by itself.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

__all__ = ["inline", "linked"]

_OVERRIDDEN = (
    "codegen",
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_verify_declare_only_symbols",
    "get_pointer_to_function",
)


class _NoEnvironment:
    """In place of the code generator, which is asked only to tell machine code where its Python
    objects are; without machine code there is nothing to tell."""

    def set_env(self, name, environment):
        pass


class _Linked(JITCodeLibrary):
    """A function and all that it calls, neither optimised nor made into machine code."""

    codegen = _NoEnvironment()

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class _LinkedCompiler(Compiler):
    def define_pipelines(self):
        state = self.state
        if state.library is None:
            state.library = _Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


_options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
if all(hasattr(JITCodeLibrary, name) for name in _OVERRIDDEN):
    _options["pipeline_class"] = _LinkedCompiler

linked = njit(**_options)
#: The same, compiled into each of its callers, whatever the compiler thinks of it.
inline = njit(forceinline=True, **_options)

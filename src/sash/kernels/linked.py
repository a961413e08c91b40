"""Compiles functions that only other compiled functions call.

numba optimises each function together with all functions that it calls, and turns the lot into
machine code.  It does so again for each caller: in a kernel of fifty functions, which call each
other four deep, most of the time goes into code that never runs.  For a function under `linked`,
numba stops at LLVM code and optimises it only as a part of the functions that Python calls.  Such a
function also goes only through the passes that plain loops over integers need.  A Fiba of a user's
sum compiles in 4.7 s instead of 7 s, and its rounds take as long as before.

This module overrides inner methods of numba, which a release may change without notice.  So it does
so only under the releases in `TRIED`; under any other, and with SASH_LINKED=0 in the environment,
numba compiles these functions in its own way.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

import os
from typing import Any

import numba
from numba import njit

__all__ = ["LINKED", "TRIED", "inline", "linked"]

#: The releases of numba that were tried under Python 3.11 on Linux: a Fiba, a DABA Lite, two
#: stacks, a run and a stream, of numbers, tuples and vectors, gave the same answers linked and not
#: linked.  The tests try the installed release in the same way.
TRIED = frozenset(
    {"0.61.2", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.0", "0.68.1"}
)

#: True if this process compiles functions under `linked` in the way above.
LINKED = numba.__version__ in TRIED and os.environ.get("SASH_LINKED", "1") != "0"


def _pipeline():
    """A compiler for numba whose library stays unoptimised LLVM code."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_machinery import PassManager
    from numba.core.typed_passes import (
        AnnotateTypes,
        IRLegalization,
        NativeLowering,
        NoPythonBackend,
        NopythonTypeInference,
        PreLowerStripPhis,
    )
    from numba.core.untyped_passes import (
        FixupArgs,
        GenericRewrites,
        IRProcessing,
        ReconstructSSA,
        TranslateByteCode,
    )

    class NoEnvironment:
        """Stands for numba's code generator.  numba would call it only to store the addresses of
        Python objects in machine code, and there is no machine code."""

        def set_env(self, name, environment):
            pass

    class Linked(JITCodeLibrary):
        """The LLVM code of a function and all functions that it calls."""

        codegen = NoEnvironment()

        def _optimize_final_module(self):
            pass

        def _finalize_final_module(self):
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, name):
            self._ensure_finalized()
            return 0

    class LinkedCompiler(Compiler):
        def define_pipelines(self):
            state = self.state
            if state.library is None:
                state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
            # a kernel's functions have no closures, contexts, overloads, generators or arrays
            made = PassManager("linked")
            made.add_pass(TranslateByteCode, "analyzing bytecode")
            made.add_pass(FixupArgs, "fix up args")
            made.add_pass(IRProcessing, "processing IR")
            made.add_pass(GenericRewrites, "nopython rewrites")
            made.add_pass(ReconstructSSA, "ssa")
            made.add_pass(NopythonTypeInference, "nopython frontend")
            made.add_pass(PreLowerStripPhis, "remove phis nodes")
            made.add_pass(IRLegalization, "ensure IR is legal prior to lowering")
            made.add_pass(AnnotateTypes, "annotate types")
            made.add_pass(NativeLowering, "native lowering")
            made.add_pass(NoPythonBackend, "nopython mode backend")
            made.finalize()
            return [made]

    return LinkedCompiler


_options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
if LINKED:
    _options["pipeline_class"] = _pipeline()

linked = njit(**_options)
#: Like `linked`, but the compiler must inline the function into each of its callers.
inline = njit(forceinline=True, **_options)

"""Imported by the process that workers are forked from, after what their tasks need, and by no other.

While the main process is still importing, this one has what takes workers long, so that each need not do it.
"""

from __future__ import annotations

import sys
from types import TracebackType


def _unless_main_is_dead(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an error, but not that the main process was killed while it was starting a worker: nobody is left to ask."""
    if not isinstance(error, EOFError | BrokenPipeError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _unless_main_is_dead

if "schedgap.models" in sys.modules:
    from schedgap.models import _pyomo

    _pyomo.load()
elif "schedgap.heuristics.simulator" in sys.modules:
    # Every simulation runs kernels. None multiplies matrices, for which numba would import scipy.linalg now: 0.15 s of
    # CPU that all workers wait for.
    sys.modules["scipy.linalg.cython_blas"] = None  # type: ignore[assignment]
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    del sys.modules["scipy.linalg.cython_blas"]

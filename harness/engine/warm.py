"""Imported last by the process that workers are forked from, after what their tasks need, and by no other.

While the main process is still importing, this one has what takes workers long, so that each need not do it.
"""

from __future__ import annotations

import gc
import sys

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

gc.freeze()  # no worker looks for garbage in what all of them have

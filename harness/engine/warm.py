"""Warm-up of the fork server; only the server imports this module, after the modules that tasks need.

It does once, while the main process is still importing, what every worker would otherwise do itself.
"""

from __future__ import annotations

import gc
import sys

if "schedgap.models" in sys.modules:
    from schedgap.models.engine import _pyomo

    _pyomo.load()
elif "schedgap.heuristics.simulator" in sys.modules:
    # Every simulation runs kernels, but none multiplies matrices, for which numba would import scipy.linalg: 0.15 s of
    # CPU that all workers would wait for.
    sys.modules["scipy.linalg.cython_blas"] = None  # type: ignore[assignment]
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    del sys.modules["scipy.linalg.cython_blas"]

gc.freeze()  # workers need not look for garbage in the objects that they share

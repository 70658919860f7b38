"""Imports everything in the process from which the workers of all tests are forked, so that they need not do so.

Kernels are loaded from numba's cache on disk, where earlier runs have put them.
"""

from __future__ import annotations

import gc
from importlib import import_module
from pathlib import Path
from typing import Any

import schedgap
from schedgap.harness.cli.app import TASKS
from schedgap.harness.engine import server  # noqa: F401 -- how it goes about things
from schedgap.models.engine import _pyomo

ROOT = Path(schedgap.__file__).parent


def load(kernel: Any) -> None:
    """Load the compiled versions of a kernel from numba's cache, if there are any."""
    kept = vars(kernel._cache).get("_cache_file")
    for signature, *_ in kept._load_index() if kept else ():
        kernel.compile(signature)


_pyomo.load()
for name in (*TASKS.values(), "highspy", "scipy.optimize", "schedgap.harness.show.plots", "schedgap.harness.show.page"):
    import_module(name)
for path in ROOT.glob("*/**/_kernels.py"):
    module = import_module(".".join(("schedgap", *path.relative_to(ROOT).with_suffix("").parts)))
    for value in vars(module).values():
        if hasattr(value, "py_func"):
            load(value)
gc.freeze()

"""Imported by the process that workers of all tests are forked from: none of them is to import or load anything.

Kernels are those that numba has in its cache on disk, as earlier runs compiled them.
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
    """Load the compiled versions of a kernel, if numba keeps any."""
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

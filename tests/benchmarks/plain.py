"""Runs compiled loops as plain Python, to measure what compiling them gains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np


@contextmanager
def plain_python(*modules: ModuleType) -> Iterator[None]:
    """Run the functions of these modules uncompiled, as plain Python, within the block."""
    found = [(module, *item) for module in modules for item in vars(module).items()]
    compiled = [(module, name, function) for module, name, function in found if hasattr(function, "py_func")]
    try:
        for module, name, function in compiled:
            setattr(module, name, function.py_func)
        with np.errstate(all="ignore"):
            yield
    finally:
        for module, name, function in compiled:
            setattr(module, name, function)

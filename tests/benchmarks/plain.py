"""Compiled inner loops as the plain Python that they are written in: what compiling them is measured against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np


@contextmanager
def plain_python(*modules: ModuleType) -> Iterator[None]:
    """Run the loops of these modules uncompiled inside."""
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

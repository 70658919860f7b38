"""Importing the modules of a package: all of them at once, or each on first use."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any


def import_submodules(package: str) -> None:
    """Import all direct submodules of `package` in alphabetical order, so that a new file registers itself.

    Names that begin with an underscore are skipped: they are compiled kernels, which are slow to import.
    """
    from schedgap.instances.plugins import importing  # here, because --help does not need it

    module = importlib.import_module(package)
    with importing(None):
        for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda m: m.name):
            if not info.name.startswith("_"):
                importlib.import_module(f"{package}.{info.name}")


def lazy_attributes(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Import attribute `name` of `package` on first use, store it in `package`, and return it.

    `homes` maps attributes to the modules that define them; any other name must be a module in `package`, or
    ``AttributeError`` is raised.
    """
    if name in homes:
        value = getattr(importlib.import_module(homes[name]), name)
    elif not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
        value = importlib.import_module(f"{package}.{name}")
    else:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    setattr(sys.modules[package], name, value)
    return value

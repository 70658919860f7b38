"""Importing what a package consists of: every file of it at once, or a name of it when that is first used."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any


def import_submodules(package: str) -> None:
    """Import all direct submodules of `package` in alphabetical order; a new file needs no line elsewhere.

    Names that begin with an underscore are left to whoever needs them: compiled kernels, which take long to import.
    """
    from schedgap.instances.plugins import importing  # which the help of a command does not need

    module = importlib.import_module(package)
    with importing(None):
        for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda m: m.name):
            if not info.name.startswith("_"):
                importlib.import_module(f"{package}.{info.name}")


def lazy_attributes(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return attribute `name` from the module that holds it, and keep it in `package` for the next time.

    `homes` has the module of each attribute; a name that it lacks is that of a module in `package`, or an
    ``AttributeError``.
    """
    if name in homes:
        value = getattr(importlib.import_module(homes[name]), name)
    elif not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
        value = importlib.import_module(f"{package}.{name}")
    else:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    setattr(sys.modules[package], name, value)
    return value

"""Importing every file of a package, so that each can register what it defines."""

from __future__ import annotations

import importlib
import pkgutil

from schedgap.instances.plugins import importing


def import_submodules(package: str) -> None:
    """Import all direct submodules of `package` in alphabetical order; a new file needs no line elsewhere.

    Names that begin with an underscore are left to whoever needs them: compiled kernels, which take long to import.
    """
    module = importlib.import_module(package)
    with importing(None):
        for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda m: m.name):
            if not info.name.startswith("_"):
                importlib.import_module(f"{package}.{info.name}")

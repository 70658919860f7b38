"""Importing all modules of a package, so that a new file registers what it defines."""

from __future__ import annotations

import importlib
import pkgutil


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

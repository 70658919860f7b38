"""Importing every file of a package, so that each can register what it defines."""

from __future__ import annotations

import importlib
import pkgutil


def import_submodules(package: str) -> None:
    """Import all direct submodules of `package` in alphabetical order; a new file needs no line elsewhere."""
    module = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda m: m.name):
        importlib.import_module(f"{package}.{info.name}")

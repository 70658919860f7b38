"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any


def lazy_attributes(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return attribute `name` from the module that holds it, and keep it in `package` for the next time.

    `homes` has the module of each attribute; where it lacks `name`, that is an ``AttributeError``.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(homes[name]), name)
    setattr(sys.modules[package], name, value)
    return value

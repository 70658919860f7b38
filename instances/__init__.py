"""Instances: one schema, generators, worked examples, trace importers, and each paper's view of them.

>>> from schedgap import instances
>>> instances.load("paper/oef-eq1").cluster.gpus
2
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

import lazy_loader

from schedgap.instances.errors import InstanceError, NotApplicableError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from schedgap.instances.catalogue import load
    from schedgap.instances.schema import Instance

__all__ = ["Instance", "InstanceError", "NotApplicableError", "UnknownNameError", "UsageError", "load"]

# Importing the schema and the generators takes a fifth of a second, too long for a command's --help.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")],
    {"catalogue": ["load"], "schema": ["Instance"]},
)

"""Instances: one schema, generators, worked examples, trace importers, and each paper's view of them.

>>> from schedgap import instances
>>> instances.load("paper/oef-eq1").cluster.gpus
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schedgap.instances.discovery import lazy_attributes
from schedgap.instances.errors import InstanceError, NotApplicableError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from schedgap.instances.catalogue import load
    from schedgap.instances.schema import Instance

__all__ = ["Instance", "InstanceError", "NotApplicableError", "UnknownNameError", "UsageError", "load"]


def __getattr__(name: str) -> Any:
    # Importing the schema and the generators takes a fifth of a second, too long for a command's --help.
    return lazy_attributes(
        __name__, {"load": "schedgap.instances.catalogue", "Instance": "schedgap.instances.schema"}, name
    )

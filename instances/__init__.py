"""Instances: one schema, generators, worked examples, trace importers, and each paper's view of them.

>>> import instances
>>> instances.load("paper/oef-eq1").cluster.gpus
2
"""

from instances.catalogue import load
from instances.errors import InstanceError, NotApplicableError, UnknownNameError, UsageError
from instances.schema import Instance

__all__ = ["Instance", "InstanceError", "NotApplicableError", "UnknownNameError", "UsageError", "load"]

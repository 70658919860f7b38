"""The validated schema that all papers, generators and traces share.

An :class:`Instance` is immutable. Durations are in seconds, memory in gigabytes, bandwidth in gigabits per second;
every quantity carries its unit in its name. Each paper reads an instance through its own view
(:mod:`schedgap.instances.views`), which converts to slots once.

Each field declares its rule in words (:func:`rule`), so that a validation error can say what would be right:
``jobs[17].gpus = 0: a job needs at least one GPU``.
"""

from schedgap.instances.schema.base import Name, Record, Text, Variant, rule, violation
from schedgap.instances.schema.cluster import Cluster, GpuType, PSType, ServerGroup, WorkerType
from schedgap.instances.schema.content import SCHEMA_VERSION, Horizon, Published
from schedgap.instances.schema.instance import Instance, check_size
from schedgap.instances.schema.job import (
    Constant,
    DistributedProfile,
    EffectiveThroughput,
    History,
    Job,
    JobType,
    LinearDeadline,
    MatrixSensitivity,
    NormalisedThroughput,
    PipelineSensitivity,
    Sensitivity,
    Sigmoid,
    Tenant,
    Utility,
)
from schedgap.instances.schema.limits import MAX_ITERATIONS

__all__ = [
    "MAX_ITERATIONS", "SCHEMA_VERSION", "Cluster", "Constant", "DistributedProfile", "EffectiveThroughput",
    "GpuType", "History", "Horizon", "Instance", "Job", "JobType", "LinearDeadline", "MatrixSensitivity", "Name",
    "NormalisedThroughput", "PSType", "PipelineSensitivity", "Published", "Record", "Sensitivity", "ServerGroup",
    "Sigmoid", "Tenant", "Text", "Utility", "Variant", "WorkerType", "check_size", "rule", "violation",
]  # fmt: skip

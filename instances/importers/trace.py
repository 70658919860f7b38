"""What an importer hands to the filling rules: jobs as their trace has them, and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REFERENCE = "V100"
"""GPU type on which durations count as recorded where the trace names none."""

NO_GPU = "they ask for 0 GPUs"
"""Reason to leave out jobs that run on CPUs alone."""

MAX_GANG = 100_000
"""Largest gang that the schema takes."""

MAX_DURATION_S = 1e9
"""Longest run time, 31 years."""

GAVEL_CLUSTER: Mapping[str, int] = {"V100": 36, "P100": 36, "K80": 36}
"""GPUs of Gavel's simulated cluster: the default where neither the trace nor the user gives one."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job as its trace has it. What the trace does not say is absent.

    Attributes
    ----------
    tenant
        Virtual cluster, user or job type; ``""`` where the trace has such a column and left it empty.
    gpus_used
        GPUs that the work counts with where the job shares a GPU (0.46 of one).
    gpu_type
        Type of the GPUs that the duration was recorded on.
    allowed
        GPU types that the job may use; all where empty.
    rates
        Recorded iterations/s of one GPU of each type.
    slo
        Deadline after arrival, in multiples of the time the job takes on the reference type.
    """

    id: str
    submit_s: float
    gpus: int
    tenant: str | None = None
    model: str | None = None
    iterations: int | None = None
    duration_s: float | None = None
    gpus_used: float | None = None
    gpu_type: str | None = None
    allowed: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    slo: float | None = None
    status: str | None = None


@dataclass(frozen=True)
class Trace:
    """A trace as read: what the filling rules turn into an instance.

    Attributes
    ----------
    left_out
        Reason and number of the jobs that are not among `jobs`, which stand in the order of the file.
    notes
        What the importer itself decided, one sentence each.
    tenants
        What the tenants are (``"virtual clusters"``), if the trace has them.
    gang_iterations
        Whether one iteration is a step of the whole gang, so that one GPU of a gang of four does a quarter of
        it.
    reference
        GPU type that durations were recorded on where a job names none.
    """

    format: str
    path: Path
    jobs: Sequence[TraceJob]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tenants: str | None = None
    gang_iterations: bool = False
    reference: str = REFERENCE
    default_gpus: Mapping[str, int] = field(default_factory=lambda: GAVEL_CLUSTER)
    default_per_server: int = 4

"""Jobs with their rates, sensitivity and utility, and the tenants that submit them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from schedgap.instances.schema.base import Name, Record, Variant, fraction, rule, violation


class MatrixSensitivity(Variant):
    """Measured progress on a grid of CPUs and memory per GPU, relative to a proportional share (Synergy)."""

    kind: Literal["matrix"] = "matrix"
    cpus_per_gpu: tuple[float, ...] = rule("CPU levels, ascending", min_length=1)
    memory_gb_per_gpu: tuple[float, ...] = rule("memory levels in GB per GPU, ascending", min_length=1)
    progress: tuple[tuple[float, ...], ...] = rule("one row per CPU level, one column per memory level, all 0 or more")

    @model_validator(mode="after")
    def _shape(self) -> Self:
        for axis in ("cpus_per_gpu", "memory_gb_per_gpu"):
            levels = list(getattr(self, axis))
            if levels != sorted(set(levels)) or levels[0] <= 0:
                raise violation(axis, levels, "levels are positive and ascending")
        rows, columns = len(self.cpus_per_gpu), len(self.memory_gb_per_gpu)
        shape = [len(row) for row in self.progress]
        if shape != [columns] * rows:
            raise violation("progress", f"rows of {shape}", f"{rows} rows (CPU levels) of {columns} (memory levels)")
        if min(map(min, self.progress)) < 0:
            raise violation("progress", min(map(min, self.progress)), "progress is 0 or more")
        return self


class PipelineSensitivity(Variant):
    """Input pipeline of a job: its rate is the least of the GPU's, preprocessing and fetching (Synergy, §3.2)."""

    kind: Literal["pipeline"] = "pipeline"
    prep_rate_per_cpu: float = rule("iterations/s one CPU can prepare, positive", gt=0)
    item_mb_per_iteration: float = rule("megabytes read per iteration, 0 or more", ge=0)
    dataset_gb: float = rule("dataset size, positive", gt=0)
    process_memory_gb: float = rule("memory of the process itself, 0 or more", ge=0)
    storage_mb_per_s: float = rule("storage bandwidth, positive", gt=0)


Sensitivity = Annotated[MatrixSensitivity | PipelineSensitivity, Field(discriminator="kind")]


class EffectiveThroughput(Variant):
    """Utility = iterations / completion time (Hadar's default)."""

    kind: Literal["effective_throughput"] = "effective_throughput"


class NormalisedThroughput(Variant):
    """Effective throughput divided by the job's best rate, so that jobs of different models add up."""

    kind: Literal["normalised"] = "normalised"


class Sigmoid(Variant):
    """Utility ``amplitude / (1 + exp(steepness_per_s · (completion − midpoint_s)))``."""

    kind: Literal["sigmoid"] = "sigmoid"
    amplitude: float = rule("utility amplitude is positive", gt=0)
    steepness_per_s: float = rule("utility steepness is positive", gt=0)
    midpoint_s: float = rule("utility midpoint is 0 or more seconds", ge=0, default=0.0)


class LinearDeadline(Variant):
    """Utility `amplitude` up to the deadline, then falling linearly to 0 within `grace_s`."""

    kind: Literal["linear_deadline"] = "linear_deadline"
    amplitude: float = rule("utility amplitude is positive", gt=0)
    grace_s: float = rule("grace period after the deadline is 0 or more seconds", ge=0, default=0.0)


class Constant(Variant):
    """Utility `amplitude` whenever the job completes."""

    kind: Literal["constant"] = "constant"
    amplitude: float = rule("utility amplitude is positive", gt=0)


Utility = Annotated[
    EffectiveThroughput | NormalisedThroughput | Sigmoid | LinearDeadline | Constant, Field(discriminator="kind")
]


class DistributedProfile(Record):
    """Properties of a job for placing workers, parameter servers (PSs) and rings (Zhou; the walk-through).

    `minibatch_ms` is the time of one mini-batch on each worker type, `update_ms` that of one update on each PS type,
    `ring_update_ms` that of an update in a ring (by default the shortest of `update_ms`). If a job's rate does not
    depend on types, `colocated_rate_per_s` and `spread_rate_per_s` are the mini-batches per second of one worker if all
    workers and PSs share a server, and if they do not.
    """

    gradient_mb: float = rule("gradient size is 0 or more", ge=0, default=0.0)
    minibatch_ms: Mapping[Name, Annotated[float, Field(gt=0)]] = rule(
        "milliseconds per worker type, positive", default={}
    )
    update_ms: Mapping[Name, Annotated[float, Field(ge=0)]] = rule("milliseconds per PS type, 0 or more", default={})
    ring_update_ms: float | None = rule("milliseconds per update in a ring, 0 or more", ge=0, default=None)
    colocated_rate_per_s: float | None = rule("mini-batches per second are positive", gt=0, default=None)
    spread_rate_per_s: float | None = rule("mini-batches per second are positive", gt=0, default=None)


MOST_RUNS = 100_000
"""Most runs of a job."""


class History(Record):
    """How a job ran according to a log: its GPU type, runs (start and end in seconds), and requested time.

    `hosts` holds, for each run, the GPUs that it certainly held on each server. `durations_s` holds the duration of the
    whole job on other GPU types, to which it may be moved.
    """

    gpu_type: Name
    runs: tuple[tuple[float, float], ...] = rule("pairs of start and end, ascending", max_length=MOST_RUNS, default=())
    hosts: tuple[Mapping[Name, Annotated[int, Field(ge=1)]], ...] = rule(
        "for each run, the GPUs on each server, 1 or more", max_length=MOST_RUNS, default=()
    )
    partition: Name | None = None
    requested_s: float | None = rule("a requested time is 0 or more seconds", ge=0, default=None)
    durations_s: Mapping[Name, Annotated[float, Field(ge=0)]] = rule("0 or more seconds on a GPU type", default={})

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        times = [time for run in self.runs for time in run]
        if any(a > b for a, b in pairwise([0.0, *times])):
            raise violation("runs", self.runs[:4], "pairs of start and end, 0 s or more, ascending")
        if len(self.hosts) not in (0, len(self.runs)):
            raise violation(
                "hosts", f"{len(self.hosts)} entries", f"one entry for each of {len(self.runs)} runs, or none"
            )
        return self


class Job(Record):
    """A training job of ``epochs · chunks · minibatches_per_chunk`` iterations."""

    id: Name
    tenant: Name | None = None
    model: Name | None = None
    submit_s: float = rule("submission time is 0 or more seconds", ge=0, default=0.0)
    gpus: int = rule("a job needs at least one GPU", ge=1)
    epochs: int = rule("a job has at least one epoch", ge=1)
    chunks: int = rule("a job has at least one data chunk", ge=1, default=1)
    minibatches_per_chunk: int = rule("a chunk has at least one mini-batch", ge=1, default=1)
    weight: float = rule("a weight is 0 or more", ge=0, default=1.0)
    deadline_s: float | None = rule("a deadline is after the submission", gt=0, default=None)
    rates: Mapping[Name, Annotated[float, Field(ge=0)]] = rule(
        "iterations per second of ONE GPU of each type, 0 or more", default={}
    )
    sensitivity: Sensitivity | None = None
    distributed: DistributedProfile | None = None
    utility: Utility = EffectiveThroughput()
    duration_s: float | None = rule("a recorded duration is 0 or more seconds", ge=0, default=None)
    status: Name | None = None
    history: History | None = None

    @property
    def iterations(self) -> int:
        """Total work in iterations (mini-batches)."""
        return self.epochs * self.chunks * self.minibatches_per_chunk


class JobType(Record):
    """A type of job that a tenant runs, with its true rates and the rates that the tenant reports."""

    name: Name
    rates: Mapping[Name, Annotated[float, Field(gt=0)]] = rule("a positive rate for each GPU type", min_length=1)
    reported_rates: Mapping[Name, Annotated[float, Field(gt=0)]] | None = rule(
        "a positive rate for each GPU type", default=None
    )


class Tenant(Record):
    """A user of the cluster, with a weight (priority) and, for fairness models, the job types it runs."""

    id: Name
    weight: Annotated[float, BeforeValidator(fraction)] = rule("a tenant's weight is positive", gt=0, default=1.0)
    job_types: tuple[JobType, ...] = ()
    arrive_s: float = rule("arrival is 0 or more seconds", ge=0, default=0.0)
    leave_s: float | None = rule("a tenant leaves after it arrives", gt=0, default=None)

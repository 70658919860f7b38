"""The one validated schema that every paper, generator and trace shares.

An :class:`Instance` is immutable. Durations are in seconds, memory in gigabytes, bandwidth in gigabits per
second; every quantity carries its unit in its name. Each paper reads an instance through its own view
(:mod:`instances.views`), which converts to slots once.

Field rules are written beside the fields (:func:`rule`), so that a validation error can say what would be
right: ``jobs[17].gpus = 0: a job needs at least one GPU``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

SCHEMA_VERSION: Final = 1
MAX_ITEMS = 1_000_000
"""Largest number of jobs, servers, tenants or slots of one instance, checked before memory is taken for them.

To raise it: ``import instances.schema; instances.schema.MAX_ITEMS = …``.
"""
MAX_ITERATIONS = 10**15
"""Largest work of one job in iterations; below 2**53, so that arrays of floats hold it exactly."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
FRACTION = re.compile(r"[+-]?[0-9]{1,15}(/0*[1-9][0-9]{0,14})?", re.ASCII)
"""Fractions that :func:`fraction` reads; no exponents: ``1e999999999`` as a fraction fills the memory."""
Text = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]


def rule(what_is_right: str, **constraints: Any) -> Any:
    """Return a pydantic field whose validation error says `what_is_right`.

    Parameters
    ----------
    what_is_right
        Sentence shown after the offending value.
    **constraints
        Passed to :func:`pydantic.Field` (``gt``, ``ge``, ``default``, …).
    """
    return Field(json_schema_extra={"rule": what_is_right}, **constraints)


def fraction(value: Any) -> Any:
    """Turn ``"54/13"`` into a float; other values pass unchanged (pydantic then validates them)."""
    if isinstance(value, str) and FRACTION.fullmatch(value):
        return float(Fraction(value))
    if isinstance(value, list | tuple):
        return tuple(fraction(item) for item in value)
    return value


def violation(path: str, value: object, what_is_right: str) -> PydanticCustomError:
    """Return the error of a rule that concerns several fields at once."""
    return PydanticCustomError(
        "consistency",
        "{path} = {value}: {rule}",
        {"path": path, "value": str(value)[:80], "rule": what_is_right},
    )


class Record(BaseModel):
    """Base of all parts: immutable, closed to unknown fields, no NaN, no infinity, no silent conversion."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, strict=True, ignored_types=(cached_property,)
    )


class Variant(Record):
    """Base of the alternatives of a field: `kind` tells them apart, so it is written even at its default."""

    kind: str

    @model_serializer(mode="wrap")
    def _with_kind(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"kind": self.kind, **write(self)}


class GpuType(Record):
    """A kind of accelerator."""

    name: Name
    tflops: float | None = rule("peak single-precision TFLOPS are positive", gt=0, default=None)
    memory_gb: float | None = rule("GPU memory is positive", gt=0, default=None)


class ServerGroup(Record):
    """`count` servers of one kind; capacities are those of ONE server."""

    name: Name
    count: int = rule("a server group has at least one server", ge=1)
    gpu_type: Name
    gpus: int = rule("GPUs per server are a whole number, 0 to 10000", ge=0, le=10_000)
    cpus: float = rule("CPUs per server are 0 or more", ge=0, default=0.0)
    memory_gb: float = rule("memory per server is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth per server is 0 or more", ge=0, default=0.0)
    ps_slots: int = rule("parameter-server slots are a whole number, 0 or more", ge=0, default=0)
    rack: Name | None = None


class Cluster(Record):
    """GPU types and the servers that hold them."""

    gpu_types: tuple[GpuType, ...] = rule("a cluster has at least one GPU type", min_length=1, max_length=1000)
    servers: tuple[ServerGroup, ...] = rule("a cluster has at least one server", min_length=1)

    @cached_property
    def gpus_by_type(self) -> Mapping[str, int]:
        """Number of GPUs of every type, in the order of `gpu_types`."""
        totals = dict.fromkeys((g.name for g in self.gpu_types), 0)
        for group in self.servers:
            totals[group.gpu_type] += group.count * group.gpus
        return totals

    @property
    def gpus(self) -> int:
        """Number of GPUs of all types."""
        return sum(self.gpus_by_type.values())


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
    """Input pipeline of a job: the rate is the least of GPU, preprocessing and fetching (Synergy, §3.2)."""

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
    EffectiveThroughput | NormalisedThroughput | Sigmoid | LinearDeadline | Constant,
    Field(discriminator="kind"),
]


class DistributedProfile(Record):
    """What worker, parameter-server and ring-all-reduce placement needs of a job (Zhou; the walk-through).

    `minibatch_ms` is the time of one mini-batch on a worker type, `update_ms` that of one update on a PS
    type. Where a job's rate does not depend on types, `colocated_rate_per_s` and `spread_rate_per_s` are
    the mini-batches per second of one worker when all workers and PSs share a server, and when they do not.
    """

    gradient_mb: float = rule("gradient size is 0 or more", ge=0, default=0.0)
    minibatch_ms: Mapping[Name, Annotated[float, Field(gt=0)]] = rule(
        "milliseconds per worker type, positive", default={}
    )
    update_ms: Mapping[Name, Annotated[float, Field(ge=0)]] = rule("milliseconds per PS type, 0 or more", default={})
    colocated_rate_per_s: float | None = rule("mini-batches per second are positive", gt=0, default=None)
    spread_rate_per_s: float | None = rule("mini-batches per second are positive", gt=0, default=None)


class Job(Record):
    """One training job. Work = ``epochs · chunks · minibatches_per_chunk`` iterations."""

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

    @property
    def iterations(self) -> int:
        """Total work in iterations (mini-batches)."""
        return self.epochs * self.chunks * self.minibatches_per_chunk


class JobType(Record):
    """A kind of job that a tenant runs, with its true rates and the rates the tenant reports."""

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


class WorkerType(Record):
    """Resources of one worker (Zhou's ``e_m^r``; bandwidth is ``b_m``)."""

    name: Name
    gpu_type: Name | None = None
    gpus: int = rule("a worker has a whole number of GPUs, 0 or more", ge=0)
    cpus: float = rule("CPUs are 0 or more", ge=0, default=0.0)
    memory_gb: float = rule("memory is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth of a worker is positive", gt=0)


class PSType(Record):
    """Resources of one parameter server (Zhou's ``z_p^r``; bandwidth is ``B_p``)."""

    name: Name
    gpus: int = rule("a parameter server has a whole number of GPUs, 0 or more", ge=0, default=0)
    cpus: float = rule("CPUs are 0 or more", ge=0, default=0.0)
    memory_gb: float = rule("memory is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth of a parameter server is positive", gt=0)


class Horizon(Record):
    """Slot length and number of slots."""

    slot_s: float = rule("a slot has a positive length in seconds", gt=0)
    slots: int = rule("a horizon has at least one slot", ge=1)

    @property
    def end_s(self) -> float:
        """End of the last slot in seconds."""
        return self.slot_s * self.slots


Number = Annotated[float, BeforeValidator(fraction)]
Numbers = Annotated[tuple[tuple[float, ...], ...] | tuple[float, ...] | float, BeforeValidator(fraction)]


class Published(Record):
    """One number (vector, matrix) that a paper printed about this instance, and what is exactly true.

    `method` is a registered method, `quantity` one of its objective (``objective``) or metrics, `value`
    what the paper printed (absent where it printed none), `tolerance` half a unit of its last printed
    place, `exact` what holds by computation or proof where the two differ or where the paper is silent.
    """

    method: Name
    quantity: Name = "objective"
    value: Numbers | None = None
    tolerance: float = rule("a tolerance is positive", gt=0, default=0.005)
    exact: Numbers | None = None
    unit: Name = "1"
    where: Name
    note: Text = ""


class Instance(Record):
    """A cluster, its jobs and tenants, a horizon, and what has been published about them.

    Attributes
    ----------
    derived
        What was filled in by rule rather than given (``rates of 812 jobs from catalogue model …``).
    published
        Numbers that papers printed about this instance; tested against, never used.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Name
    title: Text = ""
    source: Text = ""
    licence: Text = ""
    derived: tuple[Text, ...] = ()
    cluster: Cluster
    tenants: tuple[Tenant, ...] = ()
    jobs: tuple[Job, ...] = ()
    worker_types: tuple[WorkerType, ...] = rule("at most 1000 worker types", max_length=1000, default=())
    ps_types: tuple[PSType, ...] = rule("at most 1000 PS types", max_length=1000, default=())
    horizon: Horizon | None = None
    published: tuple[Published, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_sizes(self)
        check_names(self)
        check_cluster(self)
        check_tenants(self)
        check_jobs(self)
        return self

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical content, in hexadecimal (see :func:`instances.canonical.fingerprint`)."""
        from instances.canonical import fingerprint

        return fingerprint(self)

    def _repr_html_(self) -> str:
        from instances.summary import to_html

        return to_html(self)


def check_sizes(instance: Instance) -> None:
    """Raise where there is more of something than :data:`MAX_ITEMS` allows."""
    sizes = {
        "cluster.servers": sum(group.count for group in instance.cluster.servers),
        "tenants": len(instance.tenants),
        "jobs": len(instance.jobs),
        "horizon.slots": instance.horizon.slots if instance.horizon else 0,
    }
    for path, size in sizes.items():
        check_size(path, size)


def check_size(path: str, size: int) -> None:
    """Raise where `size` is more than :data:`MAX_ITEMS`; the message says how to raise the limit."""
    if size > MAX_ITEMS:
        raise violation(path, size, f"at most {MAX_ITEMS}; to raise it, set instances.schema.MAX_ITEMS in Python")


def check_names(instance: Instance) -> None:
    """Raise where two things of one kind share an id, or where nothing asks for GPUs."""
    cluster = instance.cluster
    unique("cluster.gpu_types", "name", (g.name for g in cluster.gpu_types))
    unique("cluster.servers", "name", (s.name for s in cluster.servers))
    unique("tenants", "id", (t.id for t in instance.tenants))
    unique("jobs", "id", (j.id for j in instance.jobs))
    unique("worker_types", "name", (w.name for w in instance.worker_types))
    unique("ps_types", "name", (p.name for p in instance.ps_types))
    if not instance.jobs and not any(t.job_types for t in instance.tenants):
        raise violation("jobs", "[]", "an instance has jobs, or tenants with job types")


def unique(path: str, field: str, names: Iterable[str]) -> None:
    """Raise on the first name that occurs twice."""
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in seen:
            raise violation(
                f"{path}[{i}].{field}",
                name,
                f"already used by {path}[{seen[name]}]; each {field} occurs once",
            )
        seen[name] = i


def check_cluster(instance: Instance) -> None:
    """Raise where servers or worker types name an unknown GPU type, or where there is no GPU at all."""
    types = {g.name for g in instance.cluster.gpu_types}
    for i, group in enumerate(instance.cluster.servers):
        known(f"cluster.servers[{i}].gpu_type", group.gpu_type, types, "GPU type")
    for i, worker in enumerate(instance.worker_types):
        if worker.gpu_type is not None:
            known(f"worker_types[{i}].gpu_type", worker.gpu_type, types, "GPU type")
    if instance.cluster.gpus == 0:
        raise violation("cluster.servers", "0 GPUs", "a cluster has at least one GPU")


def known(path: str, name: str, names: Iterable[str], kind: str) -> None:
    """Raise where `name` is none of `names`."""
    if name not in names:
        listed = ", ".join(sorted(names)[:8]) or "none"
        raise violation(path, name, f"unknown {kind}; known: {listed}")


def check_tenants(instance: Instance) -> None:
    """Raise on a tenant that leaves before it arrives, or whose job types miss a GPU type of the cluster."""
    types = instance.cluster.gpus_by_type
    for i, tenant in enumerate(instance.tenants):
        if tenant.leave_s is not None and tenant.leave_s <= tenant.arrive_s:
            raise violation(f"tenants[{i}].leave_s", tenant.leave_s, f"after arrive_s = {tenant.arrive_s:g}")
        for t, kind in enumerate(tenant.job_types):
            for field, rates in (("rates", kind.rates), ("reported_rates", kind.reported_rates)):
                if rates is not None and set(rates) != set(types):
                    path = f"tenants[{i}].job_types[{t}].{field}"
                    raise violation(path, ", ".join(rates), f"one rate for each GPU type: {', '.join(types)}")


def check_jobs(instance: Instance) -> None:
    """Raise on a job that could never run: unknown names, an arrival after the horizon, too large a gang."""
    tenants = {t.id for t in instance.tenants}
    workers = {w.name for w in instance.worker_types}
    servers = {p.name for p in instance.ps_types}
    end = instance.horizon.end_s if instance.horizon else math.inf
    for i, job in enumerate(instance.jobs):
        path = f"jobs[{i}]"
        if tenants and job.tenant is not None:
            known(f"{path}.tenant", job.tenant, tenants, "tenant")
        if job.submit_s >= end:
            raise violation(f"{path}.submit_s", job.submit_s, f"before the end of the horizon, {end:g} s")
        if job.deadline_s is not None and job.deadline_s <= job.submit_s:
            raise violation(f"{path}.deadline_s", job.deadline_s, f"after submit_s = {job.submit_s:g}")
        if job.iterations > MAX_ITERATIONS:
            raise violation(f"{path}: iterations", job.iterations, f"at most {MAX_ITERATIONS} (epochs · chunks · …)")
        if job.distributed:
            for worker in job.distributed.minibatch_ms:
                known(f"{path}.distributed.minibatch_ms", worker, workers, "worker type")
            for server in job.distributed.update_ms:
                known(f"{path}.distributed.update_ms", server, servers, "PS type")
        check_gang(instance.cluster, path, job)


def check_gang(cluster: Cluster, path: str, job: Job) -> None:
    """Raise where a job's gang does not fit on the GPUs it can use."""
    totals = cluster.gpus_by_type
    for gpu_type in job.rates:
        known(f"{path}.rates", gpu_type, totals, "GPU type")
    usable = [r for r, rate in job.rates.items() if rate > 0] if job.rates else list(totals)
    if not usable:
        raise violation(f"{path}.rates", dict(job.rates), "a positive rate on at least one GPU type")
    available = sum(totals[r] for r in usable)
    if job.gpus > available:
        raise violation(f"{path}.gpus", job.gpus, f"a gang fits on the {available} GPUs the job can use")

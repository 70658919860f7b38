"""OEF's setups: tenants with one job type each on three GPU generations, and a large setup for scaling.

Source: Mo, Xu, Lau (Middleware 2024), §6.1 and §6.3: 24 GPUs (8 each of RTX 3070, 3080 and 3090, four per
host), 20 tenants, or 50 tenants with 20 jobs each on average over three days; §6.4: ten GPU types.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from schedgap.instances.generate import draws, workload
from schedgap.instances.generate.core import FAMILIES, Family, GeneratorSpec, Streams
from schedgap.instances.generate.workload import WorkloadSpec
from schedgap.instances.model_catalogue import CatalogueModel, rates_on, significant
from schedgap.instances.schema import (
    Cluster,
    DistributedProfile,
    GpuType,
    Horizon,
    Job,
    JobType,
    ServerGroup,
    Tenant,
    check_size,
    rule,
    violation,
)

LEAST_STEP = 1.01
"""Least speedup from a GPU type to the next faster one, whatever the hyper-parameters."""


class TenantsSpec(WorkloadSpec):
    """Tenants with one job type each; hyper-parameters move speedups by up to `variation` (0.1 = ±10 %).

    The last tenant may leave after `leave_min` minutes. After `second_type_min` minutes, the first tenant may submit as
    many jobs of a second type again, those of the second model. 0 means never.
    """

    variation: float = rule("a variation is 0 or more and below 1", ge=0, lt=1)
    leave_min: float = rule("minutes until the last tenant leaves, 0 (never) or more", ge=0, le=1e6, default=0.0)
    second_type_min: float = rule(
        "minutes until the first tenant's second type of jobs, 0 (never) or more", ge=0, le=1e6, default=0.0
    )

    @model_validator(mode="after")
    def _second_model(self) -> Self:
        if self.second_type_min and len(self.models) < 2:
            raise violation("second_type_min", self.second_type_min, "with two models or more, else 0")
        return self


def build(spec: TenantsSpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    kinds = _kinds(spec, streams)
    submit = workload.arrivals(spec, spec.per_day / workload.DAY_S, streams)
    owner = (streams.uniform("job tenants", spec.jobs) * spec.tenants).astype(int)
    owner[: spec.tenants] = np.arange(min(spec.tenants, spec.jobs))
    names = [*(f"tenant-{i + 1:02d}" for i in range(spec.tenants)), "tenant-01"]
    arrive_s = submit[: spec.tenants] + [0.0] * (spec.tenants - spec.jobs)
    tenants = [
        Tenant(id=name, job_types=(kind,), arrive_s=at)
        for name, (_, kind), at in zip(names[:-1], kinds[:-1], arrive_s, strict=True)
    ]
    if spec.second_type_min:
        tenants[0] = tenants[0].model_copy(update={"job_types": (kinds[0][1], kinds[-1][1])})
        added = int((owner == 0).sum())
        owner = np.append(owner, np.full(added, spec.tenants))
        submit = [*submit, *[60 * spec.second_type_min] * added]
    if spec.leave_min:
        tenants[-1] = Tenant(**{**dict(tenants[-1]), "leave_s": 60 * spec.leave_min})
    jobs = _jobs(spec, streams, submit, [(names[of], *kinds[of]) for of in owner.tolist()])
    return {
        "cluster": workload.cluster(spec),
        "tenants": tuple(tenants),
        "jobs": jobs,
        "horizon": Horizon(slot_s=spec.slot_s, slots=spec.slots),
        "derived": (
            *workload.derivations(spec),
            f"hyper-parameters per tenant: speedup from one GPU type to the next within {spec.variation:.0%} "
            f"of the model's (and at least {LEAST_STEP}), rates between half and twice the model's",
        ),
    }


def _kinds(spec: TenantsSpec, streams: Streams) -> list[tuple[CatalogueModel, JobType]]:
    """Return the model and the job type of each tenant, and of the first tenant's second type."""
    # Tenants take models from the pool in turn, with rates for their own hyper-parameters.
    types, models = len(spec.type_names), workload.catalogue_models(spec)
    of_kind = [*itertools.islice(itertools.cycle(models), spec.tenants), models[1 % len(models)]]
    scale = np.power(2.0, 2 * streams.uniform("hyper-parameters: rate", len(of_kind)) - 1)
    steps = 1 + spec.variation * (2 * streams.uniform("hyper-parameters: speedups", len(of_kind) * types) - 1)
    varied = zip(of_kind, scale, steps.reshape(-1, types), strict=True)
    rates = [(model, vary(rates_on(model, spec.type_names)[0], *own)) for model, *own in varied]
    return [
        (model, JobType(name=model.name, rates=workload.typed(spec, own, streams, f"tenant {i}")))
        for i, (model, own) in enumerate(rates, start=1)
    ]


def _jobs(
    spec: TenantsSpec, streams: Streams, submit: Sequence[float], kinds: Sequence[tuple[str, CatalogueModel, JobType]]
) -> tuple[Job, ...]:
    """Draw jobs with these arrivals; `kinds` has the tenant, the model and the job type of each."""
    whole = spec.model_copy(update={"jobs": len(kinds)})
    gangs = workload.gang_sizes(whole, streams)
    durations = workload.durations(whole, gangs, streams)
    u = streams.uniform("epochs", len(kinds))
    jobs = []
    for i, (tenant, model, kind) in enumerate(kinds):
        work = durations[i] * gangs[i] * workload.mean_rate(kind.rates)
        epochs = max(1, min(draws.whole(u[i], *spec.epochs), int(work)))
        jobs.append(
            Job(
                id=f"job-{i + 1:04d}",
                tenant=tenant,
                model=model.name,
                submit_s=submit[i],
                gpus=gangs[i],
                epochs=epochs,
                minibatches_per_chunk=max(1, round(work / epochs)),
                rates=kind.rates,
                sensitivity=model.sensitivity,
                distributed=DistributedProfile(gradient_mb=model.gradient_mb),
            )
        )
    return tuple(jobs)


def vary(rates: dict[str, float], scale: float, factors: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return `rates` (slowest type first) times `scale`, with the speedup of each type over the one before varied.

    The speedup is multiplied by the type's entry in `factors`, and is at least :data:`LEAST_STEP`.
    """
    names, values = list(rates), list(rates.values())
    steps = [max(LEAST_STEP, b / a * f) for a, b, f in zip(values[:-1], values[1:], factors[1:], strict=True)]
    varied = itertools.accumulate([values[0] * scale, *steps], lambda a, b: a * b)
    return {name: significant(value) for name, value in zip(names, varied, strict=True)}


class ScaleSpec(GeneratorSpec):
    """Tenants with increasing random speedups and no jobs, for timing the fairness models (§6.4)."""

    tenants: int = rule("a whole number of tenants, 1 or more", ge=1)
    types: int = rule("1 to 1000 GPU types", ge=1, le=1000)
    devices: int = rule("1 to 10000 devices of each type", ge=1, le=10_000)
    step: float = rule("each type is at most this share faster than the one before, positive", gt=0, le=100)

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        check_size("tenants · types", self.tenants * self.types)
        return self


def build_scale(spec: ScaleSpec, streams: Streams) -> dict[str, Any]:
    """Draw the tenants; speedups grow from type to type by a random share up to `step`."""
    growth = 1 + spec.step * streams.uniform("speedups", spec.tenants * spec.types).reshape(-1, spec.types)
    growth[:, 0] = 1.0
    return _without_jobs([draws.rounded(row) for row in np.cumprod(growth, axis=1)], spec.devices)


def _without_jobs(speedups: Sequence[Sequence[float]], devices: int) -> dict[str, Any]:
    """Return tenants with these speedups ``(n, k)``, and a cluster with `devices` devices of each type."""
    names = [f"GPU{j + 1}" for j in range(len(speedups[0]))]
    rates = [dict(zip(names, row, strict=True)) for row in speedups]
    servers = tuple(ServerGroup(name=f"{n} servers", count=1, gpu_type=n, gpus=devices) for n in names)
    return {
        "cluster": Cluster(gpu_types=tuple(GpuType(name=n) for n in names), servers=servers),
        "tenants": tuple(
            Tenant(id=f"u{i + 1}", job_types=(JobType(name="job", rates=own),)) for i, own in enumerate(rates)
        ),
    }


class ClassesSpec(GeneratorSpec):
    """Tenants of two classes and no jobs, to study how large speedups must be for a gain in efficiency.

    `fast` of the tenants are `ratio` times as fast on the last type as on the others; the rest are equally fast on all.
    """

    tenants: int = rule("a whole number of tenants, 1 or more", ge=1, le=10_000)
    fast: int = rule("tenants that are faster on the last type, 0 or more", ge=0)
    ratio: float = rule("speedup of the fast tenants on the last type, 1 to 1000", ge=1, le=1000)
    types: int = rule("2 to 1000 GPU types", ge=2, le=1000)
    devices: int = rule("1 to 10000 devices of each type", ge=1, le=10_000)


def build_classes(spec: ClassesSpec, streams: Streams) -> dict[str, Any]:
    """Return the tenants; nothing is random."""
    speedups = np.ones((spec.tenants, spec.types))
    speedups[: spec.fast, -1] = spec.ratio
    return _without_jobs(speedups.tolist(), spec.devices)


FAMILIES.register(Family("tenants", TenantsSpec, build))
FAMILIES.register(Family("classes", ClassesSpec, build_classes))
FAMILIES.register(Family("speedups", ScaleSpec, build_scale))

"""OEF's setups: tenants with one job type each on three GPU generations, and a large setup for scaling.

Source: Mo, Xu, Lau (Middleware 2024), §6.1 and §6.3: 24 GPUs (8 each of RTX 3070, 3080 and 3090, four per
host), 20 tenants, or 50 tenants with 20 jobs each on average over three days; §6.4: ten GPU types.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from schedgap.instances.generate import draws, workload
from schedgap.instances.generate.core import FAMILIES, Family, GeneratorSpec, Streams
from schedgap.instances.generate.workload import WorkloadSpec
from schedgap.instances.model_catalogue import significant
from schedgap.instances.schema import Cluster, GpuType, Horizon, Job, JobType, ServerGroup, Tenant, check_size, rule

LEAST_STEP = 1.01
"""Least speedup from a GPU type to the next faster one, whatever the hyper-parameters."""


class TenantsSpec(WorkloadSpec):
    """Tenants with one job type each; hyper-parameters move speedups by up to `variation` (0.1 = ±10 %).

    The first tenant may report false speedups (`lie`).
    """

    arrivals: Literal["poisson", "start"] = "poisson"
    variation: float = rule("a variation is 0 or more and below 1", ge=0, lt=1)
    lie: float = rule(
        "factor by which the first tenant exaggerates each step to a faster type, 1 to 100", ge=1, le=100, default=1.0
    )


def build(spec: TenantsSpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    # Tenants take models from the pool in turn, with rates for their own hyper-parameters.
    types = len(spec.types)
    scale = np.power(2.0, 2 * streams.uniform("hyper-parameters: rate", spec.tenants) - 1)
    steps = 1 + spec.variation * (2 * streams.uniform("hyper-parameters: speedups", spec.tenants * types) - 1)
    pool = itertools.cycle(workload.catalogue_models(spec))
    varied = zip(pool, scale, steps.reshape(spec.tenants, types), strict=False)
    rates = [(model, vary(workload.model_rates(spec, model), *own)) for model, *own in varied]
    kinds = [(model, JobType(name=model.name, rates=own)) for model, own in rates]
    submit = workload.arrivals(spec, (spec.arrivals == "poisson") * spec.jobs_per_day / workload.DAY_S, streams)
    owner = (streams.uniform("job tenants", spec.jobs) * spec.tenants).astype(int)
    owner[: spec.tenants] = np.arange(min(spec.tenants, spec.jobs))
    names = [f"tenant-{i + 1:02d}" for i in range(spec.tenants)]
    arrive_s = submit[: spec.tenants] + [0.0] * (spec.tenants - spec.jobs)
    tenants = tuple(
        Tenant(id=name, job_types=(kind,), arrive_s=at)
        for name, (_, kind), at in zip(names, kinds, arrive_s, strict=True)
    )
    if spec.lie != 1:
        reported = {name: significant(rate * spec.lie**i) for i, (name, rate) in enumerate(kinds[0][1].rates.items())}
        liar = kinds[0][1].model_copy(update={"reported_rates": reported})
        tenants = (tenants[0].model_copy(update={"job_types": (liar,)}), *tenants[1:])
    gangs, durations = workload.gang_sizes(spec, streams), workload.durations(spec, streams)
    u = streams.uniform("epochs", spec.jobs)
    jobs = []
    for i, of in enumerate(owner.tolist()):
        model, kind = kinds[of]
        work = durations[i] * gangs[i] * workload.mean_rate(kind.rates)
        epochs = max(1, min(draws.whole(u[i], *spec.epochs), int(work)))
        jobs.append(
            Job(
                id=f"job-{i + 1:04d}",
                tenant=names[of],
                model=model.name,
                submit_s=submit[i],
                gpus=gangs[i],
                epochs=epochs,
                minibatches_per_chunk=max(1, round(work / epochs)),
                rates=kind.rates,
                sensitivity=model.sensitivity,
            )
        )
    return {
        "cluster": workload.cluster(spec),
        "tenants": tenants,
        "jobs": tuple(jobs),
        "horizon": Horizon(slot_s=spec.slot_s, slots=spec.slots),
        "derived": (
            *workload.derivations(spec),
            f"hyper-parameters per tenant: speedup from one GPU type to the next within {spec.variation:.0%} "
            f"of the model's (and at least {LEAST_STEP}), rates between half and twice the model's",
        ),
    }


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

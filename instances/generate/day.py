"""The family of ``gen/200jobs``: one day of jobs that the methods of all papers can run.

Every job has rates per GPU type (Hadar, OEF), a sensitivity matrix (Synergy), a profile for parameter servers and
ring-all-reduce (Zhou), a weight and a deadline (admission). Models come from the catalogue, one or two per tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schedgap.instances.generate import draws, workload
from schedgap.instances.generate.core import FAMILIES, Family, Streams
from schedgap.instances.generate.workload import Range, WholeRange, WorkloadSpec
from schedgap.instances.model_catalogue import CatalogueModel, significant
from schedgap.instances.schema import DistributedProfile, Horizon, Job, JobType, PSType, Tenant, WorkerType, rule

MIN_BATCHES = 10
"""Least mini-batches per chunk; a smaller job gets fewer chunks, so that rounding changes its work by 5 % at most."""


class DaySpec(WorkloadSpec):
    """A day of jobs for all papers. The defaults of ranges are those of Zhou's paper (§7)."""

    double_weight_share: float = rule("a share of tenants (weight 2), 0 to 1", ge=0, le=1, default=0.2)
    chunks: WholeRange = rule("two whole numbers, the smaller first", default=(5, 50))
    weights: WholeRange = rule("two whole numbers, the smaller first", default=(200, 5000))
    deadline_factor: Range = rule("multiples of the shortest duration, the smaller first", default=(2.0, 6.0))
    deadline_slack_s: float = rule("seconds added to every deadline, 0 or more", ge=0, default=1800.0)
    gradient_mb: Range = rule("megabytes, the smaller first", default=(30.0, 575.0))
    update_ms: Range = rule("milliseconds, the smaller first", default=(10.0, 100.0))
    worker_types: tuple[WorkerType, ...] = ()
    ps_types: tuple[PSType, ...] = ()


Group = tuple[Tenant, list[CatalogueModel]]
"""A tenant and its models."""


def build(spec: DaySpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    (low, high), pool = spec.gradient_mb, workload.catalogue_models(spec)
    # First models cycle through the pool in random order, so that all are soon in use.
    order = np.argsort(streams.uniform("tenant models: order", len(pool)), kind="stable")
    doubled = streams.uniform("tenant weights", spec.tenants) < spec.double_weight_share
    second = streams.uniform("tenant models: second", spec.tenants)
    groups = []
    for i in range(spec.tenants):
        models = [pool[order[i % len(pool)]]]
        if len(pool) > 1 and second[i] < 0.5:
            models.append(pool[order[(i + 1 + int(2 * second[i] * (len(pool) - 1))) % len(pool)]])
        kinds = tuple(JobType(name=m.name, rates=workload.model_rates(spec, m, streams)) for m in models)
        tenant = Tenant(id=f"tenant-{i + 1:02d}", weight=2.0 if doubled[i] else 1.0, job_types=kinds)
        groups.append((tenant, models))
    return {
        "cluster": workload.cluster(spec),
        "tenants": tuple(tenant for tenant, _ in groups),
        "jobs": tuple(_jobs(spec, streams, groups)),
        "worker_types": spec.worker_types,
        "ps_types": spec.ps_types,
        "horizon": Horizon(slot_s=spec.slot_s, slots=spec.slots),
        "derived": (
            *workload.derivations(spec),
            f"gradient sizes kept within {low:g} to {high:g} MB (the range of Zhou et al., section 7)",
            "mini-batch times of worker types = 1 / (GPUs of the worker x rate of the model on that GPU type)",
        ),
    }


def _jobs(spec: DaySpec, streams: Streams, groups: Sequence[Group]) -> Iterator[Job]:
    """Draw the jobs, with one number per job from each stream."""
    submit = workload.arrivals(spec, spec.per_day / workload.DAY_S, streams)
    gangs = workload.gang_sizes(spec, streams)
    durations = workload.durations(spec, gangs, streams)
    quantities = ("job tenants", "job models", "epochs", "chunks", "weights", "deadlines", "updates")
    drawn = zip(*(streams.uniform(name, spec.jobs).tolist() for name in quantities), strict=True)
    rates_of = {kind.name: dict(kind.rates) for tenant, _ in groups for kind in tenant.job_types}
    workers = [w for w in spec.worker_types if w.gpus > 0 and w.gpu_type in spec.type_names]
    minibatch_ms = {
        name: {w.name: significant(1000 / (w.gpus * rates[str(w.gpu_type)])) for w in workers}
        for name, rates in rates_of.items()
    }
    # A PS type with more CPUs updates faster, within the spec's range.
    smallest = min((p.cpus for p in spec.ps_types), default=1.0) or 1.0
    speedup = {p.name: ((p.cpus or 1.0) / smallest) ** 0.5 for p in spec.ps_types}
    for i, (u_tenant, u_model, u_epochs, u_chunks, u_weight, u_deadline, u_update) in enumerate(drawn):
        tenant, models = groups[int(u_tenant * len(groups))]
        model = models[int(u_model * len(models))]
        rates = rates_of[model.name]
        work = durations[i] * gangs[i] * workload.mean_rate(rates)
        epochs, chunks, batches = split(work, spec, u_epochs, u_chunks)
        shortest = epochs * chunks * batches / (gangs[i] * max(rates.values()))
        slack = draws.between(u_deadline, *spec.deadline_factor) * shortest + spec.deadline_slack_s
        slack /= spec.tightness
        update_ms = draws.between(u_update, *spec.update_ms) - spec.update_ms[0]
        low, high = spec.gradient_mb
        yield Job(
            id=f"job-{i + 1:04d}",
            tenant=tenant.id,
            model=model.name,
            submit_s=submit[i],
            gpus=gangs[i],
            epochs=epochs,
            chunks=chunks,
            minibatches_per_chunk=batches,
            weight=float(draws.whole(u_weight, *spec.weights)),
            deadline_s=significant(submit[i] + slack),
            rates=rates,
            sensitivity=model.sensitivity,
            distributed=DistributedProfile(
                gradient_mb=min(max(model.gradient_mb, low), high),
                minibatch_ms=minibatch_ms[model.name],
                update_ms={p: significant(spec.update_ms[0] + update_ms / faster) for p, faster in speedup.items()},
            ),
        )


def split(work: float, spec: DaySpec, u_epochs: float, u_chunks: float) -> tuple[int, int, int]:
    """Split work into epochs, chunks and mini-batches per chunk, the first two within the spec's ranges.

    A job too small for the ranges gets fewer chunks, then fewer epochs, so that rounding hardly changes its work.
    """
    least = spec.chunks[0]
    epochs = max(1, min(draws.whole(u_epochs, *spec.epochs), int(work / least)))
    most = max(least, min(spec.chunks[1], int(work / (epochs * MIN_BATCHES))))
    chunks = draws.whole(u_chunks, least, most)
    return epochs, chunks, max(1, round(work / (epochs * chunks)))


FAMILIES.register(Family("day", DaySpec, build))

"""The family of ``gen/200jobs``: one day of jobs that the methods of all papers can run.

Every job has rates per GPU type (Hadar, OEF), a sensitivity matrix (Synergy), a profile for parameter
servers and ring-all-reduce (Zhou), a weight and a deadline (admission). Models come from the catalogue, one
or two per tenant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.generate import draws, workload
from schedgap.instances.generate.core import FAMILIES, Family, Streams
from schedgap.instances.generate.workload import Range, WholeRange, WorkloadSpec
from schedgap.instances.model_catalogue import CatalogueModel, significant
from schedgap.instances.schema import DistributedProfile, Horizon, Job, JobType, PSType, Tenant, WorkerType, rule

MIN_BATCHES = 10
"""Mini-batches per chunk below which a job gets fewer chunks: rounding changes its work by 5 % at most."""


class DaySpec(WorkloadSpec):
    """A day of jobs for all papers. Ranges that Zhou's paper gives (§7) are the defaults."""

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
"""A tenant with its models."""


def build(spec: DaySpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    groups, (low, high) = _groups(spec, streams), spec.gradient_mb
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


def _groups(spec: DaySpec, streams: Streams) -> list[Group]:
    """Draw the tenants; first models go round the pool in random order, so that all are soon in use."""
    pool = workload.catalogue_models(spec)
    order = np.argsort(streams.uniform("tenant models: order", len(pool)), kind="stable")
    doubled = streams.uniform("tenant weights", spec.tenants) < spec.double_weight_share
    second = streams.uniform("tenant models: second", spec.tenants)
    groups = []
    for i in range(spec.tenants):
        models = [pool[order[i % len(pool)]]]
        if len(pool) > 1 and second[i] < 0.5:
            models.append(pool[order[(i + 1 + int(2 * second[i] * (len(pool) - 1))) % len(pool)]])
        kinds = tuple(JobType(name=m.name, rates=workload.model_rates(spec, m)) for m in models)
        tenant = Tenant(id=f"tenant-{i + 1:02d}", weight=2.0 if doubled[i] else 1.0, job_types=kinds)
        groups.append((tenant, models))
    return groups


def _jobs(spec: DaySpec, streams: Streams, groups: Sequence[Group]) -> list[Job]:
    """Draw the jobs; each uniform stream gives one number per job."""
    n = spec.jobs
    submit, durations = workload.arrivals(spec, streams), workload.durations(spec, streams)
    gangs = workload.gang_sizes(spec, streams)
    owner = (streams.uniform("job tenants", n) * len(groups)).astype(int)
    pick = streams.uniform("job models", n)
    drawn = np.stack([streams.uniform(name, n) for name in ("epochs", "chunks", "weights", "deadlines", "updates")])
    profiles: dict[str, _ModelProfile] = {}
    jobs = []
    for i in range(n):
        tenant, models = groups[owner[i]]
        model = models[int(pick[i] * len(models))]
        profile = profiles.setdefault(model.name, _ModelProfile.of(spec, model))
        u = _Uniform(*drawn[:, i].tolist())
        work = durations[i] * gangs[i] * profile.mean_rate
        name = f"job-{i + 1:04d}"
        jobs.append(profile.job(spec, u, name, tenant.id, submit_s=submit[i], gpus=gangs[i], work=work))
    return jobs


class _Uniform(NamedTuple):
    """One job's uniform numbers."""

    epochs: float
    chunks: float
    weight: float
    deadline: float
    update: float


@dataclass(frozen=True)
class _ModelProfile:
    """What all jobs of a model have in common."""

    model: CatalogueModel
    rates: dict[str, float]
    mean_rate: float
    gradient_mb: float
    minibatch_ms: dict[str, float]

    @classmethod
    def of(cls, spec: DaySpec, model: CatalogueModel) -> _ModelProfile:
        rates = workload.model_rates(spec, model)
        low, high = spec.gradient_mb
        times = {
            w.name: significant(1000 / (w.gpus * rates[w.gpu_type]))
            for w in spec.worker_types
            if w.gpu_type in rates and w.gpus > 0
        }
        return cls(model, rates, workload.mean_rate(rates), min(max(model.gradient_mb, low), high), times)

    def job(
        self, spec: DaySpec, u: _Uniform, name: str, tenant: str, *, submit_s: float, gpus: int, work: float
    ) -> Job:
        """Return a job of this model with `work` iterations, rounded to whole mini-batches per chunk."""
        epochs, chunks, batches = split(work, spec, u.epochs, u.chunks)
        shortest = epochs * chunks * batches / (gpus * max(self.rates.values()))
        slack = draws.between(u.deadline, *spec.deadline_factor) * shortest + spec.deadline_slack_s
        return Job(
            id=name,
            tenant=tenant,
            model=self.model.name,
            submit_s=submit_s,
            gpus=gpus,
            epochs=epochs,
            chunks=chunks,
            minibatches_per_chunk=batches,
            weight=float(draws.whole(u.weight, *spec.weights)),
            deadline_s=significant(submit_s + slack),
            rates=self.rates,
            sensitivity=self.model.sensitivity,
            distributed=self.distributed(spec, u.update),
        )

    def distributed(self, spec: DaySpec, u: float) -> DistributedProfile:
        """Return the job's profile; a PS type with more CPUs updates faster, within the spec's range."""
        low, high = spec.update_ms
        smallest = min((p.cpus for p in spec.ps_types), default=1.0)
        drawn = draws.between(u, low, high)
        speedup = {p.name: ((p.cpus or 1.0) / (smallest or 1.0)) ** 0.5 for p in spec.ps_types}
        updates = {name: significant(low + (drawn - low) / faster) for name, faster in speedup.items()}
        return DistributedProfile(gradient_mb=self.gradient_mb, minibatch_ms=self.minibatch_ms, update_ms=updates)


def split(work: float, spec: DaySpec, u_epochs: float, u_chunks: float) -> tuple[int, int, int]:
    """Split work into epochs, chunks and mini-batches per chunk, the first two within the spec's ranges.

    A job too small for the ranges gets fewer chunks, then fewer epochs, so that rounding hardly changes its
    work.
    """
    least = spec.chunks[0]
    epochs = max(1, min(draws.whole(u_epochs, *spec.epochs), int(work / least)))
    most = max(least, min(spec.chunks[1], int(work / (epochs * MIN_BATCHES))))
    chunks = draws.whole(u_chunks, least, most)
    return epochs, chunks, max(1, round(work / (epochs * chunks)))


FAMILIES.register(Family("day", DaySpec, build))

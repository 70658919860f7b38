"""Rules that fill in what a trace does not record. All formats share them, and each filling is noted in a sentence.

- **Selection**: jobs of the hours and gang sizes that the user asks for, if any.
- **Order and time**: jobs are sorted by arrival, cut to `max_jobs`, and shifted so that the first arrives at 0 s.
- **Cluster**: the user's; otherwise 36 GPUs each of V100, P100 and K80 on servers of four (Gavel's simulated cluster),
  with more of each type if needed, so that the largest gang fits on every single type. Servers have 3 CPUs and 62.5 GB
  per GPU (Synergy's servers) unless the user says otherwise.
- **Model**: the catalogue model that the trace names; otherwise one chosen by a SHA-256 hash of the job's id, so that
  the same job gets the same model on every machine and in every part of the trace. With a `split`, a hash of the id
  chooses among Synergy's image, language and speech models instead (Synergy, section 5.1), and, as there, the job takes
  its duration with its share of CPUs and memory.
- **Rates**, iterations/s of ONE GPU: the trace's own if it has them. If it has both iterations and a duration, their
  quotient on the GPU type they were recorded on, and in the catalogue model's proportions on the other types. Otherwise
  the catalogue model's. A GPU type without a rate gets one by the ratio of TFLOPS
  (:func:`schedgap.instances.model_catalogue.rates_on`); a type of undisclosed TFLOPS counts as fast as a V100.
- **Work**: recorded iterations; otherwise ``duration × GPUs × rate`` on the GPU type the duration was recorded on, at
  least one.
- **Tenants**: virtual clusters, users, or job types, whichever the trace has; otherwise the family of the job's model.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.clusters import chip, cluster_for, instance_of
from schedgap.instances.importers.registry import REFERENCE, ImportedTrace, Options, TraceJob
from schedgap.instances.importers.rows import left_out_notes
from schedgap.instances.model_catalogue import MODELS, CatalogueModel, find, gpu_type, rates_on
from schedgap.instances.schema import Instance, Job, limits
from schedgap.instances.text import counted, some

Naming = Literal["named", "unnamed", "unknown", "split"]
TASKS = ("image", "language", "speech")
"""Tasks among which a split divides the jobs."""

Rating = Literal["recorded", "measured", "catalogue"]


@dataclass(frozen=True, slots=True)
class Filled:
    """A job, its catalogue model (the stand-in), and the source of its rates.

    `naming` is ``named`` if the trace names the stand-in, ``unnamed`` if it names no model, ``unknown`` if it names one
    that the catalogue lacks, and ``split`` if a split chose the stand-in. `rates` are known iterations/s of one GPU of
    a type (:func:`rates_for` derives the others).
    """

    job: TraceJob
    stand_in: CatalogueModel
    naming: Naming
    rates: Mapping[str, float]
    rating: Rating


def to_instance(trace: ImportedTrace, options: Options) -> Instance:
    """Return the instance of a trace, with a note on every filling; raise if no job is left or one does not fit."""
    trace.rows.check()
    total = counted(len(trace.jobs) + sum(trace.left_out.values()), "job")
    derived = [*trace.rows.notes("line" if trace.left_out else "job"), *left_out_notes(trace.left_out, total)]
    if not trace.jobs:
        raise InstanceError(f"{trace.rows.path}: no job to schedule: {'; '.join(derived) or 'the trace is empty'}")
    limit = limits.MAX_ITEMS
    if len(trace.jobs) > limit and (options.max_jobs or len(trace.jobs)) > limit:
        raise InstanceError(
            f"{trace.rows.path}: {len(trace.jobs)} jobs: an instance holds at most {limit}; set max_jobs"
        )
    derived += trace.notes
    jobs = list(trace.jobs)
    if options.hours:
        first = min(job.submit_s for job in jobs)
        low, high = options.hours
        jobs = [job for job in jobs if 3600 * low <= job.submit_s - first < 3600 * high]
        derived.append(f"only {counted(len(jobs), 'job')} that arrive from hour {low:g} to {high:g} of the trace")
    if options.gangs:
        jobs = [job for job in jobs if job.gpus in options.gangs]
        derived.append(f"only {counted(len(jobs), 'job')} of {', '.join(map(str, options.gangs))} GPUs")
    if not jobs:
        raise InstanceError(
            f"{trace.rows.path}: none of {counted(len(trace.jobs), 'job')} has one of these hours and gang sizes"
        )
    jobs = in_order(jobs, options.max_jobs, derived)
    if options.split:
        trace, jobs = replace(trace, gang_iterations=False), [by_split(job, options.split, trace) for job in jobs]
        shares = ", ".join(f"{share:g}" for share in options.split)
        derived.append(f"Synergy's models in place of the trace's: shares of image, language, speech are {shares}")
    start = jobs[0].submit_s
    cluster = cluster_for(trace, jobs, options, derived)
    filled = [with_rates(job, trace) for job in jobs]
    filled = [replace(f, naming="split") for f in filled] if options.split else filled
    types = [g.name for g in cluster.gpu_types]
    derived += filling_notes(filled, types, trace)
    tenants = [tenant_of(f) for f in filled]
    records = (to_job(f, tenant, types, trace, start) for f, tenant in zip(filled, tenants, strict=True))
    return instance_of(
        trace.format,
        trace.rows.path,
        trace.rows.path.stem,
        options,
        derived,
        tenants,
        records,
        cluster=cluster,
        began_s=start if trace.dated else None,
    )


def by_split(job: TraceJob, split: Sequence[float], trace: ImportedTrace) -> TraceJob:
    """Return the job with one of Synergy's models: a hash of the id draws a task by the shares, then a model of it."""
    if job.duration_s is None:
        raise InstanceError(f"{trace.rows.path}: job {job.id} has no duration, which the option split needs")
    digest = hashlib.sha256(f"split {job.id}".encode()).digest()
    u, v = (int.from_bytes(part) / 2**64 for part in (digest[:8], digest[8:16]))
    edges = list(itertools.accumulate(split))
    names = _models(TASKS[next(i for i, edge in enumerate(edges) if u * edges[-1] < edge)])
    return replace(job, model=names[int(v * len(names))], iterations=None, rates={}, gpus_used=None)


@cache
def _models(task: str | None = None) -> list[str]:
    """Return the names of Synergy's models of a task, or of all models that have a rate on the reference type."""
    if task is None:
        return sorted(name for name, model in MODELS.items() if model.rates.get(REFERENCE, 0) > 0)
    return [name for name, model in MODELS.items() if (model.suite, model.task) == ("synergy", task)]


def in_order(jobs: Sequence[TraceJob], max_jobs: int | None, derived: list[str]) -> list[TraceJob]:
    """Return the first `max_jobs` jobs by arrival; ties keep the order of the file."""
    ordered = sorted(jobs, key=lambda job: job.submit_s)
    if max_jobs is not None and max_jobs < len(ordered):
        derived.append(f"only the first {max_jobs} of {counted(len(ordered), 'job')} by arrival")
        ordered = ordered[:max_jobs]
    if ordered[0].submit_s != 0:
        shift = f"{ordered[0].submit_s:.15g} s"
        derived.append(f"arrivals shifted by {shift}, so that the first job arrives at 0 s")
    return ordered


# Models, rates and work


def with_rates(job: TraceJob, trace: ImportedTrace) -> Filled:
    """Return the job with its stand-in and its rates, by the rules in this module's docstring."""
    named = find(job.model, suite=trace.suite or trace.format) if job.model is not None else None
    number = int.from_bytes(hashlib.sha256(job.id.encode()).digest()[:8])
    stand_in = named or MODELS[_models()[number % len(_models())]]
    naming: Naming = "named" if named else "unnamed" if job.model is None else "unknown"
    if job.rates:
        return Filled(job, stand_in, naming, job.rates, "recorded")
    if job.iterations is not None and job.duration_s:
        one_gpu = job.iterations / job.duration_s / job.gpus
        factor = one_gpu / rates_for(stand_in, stand_in.rates, (job.gpu_type or trace.reference,))[0]
        return Filled(job, stand_in, naming, {r: rate * factor for r, rate in stand_in.rates.items()}, "measured")
    share = job.gpus if trace.gang_iterations else 1
    return Filled(job, stand_in, naming, {r: rate / share for r, rate in stand_in.rates.items()}, "catalogue")


def rates_for(stand_in: CatalogueModel, rates: Mapping[str, float], types: Sequence[str]) -> list[float]:
    """Return the rate on each of `types`: the one in `rates`, or else one by the catalogue's rule."""
    chips = [chip(name) for name in types]
    if not all(name in rates for name in chips):
        rates, _ = rates_on(replace(stand_in, rates=rates), chips)
    return [rates[name] for name in chips]


def to_job(f: Filled, tenant: str, types: Sequence[str], trace: ImportedTrace, start: float) -> Job:
    """Return the job of the instance: all work in one epoch of one chunk, arrival counted from `start`."""
    job, iterations = f.job, f.job.iterations
    if iterations is None:
        gpus = job.gpus if job.gpus_used is None else job.gpus_used
        (rate,) = rates_for(f.stand_in, f.rates, (job.gpu_type or trace.reference,))
        iterations = round((job.duration_s or 0.0) * gpus * rate)
    work = max(1, iterations)
    usable = {name for name in types if name in job.allowed} or set(types)
    rates = zip(types, rates_for(f.stand_in, f.rates, types), strict=True)
    # Traces resolve arrivals to microseconds at best; below that, the subtraction leaves rounding noise.
    submit, deadline = round(job.submit_s - start, 6), None
    if job.slo is not None:
        # For a job that cannot run on the reference type, its fastest type counts.
        rate = rates_for(f.stand_in, f.rates, (trace.reference,))[0] or max(f.rates.values())
        deadline = submit + job.slo * work / (job.gpus * rate)
    return Job(
        id=job.id,
        tenant=tenant,
        model=job.model or f.stand_in.name,
        submit_s=submit,
        gpus=job.gpus,
        epochs=1,
        minibatches_per_chunk=work,
        weight=job.weight,
        deadline_s=deadline,
        rates={name: rate if name in usable else 0.0 for name, rate in rates},
        sensitivity=f.stand_in.sensitivity,
        duration_s=job.duration_s,
        status=job.status,
    )


def tenant_of(f: Filled) -> str:
    """Return the tenant of a job."""
    if f.job.tenant is not None:
        return f.job.tenant or "unknown"
    return f.job.model if f.naming == "unknown" and f.job.model else f.stand_in.family


# Notes on fillings


def filling_notes(filled: Sequence[Filled], types: Sequence[str], trace: ImportedTrace) -> Iterator[str]:
    """Yield a note on each source of rates, work, deadlines, sensitivity and tenants."""
    unknown = some(sorted({f.job.model for f in filled if f.naming == "unknown" and f.job.model}), 8)
    source = {
        "named": "the catalogue models that the trace names",
        "split": "Synergy's models",
        "unnamed": "catalogue models chosen by a hash of the job id: the trace names none",
        "unknown": f"catalogue models chosen by a hash of the job id: the catalogue has no {unknown}",
    }
    shared = ", divided by the gang: an iteration is a step of the whole gang" if trace.gang_iterations else ""
    how = {
        "catalogue": f"from {{}}{shared}",
        "measured": f"on {trace.reference} from their iterations and durations, "
        "on other GPU types in the proportions of {}",
    }
    for (rating, naming), n in Counter((f.rating, f.naming) for f in filled).items():
        if rating != "recorded":
            yield f"rates of {counted(n, 'job')} {how[rating].format(source[naming])}"
    undisclosed = [name for name in types if gpu_type(chip(name)).tflops is None]
    for name, n in Counter(name for f in filled for name in types if chip(name) not in f.rates).items():
        if name not in undisclosed:
            yield f"rates of {counted(n, 'job')} on {name} by the ratio of its TFLOPS to a measured type's"
    if undisclosed:
        yield f"{some(undisclosed, 8)} as fast as a {REFERENCE}: their TFLOPS are not disclosed"
    for name, n in Counter(f.job.gpu_type or trace.reference for f in filled if f.job.iterations is None).items():
        yield f"work of {counted(n, 'job')} = duration × GPUs × rate on {name}, in iterations"
    if free := sum(bool(f.job.allowed) and not set(types) & set(f.job.allowed) for f in filled):
        yield f"{counted(free, 'job')} may use every GPU type: the cluster has none of those they ask for"
    if deadlines := sum(f.job.slo is not None for f in filled):
        yield f"deadlines of {counted(deadlines, 'job')} = arrival + SLO × time alone on {trace.reference}"
    if sensitive := sum(f.stand_in.sensitivity is not None for f in filled):
        yield f"CPU and memory sensitivity of {counted(sensitive, 'job')} from their catalogue models"
    if trace.tenants is None:
        yield "tenants are the families of the jobs' models: the trace names no users"
        return
    yield f"tenants are the trace's {trace.tenants}"
    if empty := sum(f.job.tenant == "" for f in filled):
        yield f"tenant 'unknown' for {counted(empty, 'job')}: the trace names none for them"

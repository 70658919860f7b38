"""Hadar's and HadarE's setups: 480 jobs like the Philly trace's on 60 GPUs, and mixes of 1 to 12 jobs on five nodes.

Source: Sultana et al., sections IV (simulation, Table II) and VI (AWS and testbed clusters, Table III). The paper
prints no epochs or steps, so that work is given as time on one GPU: iterations = seconds x rate there, the rule by
which Gavel converts durations to steps. Of which type that GPU is, the paper does not print; here it is
:data:`REFERENCE`, as in Gavel, and for the trace whatever `hours_on` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from schedgap.instances.generate import draws, laws, workload
from schedgap.instances.generate.core import FAMILIES, Family, GeneratorSpec, Streams
from schedgap.instances.generate.workload import GangSpec, Range, slots_until
from schedgap.instances.model_catalogue import MODELS, CatalogueModel, find, gpu_type, rates_on
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Cluster, Horizon, Job, Name, Record, ServerGroup, check_size, rule, violation

REFERENCE = "V100"
"""GPU type to which GPU-hours and minutes of work refer, as in Gavel."""

SLACK = 2.0
"""Horizon as a multiple of the jobs' GPU time on average GPUs; the longest job on its slowest GPUs is added."""

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0)]


def horizon(cluster: Cluster, jobs: Sequence[Job], slot_s: float) -> Horizon:
    """Return a horizon within which every method can finish, even if it ignores GPU types and never moves a job.

    Each job is given one more slot than it needs, because its last slot may be nearly empty. The horizon begins at the
    last arrival.
    """
    totals = np.array(list(cluster.gpus_by_type.values()), float)
    gpu_seconds, longest = 0.0, 0.0
    for job in jobs:
        rates = np.array([job.rates[name] for name in cluster.gpus_by_type])
        average_s = job.iterations / (job.gpus * float(rates @ totals / totals.sum()))
        gpu_seconds += job.gpus * (average_s + slot_s)
        longest = max(longest, job.iterations / (job.gpus * float(rates.min())))
    end_s = max((job.submit_s for job in jobs), default=0.0) + SLACK * gpu_seconds / float(totals.sum()) + longest
    return Horizon(slot_s=slot_s, slots=slots_until(end_s, slot_s))


def _job(
    name: str, model: CatalogueModel, rates: Mapping[str, float], gpus: int, seconds: float, on: str = REFERENCE
) -> Job:
    """Return a job that arrives at 0 s, with the iterations that one GPU of type `on` does in `seconds`."""
    rate = rates[on] if on in rates else rates_on(model, [on])[0][on]
    work = max(1, round(seconds * rate))
    return Job(id=name, model=model.name, gpus=gpus, epochs=1, minibatches_per_chunk=work, rates=rates)


def _notes(models: Sequence[CatalogueModel], types: Sequence[str], on: str = REFERENCE) -> list[str]:
    """Return the catalogue's notes on these models on these GPU types, and the notes on all jobs of this family."""
    lines = [note for model in models for note in rates_on(model, types)[1]]
    own = [f"{model.name}: {note}" for model in models for note in model.derived if note.startswith("rates on ")]
    work = f"iterations = time on one {on} x rate there, as in Gavel; the paper prints no epochs, so a job is one"
    ends = f"horizon = {SLACK:g} x GPU time of all jobs on average GPUs + longest job on its slowest GPU type"
    return [*own, *lines, work, ends]


# 480 jobs -----------------------------------------------------------------------------------------


class TraceSpec(GangSpec):
    """Jobs like those of the Philly trace, all present at the start (section IV-A) unless `jobs_per_day` is positive.

    With ``sizes = "uniform"``, every model of Table II is equally likely. With ``"philly"``, a job's category is drawn
    first, by its frequency in the trace among jobs of up to 100 GPU-hours, and then one of its models. GPU-hours are
    those of one GPU of type `hours_on`, a type whose rates Gavel measured. Other laws of `durations` are about these
    GPU-hours, whose mean they keep; gangs go with the GPU-hours of their category.
    """

    jobs_per_day: float = rule("jobs per day, or 0 if all are there at the start", ge=0, le=1e9, default=0.0)
    sizes: Literal["uniform", "philly"] = "uniform"
    hours_on: Literal["V100", "P100", "K80"] = "V100"
    categories: tuple[Name, ...] = rule("one category of sizes per model", min_length=1)
    gpu_hours: Mapping[Name, Range] = rule("GPU-hours of each category, the smaller first")
    philly_shares: Mapping[Name, Share] = rule("share of each category in the trace, 0 or more")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if len(self.categories) != len(self.models):
            raise violation("categories", list(self.categories), f"one for each of the {len(self.models)} models")
        for field, table in (("gpu_hours", self.gpu_hours), ("philly_shares", self.philly_shares)):
            for name in self.categories:
                if name not in table:
                    raise violation(field, ", ".join(table), f"one entry for each category; {name} is missing")
        for name, (low, high) in self.gpu_hours.items():
            if low < 0:
                raise violation(f"gpu_hours.{name}", [low, high], "hours are 0 or more")
        if not any(self.philly_shares[name] > 0 for name in self.categories):
            raise violation("philly_shares", dict(self.philly_shares), "at least one category has a positive share")
        return self

    @property
    def probabilities(self) -> list[float]:
        """Probability of each model: equal, or its category's share divided by the number of its models."""
        if self.sizes == "uniform":
            return [1.0] * len(self.models)
        return [self.philly_shares[name] / self.categories.count(name) for name in self.categories]


def build_trace(spec: TraceSpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    cluster, pool = workload.cluster(spec), workload.catalogue_models(spec)
    kind = draws.choice(streams.uniform("models", spec.jobs), spec.probabilities)
    gangs, u = workload.gang_sizes(spec, streams), streams.uniform("sizes", spec.jobs)
    rates, on = [workload.model_rates(spec, model, streams) for model in pool], spec.hours_on
    ends = [spec.gpu_hours[name] for name in spec.categories]
    hours = [draws.between(x, *ends[k]) for x, k in zip(u.tolist(), kind.tolist(), strict=True)]
    if spec.durations != "paper":
        mean = float(np.average([sum(pair) / 2 for pair in ends], weights=spec.probabilities))
        hours = draws.rounded(laws.durations(spec, u, mean))
    alone = [3600 * own / gang for own, gang in zip(hours, gangs, strict=True)]
    lost = [b - a for a, b in zip(alone, laws.with_failures(spec, alone, gangs, streams), strict=True)]
    submit = workload.arrivals(spec, spec.jobs_per_day / workload.DAY_S, streams)
    jobs = []
    for i, k in enumerate(kind.tolist()):
        seconds = 3600 * hours[i] + lost[i] * gangs[i]
        job = _job(f"job-{i + 1:04d}", pool[k], rates[k], gangs[i], seconds, on)
        jobs.append(job.model_copy(update={"submit_s": submit[i]}))
    return {
        "cluster": cluster,
        "jobs": tuple(jobs),
        "horizon": horizon(cluster, jobs, spec.slot_s),
        "derived": (
            f"models drawn by sizes = {spec.sizes}",
            *_notes(pool, spec.type_names, on),
            *workload.law_notes(spec),
        ),
    }


# mixes on five nodes ------------------------------------------------------------------------------


class MixModel(Record):
    """A line of Table III: the catalogue's model and its size class."""

    model: Name
    size: Name


class MixSpec(GeneratorSpec):
    """A workload mix on nodes with one GPU each (section VI). Nothing is random; all seeds give the same jobs."""

    mix: Name = rule("the name of a mix, such as M-5")
    slot_s: float = rule("a slot has a positive length in seconds", gt=0)
    minutes: Mapping[Name, Positive] = rule(f"minutes on one {REFERENCE} by size class, positive")
    models: Mapping[Name, MixModel] = rule("model and size class by abbreviation")
    mixes: Mapping[Name, tuple[Name, ...]] = rule("abbreviations of the models of each mix")
    servers: tuple[ServerGroup, ...] = rule("at least one server", min_length=1)

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.mix not in self.mixes:
            raise violation("mix", self.mix, f"one of {', '.join(self.mixes)}")
        for short in self.chosen:
            if short not in self.models:
                raise violation(f"mixes.{self.mix}", short, f"one of {', '.join(self.models)}")
            entry = self.models[short]
            if find(entry.model) is None:
                raise violation(f"models.{short}.model", entry.model, unknown("model", entry.model, MODELS))
            if entry.size not in self.minutes:
                raise violation(f"models.{short}.size", entry.size, f"one of {', '.join(self.minutes)}")
        check_size("jobs", len(self.chosen))
        return self

    @property
    def chosen(self) -> tuple[str, ...]:
        """Abbreviations of the models of the mix."""
        return self.mixes[self.mix]


def build_mix(spec: MixSpec, streams: Streams) -> dict[str, Any]:
    """Return the parts of an instance."""
    servers = tuple(s.model_copy(update={"gpu_type": gpu_type(s.gpu_type).name}) for s in spec.servers)
    types = list(dict.fromkeys(s.gpu_type for s in servers))
    cluster = Cluster(gpu_types=tuple(gpu_type(name) for name in types), servers=servers)
    models = {short: model for short in dict.fromkeys(spec.chosen) if (model := find(spec.models[short].model))}
    jobs = []
    for i, short in enumerate(spec.chosen):
        name = f"{short}-{spec.chosen[: i + 1].count(short)}"
        seconds = 60 * spec.minutes[spec.models[short].size]
        jobs.append(_job(name, models[short], rates_on(models[short], types)[0], 1, seconds))
    minutes = ", ".join(f"{size} {value:g}" for size, value in spec.minutes.items())
    return {
        "cluster": cluster,
        "jobs": tuple(jobs),
        "horizon": horizon(cluster, jobs, spec.slot_s),
        "derived": (
            f"minutes of work on one {REFERENCE} by class of size: {minutes}",
            *_notes([*models.values()], types),
        ),
    }


FAMILIES.register(Family("hadar-trace", TraceSpec, build_trace))
FAMILIES.register(Family("hadar-mix", MixSpec, build_mix))

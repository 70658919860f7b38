"""Synergy's setups: image, language and speech models on equal servers, all present at the start or Poisson arrivals.

Source: Mohan et al., section 5.1 and Table 4. A duration refers to the proportional share of CPUs and memory *of this
cluster*: iterations = duration x rate with that share, from the table that all schedulers use
(:mod:`schedgap.instances.sensitivity`), so that a job takes its duration under proportional scheduling on any servers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from schedgap.instances.generate import draws, laws
from schedgap.instances.generate.core import FAMILIES, Family, Streams
from schedgap.instances.generate.workload import (
    JobsSpec,
    Range,
    ServerSpec,
    arrivals,
    gang_sizes,
    law_notes,
    slots_until,
)
from schedgap.instances.model_catalogue import MODELS, CatalogueModel, find, gpu_type, rates_on, significant
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Cluster, Horizon, Instance, Job, Name, ServerGroup, check_size, rule, violation
from schedgap.instances.sensitivity import profiles
from schedgap.instances.workload import servers, workload

TASKS = ("image", "language", "speech")

SLACK = 2.0
"""Factor on the jobs' GPU time per GPU; the horizon is the last arrival, plus that time, plus the longest job."""

MINUTE_S = 60.0

Percent = Annotated[float, Field(ge=0)]
Kind = tuple[int, int]
"""Index of a model, and GPUs of the gang."""


class SynergySpec(JobsSpec):
    """Jobs by task (the *split*), gang size and duration (section 5.1), on equal servers of one GPU type.

    Servers are by default the paper's, with 8 GPUs, 24 CPUs and 500 GB. A duration is ``10^x`` minutes with x uniform
    in `exponents`, or in `long_exponents` for the share `long` of jobs; other laws of `durations` keep the mean of
    these. Gangs go with durations among the long jobs, and among the others.
    """

    gpu_type: Name = "V100"
    servers: int = rule("a whole number of servers, 1 or more", ge=1)
    gpus_per_server: int = rule("a server has at least one GPU", ge=1, le=10_000, default=8)
    cpus_per_gpu: float = rule("CPUs per GPU are positive", gt=0, default=3.0)
    memory_gb_per_gpu: float = rule("memory per GPU is positive", gt=0, default=62.5)
    load: float = rule("jobs per hour, 0 to 1e6; with 0, all arrive at the start", ge=0, le=1e6)
    slot_s: float = rule("a slot has a positive length in seconds", gt=0, default=300.0)
    models: Mapping[Name, tuple[Name, ...]] = rule("models of the catalogue by task: image, language, speech")
    image: Percent = rule("a share of the split, 0 or more")
    language: Percent = rule("a share of the split, 0 or more")
    speech: Percent = rule("a share of the split, 0 or more")
    gpus: Literal["single", "multi"]
    exponents: Range = rule("powers of ten of the minutes of a job, the smaller first", default=(1.5, 3.0))
    long_exponents: Range = rule("powers of ten of the minutes of a long job, the smaller first", default=(3.0, 4.0))
    long: float = rule("a share of long jobs, 0 to 1", ge=0, le=1, default=0.2)
    sensitivity: Literal["matrix", "pipeline"] = "matrix"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if set(self.models) != set(TASKS) or not all(self.models.values()):
            raise violation("models", ", ".join(self.models), f"at least one model of each task: {', '.join(TASKS)}")
        if sum(self.split) <= 0:
            raise violation("image, language, speech", self.split, "at least one task has a positive share")
        for task, names in self.models.items():
            for name in names:
                if find(name) is None:
                    raise violation(f"models.{task}", name, unknown("model", name, MODELS))
        if max(self.sizes) > self.servers * self.gpus_per_server:
            raise violation("gangs", max(self.sizes), f"a gang fits on the {self.servers * self.gpus_per_server} GPUs")
        if max(abs(x) for x in (*self.exponents, *self.long_exponents)) > 9:
            raise violation("exponents", [*self.exponents, *self.long_exponents], "all from -9 to 9")
        check_size("jobs", self.jobs)
        check_size("servers", self.servers)
        idle = [kind for kind, rate in _rates_at_share(self).items() if rate <= 0]
        if idle:
            model, value = _pool(self)[idle[0][0]].name, f"{self.cpus_per_gpu:g}, {self.memory_gb_per_gpu:g}"
            right = f"every model must progress with its share; {model} does not"
            raise violation("cpus_per_gpu, memory_gb_per_gpu", value, right)
        return self

    @property
    def cluster(self) -> Cluster:
        """Cluster of equal servers."""
        chip = gpu_type(self.gpu_type)
        cpus, memory_gb = self.cpus_per_gpu, self.memory_gb_per_gpu
        server = ServerSpec(gpus=self.gpus_per_server, cpus_per_gpu=cpus, memory_gb_per_gpu=memory_gb)
        group = ServerGroup(name=f"{chip.name}-server", count=self.servers, gpu_type=chip.name, **server.capacities)
        return Cluster(gpu_types=(chip,), servers=(group,))

    @property
    def sizes(self) -> list[int]:
        """Sizes of gangs that occur, ascending."""
        return [1] if self.gpus == "single" else sorted(set(self.gangs))

    @property
    def split(self) -> list[float]:
        """Shares of the tasks."""
        return [self.image, self.language, self.speech]


def build(spec: SynergySpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    cluster, pool = spec.cluster, _pool(spec)
    # Draw a task by the split, then one of its models.
    starts = list(itertools.accumulate((len(spec.models[task]) for task in TASKS), initial=0))
    tasks = draws.choice(streams.uniform("tasks", spec.jobs), spec.split).tolist()
    models = streams.uniform("models", spec.jobs).tolist()
    kinds = [draws.whole(x, starts[t], starts[t + 1] - 1) for t, x in zip(tasks, models, strict=True)]
    gangs = [1] * spec.jobs if spec.gpus == "single" else gang_sizes(spec, streams)
    rates = _rates_at_share(spec)
    submit = arrivals(spec, spec.load / 3600, streams)
    long = streams.uniform("long", spec.jobs)[:, None] < spec.long
    low, high = np.where(long, [spec.long_exponents], [spec.exponents]).T
    u = streams.uniform("sizes", spec.jobs)
    drawn = np.power(10.0, low + (high - low) * u)
    minutes = draws.rounded(drawn if spec.durations == "paper" else laws.durations(spec, u, _mean_minutes(spec)))
    lasting = laws.with_failures(spec, [MINUTE_S * m for m in minutes], gangs, streams)
    minutes = [seconds / MINUTE_S for seconds in lasting] if spec.failures else minutes
    jobs = []
    for i, kind in enumerate(zip(kinds, gangs, strict=True)):
        work = max(1, round(MINUTE_S * minutes[i] * rates[kind]))
        jobs.append(_job(spec, f"job-{i + 1:05d}", pool, kind, submit[i], work))
    # The horizon must suffice for every method, including those that ignore CPUs and memory and use `rates` alone,
    # which may be below the rates at the share of servers with many CPUs per GPU. Each job is given one extra slot.
    longest, gpu_seconds = 0.0, 0.0
    for job, m in zip(jobs, minutes, strict=True):
        (rate,) = job.rates.values()
        seconds = max(MINUTE_S * m, job.iterations / (job.gpus * rate)) + spec.slot_s
        longest, gpu_seconds = max(longest, seconds), gpu_seconds + job.gpus * seconds
    end_s = jobs[-1].submit_s + SLACK * gpu_seconds / (spec.servers * spec.gpus_per_server) + longest
    return {
        "cluster": cluster,
        "jobs": tuple(jobs),
        "horizon": Horizon(slot_s=spec.slot_s, slots=slots_until(end_s, spec.slot_s)),
        "derived": tuple(_notes(spec, pool)),
    }


def _mean_minutes(spec: SynergySpec) -> float:
    """Return the mean of the minutes that the paper's law draws."""

    def mean(low: float, high: float) -> float:
        return float((10**high - 10**low) / ((high - low) * math.log(10)) if high > low else 10**low)

    return spec.long * mean(*spec.long_exponents) + (1 - spec.long) * mean(*spec.exponents)


def _pool(spec: SynergySpec) -> list[CatalogueModel]:
    return [model for task in TASKS for name in spec.models[task] if (model := find(name))]


def _job(spec: SynergySpec, name: str, pool: Sequence[CatalogueModel], kind: Kind, submit_s: float, work: int) -> Job:
    """Return a job; its rates are those with 3 CPUs and 62.5 GB (matrix) or of a GPU that never waits (pipeline)."""
    model, gpus = pool[kind[0]], kind[1]
    measured = spec.sensitivity == "matrix"
    factor = 1.0 if measured else model.pipeline.compute
    rates, _ = rates_on(model, [gpu_type(spec.gpu_type).name])
    return Job(
        id=name,
        model=model.name,
        submit_s=submit_s,
        gpus=gpus,
        epochs=1,
        minibatches_per_chunk=work,
        rates={name: significant(factor * rate) for name, rate in rates.items()},
        sensitivity=model.sensitivity if measured else model.pipeline.of_gang(gpus),
    )


def _rates_at_share(spec: SynergySpec) -> dict[Kind, float]:
    """Return iterations per second of each kind of gang with its proportional share of CPUs and memory."""
    pool, cluster = _pool(spec), spec.cluster
    kinds = list(itertools.product(range(len(pool)), spec.sizes))
    jobs = tuple(_job(spec, f"{i}", pool, kind, 0.0, 1) for i, kind in enumerate(kinds))
    sample = Instance(name="kinds", cluster=cluster, jobs=jobs)
    tables = profiles(sample, workload(sample), servers(sample))
    gpus = np.array([gang for _, gang in kinds], float)
    share = gpus * spec.cpus_per_gpu, gpus * spec.memory_gb_per_gpu
    rates = tables.rate_of(tables.kind, np.zeros(len(kinds), np.int64), *share)
    return dict(zip(kinds, rates.tolist(), strict=True))


def _notes(spec: SynergySpec, pool: Sequence[CatalogueModel]) -> list[str]:
    lines = [f"{model.name}: {note}" for model in pool for note in rates_on(model, [spec.gpu_type])[1]]
    share = f"{spec.cpus_per_gpu:g} CPUs and {spec.memory_gb_per_gpu:g} GB per GPU"
    lines.append(f"iterations = duration x rate of the gang with its proportional share ({share})")
    if spec.sensitivity == "pipeline":
        lines += [f"{model.name}: {model.pipeline.derived}" for model in pool]
        lines.append("the rates of jobs are those of GPUs that never wait for data; storage serves each GPU of a gang")
    lines += law_notes(spec)
    lines.append(f"horizon = last arrival + {SLACK:g} x GPU time of all jobs at their shares + longest job")
    return lines


FAMILIES.register(Family("synergy", SynergySpec, build))

"""Common parts of families of jobs: equal servers of several GPU types, arrivals, job sizes at a given load.

**Load** is fluid: the work of the jobs that arrive in a day, in GPU-seconds of the average GPU (rates averaged over the
cluster's GPUs), divided by the GPU-seconds of a day. Sizes are scaled by the mean of their distribution, so that the
load is right on average for any number of jobs, and a longer instance contains the jobs of a shorter one. With
`mean_h`, the mean duration is given, and the load sets how many jobs arrive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from schedgap.instances.generate import draws, laws
from schedgap.instances.generate.core import Streams
from schedgap.instances.generate.laws import LawsSpec, TypesSpec
from schedgap.instances.model_catalogue import MODELS, CatalogueModel, find, gpu_type, rates_on
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Cluster, Name, Record, ServerGroup, check_size, rule, violation

DAY_S = 86_400.0


def _ascending(value: tuple[Any, Any]) -> tuple[Any, Any]:
    if value[0] > value[1]:
        raise ValueError("smallest first")
    return value


WholeRange = Annotated[tuple[int, int], AfterValidator(_ascending)]
Range = Annotated[tuple[float, float], AfterValidator(_ascending)]


class ServerSpec(Record):
    """A server whose CPUs and memory are in proportion to its GPUs, as those of cloud machines."""

    gpus: int = rule("a server has at least one GPU", ge=1, le=10_000)
    cpus_per_gpu: float = rule("CPUs per GPU are 0 or more", ge=0, default=0.0)
    memory_gb_per_gpu: float = rule("memory per GPU is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth is 0 or more", ge=0, default=0.0)
    ps_slots: int = rule("parameter-server slots are a whole number, 0 or more", ge=0, default=0)

    @property
    def capacities(self) -> dict[str, Any]:
        """Fields of a group of such servers."""
        cpus, memory_gb = self.cpus_per_gpu * self.gpus, self.memory_gb_per_gpu * self.gpus
        return {**self.model_dump(include={"gpus", "bandwidth_gbps", "ps_slots"}), "cpus": cpus, "memory_gb": memory_gb}


class JobsSpec(LawsSpec):
    """A number of jobs, the distribution of their gang sizes, and how these go with durations."""

    arrivals: laws.Arrivals = "poisson"
    jobs: int = rule("a whole number of jobs, 1 or more", ge=1)
    gangs: tuple[Annotated[int, Field(ge=1)], ...] = rule("GPUs of a gang, 1 or more", min_length=1)
    gang_probabilities: tuple[Annotated[float, Field(ge=0)], ...] = rule("one probability per gang size, 0 or more")
    gang_correlation: float = rule(
        "the correlation of gangs with durations, from -0.99 to 0.99", ge=-0.99, le=0.99, default=0.0
    )

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        if len(self.gang_probabilities) != len(self.gangs) or sum(self.gang_probabilities) <= 0:
            raise violation("gang_probabilities", self.gang_probabilities, "one probability per gang size")
        return self


class GangSpec(TypesSpec, JobsSpec):
    """Gangs of catalogue models on equal servers of several GPU types."""

    slot_s: float = rule("a slot has a positive length in seconds", gt=0)
    models: tuple[Name, ...] = rule("names from the model catalogue", min_length=1, max_length=1000)
    gpu_types: tuple[Name, ...] = rule("at least one GPU type", min_length=1, max_length=1000)
    servers_per_type: int = rule("a whole number of servers of every GPU type, 1 or more", ge=1)
    servers_per_rack: int = rule("a whole number of servers, 1 or more", ge=1, default=10)
    server: ServerSpec

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for i, name in enumerate(self.models):
            if find(name) is None:
                raise violation(f"models[{i}]", name, unknown("model", name, MODELS))
        check_size("jobs", self.jobs)
        check_size("servers", len(self.gpu_types) * self.servers_per_type)
        return self

    @property
    def type_names(self) -> tuple[str, ...]:
        """GPU types by the catalogue's names."""
        return tuple(gpu_type(name).name for name in self.gpu_types)

    @property
    def gpus(self) -> int:
        """Number of GPUs of the cluster."""
        return len(self.gpu_types) * self.servers_per_type * self.server.gpus


class WorkloadSpec(GangSpec):
    """Jobs of tenants that arrive over days; the module's docstring defines the load."""

    durations: Literal["log-uniform", "log-normal", "pareto", "mixture", "philly", "helios", "itp"] = "log-uniform"
    jobs_per_day: float = rule("jobs per day, at least 1e-6, or 0 if mean_h is given", ge=0)
    mean_h: float = rule("mean hours of a job on average GPUs, 0 to 1e6, or 0", ge=0, le=1e6, default=0.0)
    load: float = rule("a load is positive and at most 1000 (0.9 fills 90 % of the cluster)", gt=0, le=1000)
    tail_h: float = rule("hours after the last day of arrivals, 0 or more", ge=0, le=1e6)
    tenants: int = rule("a whole number of tenants, 1 or more", ge=1)
    epochs: WholeRange = rule("two whole numbers, the smaller first", default=(50, 100))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.jobs_per_day > 0) == (self.mean_h > 0):
            given = f"{self.jobs_per_day:g} and mean_h = {self.mean_h:g}"
            raise violation("jobs_per_day", given, "one of them positive, the other 0: the load gives it")
        if 0 < self.jobs_per_day < 1e-6:
            raise violation("jobs_per_day", self.jobs_per_day, "jobs per day, at least 1e-6")
        check_size("tenants", self.tenants)
        check_size("horizon.slots", self.slots)
        return self

    @property
    def slots(self) -> int:
        """Slots that cover the arrivals and the tail."""
        return slots_until(self.jobs / self.per_day * DAY_S + self.tail_h * 3600, self.slot_s)

    @cached_property
    def gpu_time(self) -> float:
        """Expected GPU time of a job, as a multiple of the mean duration: the mean gang, unless gangs go with it."""
        if self.gang_correlation == 0 and self.failures == 0:
            return float(np.average(self.gangs, weights=self.gang_probabilities))
        law = laws.durations(self, laws.QUANTILES, 1.0)
        return laws.gpu_time(self, self.gangs, self.gang_probabilities, self.gang_correlation, law)

    @property
    def per_day(self) -> float:
        """Jobs per day."""
        if self.mean_h:
            return self.load * self.gpus * DAY_S / (self.mean_h * 3600 * self.gpu_time)
        return self.jobs_per_day


def slots_until(end_s: float, slot_s: float) -> int:
    """Return the number of slots of length `slot_s` that cover `end_s` seconds, at least one."""
    return max(1, math.ceil(min(end_s / slot_s, 1e18) - 1e-9))


def catalogue_models(spec: GangSpec) -> list[CatalogueModel]:
    """Return the catalogue's models that the spec names."""
    return [model for name in spec.models if (model := find(name))]


def model_rates(spec: GangSpec, model: CatalogueModel, streams: Streams) -> dict[str, float]:
    """Return the rates of a model on the cluster's GPU types, as different as the spec says."""
    return typed(spec, rates_on(model, spec.type_names)[0], streams, model.name)


def typed(spec: GangSpec, rates: Mapping[str, float], streams: Streams, key: str) -> dict[str, float]:
    """Return rates made as different as the spec says (:func:`~schedgap.instances.generate.laws.typed`)."""
    order = laws.slowest_first([rates_on(model, spec.type_names)[0] for model in catalogue_models(spec)])
    return laws.typed(spec, rates, order, streams, key)


def mean_rate(rates: Mapping[str, float]) -> float:
    """Return the rate of the average GPU; all types have equally many GPUs."""
    return sum(rates.values()) / len(rates)


def derivations(spec: GangSpec) -> list[str]:
    """Return the catalogue's notes on derived numbers of the models of the spec."""
    lines = []
    for model in catalogue_models(spec):
        lines += [f"{model.name}: {line}" for line in (*model.derived, *rates_on(model, spec.type_names)[1])]
    return [*lines, *law_notes(spec)]


def law_notes(spec: LawsSpec) -> list[str]:
    """Return notes on the laws of a spec that are not its family's own."""
    lines = []
    if spec.failures:
        each = f"{spec.failures:g} per day and GPU, each costing up to {spec.checkpoint_min:g} min"
        lines.append(f"the work includes what is done again after failures: {each}")
    if isinstance(spec, TypesSpec) and spec.heterogeneity != 1:
        lines.append(f"rates: ratios to a job's mean rate raised to the power {spec.heterogeneity:g}")
    if isinstance(spec, GangSpec) and spec.types != "measured":
        lines.append(f"rates: given to GPU types as {spec.types}, not as measured")
    return lines


def cluster(spec: GangSpec) -> Cluster:
    """Return the cluster, one server group per rack."""
    groups = []
    for name in spec.type_names:
        full, rest = divmod(spec.servers_per_type, spec.servers_per_rack)
        for rack, count in enumerate([spec.servers_per_rack] * full + [rest] * (rest > 0), start=1):
            label = f"{name}-rack{rack}"
            groups.append(ServerGroup(name=label, rack=label, count=count, gpu_type=name, **spec.server.capacities))
    return Cluster(gpu_types=tuple(gpu_type(name) for name in spec.type_names), servers=tuple(groups))


def arrivals(spec: JobsSpec, per_s: float, streams: Streams) -> list[float]:
    """Return the submission times of the jobs in seconds, at `per_s` jobs per second; all are 0 if `per_s` is 0."""
    return draws.rounded(laws.arrival_times(spec, spec.jobs, per_s, streams))


def gang_sizes(spec: JobsSpec, streams: Streams) -> list[int]:
    """Return the number of GPUs of each job; they go with the quantiles of the stream ``sizes``."""
    u = laws.gang_quantiles(
        streams.uniform("gangs", spec.jobs), streams.uniform("sizes", spec.jobs), spec.gang_correlation
    )
    return [spec.gangs[i] for i in draws.choice(u, spec.gang_probabilities)]


def durations(spec: WorkloadSpec, gangs: Sequence[int], streams: Streams) -> list[float]:
    """Return the duration of each job on average GPUs, in seconds; `gangs` are its GPUs."""
    mean_s = spec.load * spec.gpus * DAY_S / spec.per_day / spec.gpu_time  # solves the definition of the load
    seconds = draws.rounded(laws.durations(spec, streams.uniform("sizes", spec.jobs), mean_s))
    return laws.with_failures(spec, seconds, gangs, streams)

"""Checkers and rules read a raw instance as models and heuristics read it through views.

They share no code. Where they differ, one of them misreads what the schema says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from extremes import extreme

from schedgap.certificates.reading.admission import admission_of
from schedgap.certificates.reading.gangs import gangs_of
from schedgap.certificates.reading.oef import shares_of
from schedgap.certificates.reading.rigid import fixed_gangs_of
from schedgap.certificates.reading.sensitive import Sensitive
from schedgap.certificates.reading.simulated import simulated_of
from schedgap.certificates.reading.synergy import rounds_of
from schedgap.certificates.reading.zhou import RawArchitecture, zhou_of
from schedgap.instances import load, views
from schedgap.instances.canonical import to_json
from schedgap.instances.catalogue import references
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.workload import server_names, servers, workload

Pair = tuple[str, Any, Any]
"""A quantity's name, its value in the view, and its value in the checker's reading."""

SECONDS = np.array([1.0, 59.9, 3600.0, 1e5])


def same(pairs: Iterator[Pair], exact: bool = False) -> list[str]:
    """Return the names of quantities that differ."""
    return [name for name, one, other in pairs if not _equal(one, other, exact)]


def _equal(one: Any, other: Any, exact: bool) -> bool:
    if isinstance(one, str | tuple | list):
        return bool(list(one) == list(other))
    return np.shape(one) == np.shape(other) and bool(
        np.array_equal(one, other) if exact else np.allclose(one, other, rtol=1e-12, atol=0.0, equal_nan=True)
    )


def of_jobs(work: Any, read: Any) -> Iterator[Pair]:
    for name in ("ids", "gpu_types", "arrival_s", "leave_s", "gpus", "work", "weight", "rates"):
        yield name, getattr(work, name), getattr(read, name)


def of_servers(hosts: Any, read: Any) -> Iterator[Pair]:
    for name in ("names", "gpu_type", "gpus", "cpus", "memory_gb", "machine"):
        yield name, getattr(hosts, name), getattr(read, name)


def of_hadar(view: Any, data: Any) -> Iterator[Pair]:
    read = gangs_of(data)
    yield from of_jobs(view.workload, read.jobs)
    yield from of_servers(view.servers, read.servers)
    for name in ("slot_s", "slots", "arrival", "capacity"):
        yield name, getattr(view, name), getattr(read, name)
    jobs = np.arange(view.size)[:, None]
    yield "utility", view.utilities.value(jobs, SECONDS), read.utilities.value(jobs, SECONDS)


def of_oef(view: Any, data: Any) -> Iterator[Pair]:
    read = shares_of(data)
    for name in ("labels", "gpu_types", "weight", "capacity", "speedups", "true_speedups"):
        yield name, getattr(view, name), getattr(read, name)


def of_rigid(view: Any, data: Any) -> Iterator[Pair]:
    read = fixed_gangs_of(data)
    for name in ("tick_s", "release", "gpus", "pool", "weight", "pools", "capacity", "lasts"):
        yield name, getattr(view, name), getattr(read, name)
    yield "hour", view.ticks_of_hour, read.hour
    yield "servers", server_names(view.instance), read.servers.names


def of_synergy(view: Any, data: Any) -> Iterator[Pair]:
    read = rounds_of(data)
    for name in ("slot_s", "arrival", "queue", "runnable"):
        yield name, getattr(view, name), getattr(read, name)
    yield "weight", view.weight, read.read.pooled.weight
    yield from of_pools(view, read.read)


def of_pools(view: Any, read: Sensitive) -> Iterator[Pair]:
    needs, kind, pooled = view.needs, view.profiles.kind, read.pooled
    able = needs.able[kind]
    yield "able", able, pooled.able
    yield "fair", np.where(able, needs.fair[kind], 0.0), pooled.fair
    fits = view.workload.gpus[:, None] <= view.pools.gpus
    yield "limit", needs.limit[kind][fits], pooled.limit[fits]
    pools = np.column_stack((view.pools.gpus, view.pools.cpus, view.pools.memory_gb))
    yield "pools", pools, pooled.total
    job, where = (x.ravel() for x in np.meshgrid(np.arange(view.size), np.arange(view.types), indexing="ij"))
    for cpus, memory_gb in ((1.0, 20.0), (3.0, 62.5), (7.5, 130.0), (24.0, 500.0)):
        held = np.full(job.size, cpus), np.full(job.size, memory_gb)
        yield f"rate at {cpus}", view.profiles.rate_of(kind[job], where, *held), read.rate(job, where, *held)


def of_zhou(view: Any, data: Any) -> Iterator[Pair]:
    read = zhou_of(data)
    for name in ("slot_s", "slots", "arrival"):
        yield name, getattr(view, name), getattr(read, name)
    for name, of in view.architectures.items():
        if of.reason is None:
            yield from ((f"{name}: {what}", one, other) for what, one, other in of_runs(of, read.architectures[name]))


def of_runs(of: Any, read: RawArchitecture) -> Iterator[Pair]:
    yield "ids", of.ids, read.ids
    for name, own in {"weight": "weight", "work": "work", "most": "chunks"}.items():
        yield name, getattr(of, name), getattr(read, own)
    yield "servers", of.machines.names, read.names
    yield "capacity", of.machines.capacity, read.capacity
    if of.given_deadline is None or of.given_deadline > of.options.shortest.min():
        yield "τ", of.deadline, read.deadline
        if of.machines.capacity.size * of.deadline < 10**6:
            yield "loads", of.loads, read.loads(np.arange(len(read.names)), 1, read.deadline)
    yield "F", of.unit_worth, read.unit_worth
    yield "λ", of.price_base, read.base


def of_admission(view: Any, data: Any) -> Iterator[Pair]:
    read = admission_of(data)
    for name in ("slot_s", "slots", "arrival", "deadline"):
        yield name, getattr(view, name), getattr(read, name)
    jobs = np.arange(view.size)[:, None]
    yield "utility", view.utilities.value(jobs, SECONDS), read.utilities.value(jobs, SECONDS)
    machines, moldable = view.machines, read.moldable
    yield "resources", machines.resources, moldable.hardware.resources
    yield (
        "types",
        [*machines.worker_types, *machines.ps_types],
        [part["name"] for part in (*moldable.hardware.workers, *moldable.hardware.ps)],
    )
    for name, one, own in (("capacity", machines.capacity, moldable.capacity), ("work", view.work, moldable.work)):
        yield name, one, own


READINGS: dict[str, Callable[[Any, Any], Iterator[Pair]]] = {
    "hadar": of_hadar,
    "gavel": of_hadar,
    "oef": of_oef,
    "rigid": of_rigid,
    "synergy": of_synergy,
    "zhou": of_zhou,
    "admission": of_admission,
}


def differences(instance: Instance) -> list[str]:
    """Return the quantities that the views and the checkers' readings of an instance disagree on, by paper."""
    found = []
    for paper, reading in READINGS.items():
        try:
            view = PAPERS.get(paper).view(instance)
        except NotApplicableError:
            continue
        found += [f"{instance.name}: {paper}: {name}" for name in same(reading(view, instance.plain))]
    return found


def test_every_paper_has_a_reading() -> None:
    assert set(READINGS) == {name.rpartition(".")[2] for name in dir(views)} & {spec.id for spec in PAPERS}


@pytest.mark.parametrize("ref", [ref for ref in references() if ref not in ("gen/1000jobs", "gen/2000jobs")])
def test_the_reading_of_a_known_instance_agrees_with_the_views(ref: str) -> None:
    assert not differences(load(ref))


@pytest.mark.parametrize("family", [spec.id for spec in RANDOM])
def test_the_reading_of_random_instances_agrees_with_the_views(family: str) -> None:
    rng = np.random.default_rng(20)
    for _ in range(40):
        instance = RANDOM.get(family).draw(rng)
        assert not differences(instance)
        if instance.horizon:
            assert not differences(instance.model_copy(update={"horizon": None}))


def test_the_reading_of_extreme_instances_agrees_with_the_views() -> None:
    nothing_of_a_resource = 10_265, 10_266
    seeds = *range(70_000, 70_040), *nothing_of_a_resource
    assert not [found for seed in seeds for found in differences(extreme(seed))]


@pytest.mark.parametrize("ref", ["gen/20jobs", "gen/synergy-32-dynamic", "gen/oef-4", "paper/synergy-example"])
def test_what_is_simulated_is_read_alike_to_the_last_digit(ref: str) -> None:
    instance = load(ref)
    read = simulated_of(instance.plain)
    assert not same(of_jobs(workload(instance), read.jobs), exact=True)
    assert not same(of_servers(servers(instance), read.servers), exact=True)


@pytest.mark.parametrize("ref", ["gen/50jobs", "paper/walkthrough", "paper/rigid-hpc", "worst/oef.rounding"])
def test_plain_data_is_the_canonical_json(ref: str) -> None:
    instance = load(ref)
    assert instance.plain == json.loads(to_json(instance))

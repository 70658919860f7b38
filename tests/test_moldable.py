"""Moldable jobs: leaving out options never loses the best run, and a ledger stays right while runs come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zhou_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import instances
from schedgap.instances.moldable import Ledger, Machines, classes, fitting, options_of, runs_of
from schedgap.instances.moldable.machines import PLENTY, reachable
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou
from schedgap.instances.views.zhou import Architecture

SEEDS = st.integers(0, 2**32 - 1)


def architectures(instance: Instance) -> list[Architecture]:
    """Return the architectures in which all jobs can run."""
    return [a for a in zhou.view(instance).architectures.values() if a.reason is None]


def prices(a: Architecture, slots: int, seed: int) -> Any:
    """Return random prices by server, some of them 0."""
    rng = np.random.default_rng(seed)
    shape = (a.machines.size, len(a.machines.resources), slots)
    return rng.choice([0.0, 0.0, 0.3, 1.0, 2.5], shape)


def length(a: Architecture) -> int:
    return int(a.options.slots.max()) + 3


@settings(max_examples=150)
@given(cases.tiny(), SEEDS)
def test_dominated_options_are_never_missed(instance: Instance, seed: int) -> None:
    for a in architectures(instance):
        everything = options_of(a.machines, a.work, a.most, a.rates, prune=False)
        slots = int(everything.slots.max()) + 2
        posted = prices(a, slots, seed)
        late = np.asarray(np.arange(slots + 1) * 0.7)
        found = []
        for some in (a.options, everything):
            ledger = Ledger(a.machines, some, slots)
            ledger.post(posted)
            found.append([ledger.find(job, 0, late=late) for job in range(a.size)])
        assert len(a.options.slots) <= len(everything.slots)
        for few, all_of_them in zip(*found, strict=True):
            assert few is not None
            assert all_of_them is not None
            assert few.total == pytest.approx(all_of_them.total)


@settings(max_examples=60)
@given(cases.tiny(), SEEDS)
def test_the_first_of_equal_schedules_is_that_of_the_printed_loops(instance: Instance, seed: int) -> None:
    """With ties to the first schedule, a ledger finds what the printed loops find (lines 5 and 30).

    The loops try every start of every option one by one; only a strictly lower cost replaces the best.
    """
    for a in architectures(instance):
        o = options_of(a.machines, a.work, a.most, a.rates, prune=False)
        slots = int(o.slots.max()) + 2
        one_by_one, at_once = Ledger(a.machines, o, slots), Ledger(a.machines, a.looped_options, slots)
        for ledger in (one_by_one, at_once):
            ledger.post(prices(a, slots, seed).round() if seed % 3 else np.zeros(ledger.price.shape))
        for job in range(a.size):
            best, inner = None, o.slots if a.id == "ps" else o.workers
            keys = np.stack([~o.together, o.worker_type, o.ps_type, inner], axis=1).tolist()
            for option in sorted(range(*o.of(job).indices(len(keys))), key=keys.__getitem__):
                for start in range(slots - int(o.slots[option]) + 1):
                    end = start + int(o.slots[option])
                    here = one_by_one.find(job, start, end, among=slice(option, option + 1), first=True)
                    best = here if here and (best is None or here.cost < best.cost) else best
            found = at_once.find(job, 0, first=True)
            assert best is not None
            assert found is not None
            assert (found.cost, found.start, found.slots) == (best.cost, best.start, best.slots)
            assert (found.worker_type, found.ps_type) == (best.worker_type, best.ps_type)
            assert (found.workers == best.workers).all()
            assert (found.ps == best.ps).all()


def test_hosts_go_by_the_cost_of_a_worker() -> None:
    """Servers are tried by the cost of a worker there (Algorithm 4, line 8), so server 1 comes first.

    A worker costs nothing there, and a PS as much as on server 0.
    """
    case = cases.instance([cases.job(2)], [cases.servers(3, 1)])
    a = next(a for a in architectures(case) if a.id == "ps")
    ledger = Ledger(a.machines, a.looped_options, int(a.options.slots.max()))
    price = np.zeros(ledger.price.shape)
    price[0, 0], price[2, 0] = 1.0, 1.0  # GPUs, of which a PS takes none
    ledger.post(price)
    apart = int(np.flatnonzero(~a.looped_options.together)[0])
    found = ledger.find(0, 0, among=slice(apart, apart + 1), first=True)
    assert found is not None
    assert (found.workers.tolist(), found.ps.tolist()) == ([1, 1, 0], [0, 1, 0])


@given(cases.tiny())
def test_pairs_of_workers_and_slots_are_pareto_minimal(instance: Instance) -> None:
    """With one worker fewer an option would need more slots, and its slots suffice for the work (2f)."""
    for a in architectures(instance):
        o = options_of(a.machines, a.work, a.most, a.rates, prune=False)
        for i, job in enumerate(o.job.tolist()):
            m, p, together, number = int(o.worker_type[i]), int(o.ps_type[i]), bool(o.together[i]), int(o.workers[i])
            done = number * o.slots[i] / a.rates.slots(job, m, p, number, together)
            assert done >= a.work[job] * (1 - 1e-8)
            assert number <= a.most[job]
            if number > (2 if a.id == "ra" and not together else 1):
                fewer = (number - 1) * o.slots[i] / a.rates.slots(job, m, p, number - 1, together)
                assert fewer < a.work[job] * (1 + 1e-8)


@settings(max_examples=60)
@given(cases.small(jobs=5), SEEDS)
def test_a_ledger_forgets_what_is_given_back(instance: Instance, seed: int) -> None:
    """A ledger finds the same runs as a new one after runs are booked and given back in any order."""
    rng = np.random.default_rng(seed)
    for a in architectures(instance):
        slots = length(a)
        used, fresh = Ledger(a.machines, a.options, slots), Ledger(a.machines, a.options, slots)
        posted = prices(a, slots, seed)
        used.post(posted)
        booked = []
        for job in rng.integers(0, a.size, 6).tolist():
            if found := used.find(job, int(rng.integers(0, 3))):
                used.book(found)
                booked.append(found)
        assert (used.free >= -1e-9 * a.machines.capacity[:, :, None]).all()
        for i in rng.permutation(len(booked)):
            used.book(booked[i], -1)
        used.set_free(fresh.free)
        fresh.post(posted)
        for job in range(a.size):
            one, other = used.find(job, 0), fresh.find(job, 0)
            assert one is not None
            assert other is not None
            assert (one.total, one.start, one.option) == (other.total, other.start, other.option)
            assert (one.workers == other.workers).all()
            assert (one.ps == other.ps).all()


@settings(max_examples=60)
@given(cases.small(jobs=5), SEEDS)
def test_classes_cost_what_their_servers_cost(instance: Instance, seed: int) -> None:
    """On empty servers with equal prices, a ledger by class finds the costs of a ledger by server."""
    for a in architectures(instance):
        slots = length(a)
        grouped = classes(a.machines)
        posted = prices(a, slots, seed)[: grouped.size]
        by_class, by_server = Ledger(grouped, a.options, slots, constant=True), Ledger(a.machines, a.options, slots)
        by_class.post(posted)
        by_server.post(posted[a.machines.kind])
        for job in range(a.size):
            one, other = by_class.find(job, 0), by_server.find(job, 0)
            assert one is not None
            assert other is not None
            assert one.total == pytest.approx(other.total)
            assert one.workers.sum() == other.workers.sum() or one.option != other.option


@settings(max_examples=60)
@given(cases.small(jobs=4), SEEDS, st.sampled_from([2, 3, 5]), st.sampled_from(["linear", "sigmoid", "deadline"]))
def test_runs_that_neither_begin_nor_end_at_a_stop_are_never_better(
    instance: Instance, seed: int, period: int, kind: str
) -> None:
    from schedgap.models.engine.columns import Covers
    from schedgap.models.engine.moldable import CapacityGrid, MoldableJobs, MoldablePricing
    from schedgap.models.engine.moldable.jobs import bends

    for a in architectures(instance):
        slots = length(a) + 2 * period
        nobody = np.zeros(a.size, np.int64)
        jobs = MoldableJobs(a.machines, a.options, slots, nobody, np.zeros((a.size, slots + 1)), None)
        pricing = MoldablePricing(jobs, CapacityGrid(classes(a.machines), slots))
        entries = pricing.grid.rows // slots
        drawn = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 4.0], (entries, -(-slots // period)))
        posted = np.repeat(drawn, period, axis=1)[:, :slots].ravel()
        ledger, steps = pricing.ledger, pricing.steps(posted, Covers.none(a.size))
        ledger.post(pricing.grid.by_slot(posted))
        times = np.arange(slots + 1.0)
        late = {
            "linear": 1.3 * times,
            "sigmoid": -9 / (1 + np.exp(0.2 * times)),
            "deadline": np.where(times <= slots - 2, np.minimum(np.maximum(times - 4, 0), 6), np.inf),
        }[kind]
        for job in range(a.size):
            every = ledger.find(job, 1, late=late)
            some = ledger.find(job, 1, late=late, stops=steps | bends(late))
            assert (every is None) == (some is None)
            if every and some:
                assert some.total == pytest.approx(every.total)


def test_nothing_is_found_at_or_above_the_limit() -> None:
    a = zhou.view(cases.instance([cases.job()])).architectures["ra"]
    ledger = Ledger(a.machines, a.options, 6)
    ledger.post(np.ones((1, 4, 6)))
    found = ledger.find(0, 0)
    assert found is not None
    assert ledger.find(0, 0, limit=found.cost) is None
    assert ledger.find(0, 0, limit=np.nextafter(found.cost, np.inf)) is not None


def test_of_equally_cheap_runs_the_first_to_end_counts_then_the_smallest() -> None:
    a = zhou.view(cases.instance([cases.job(4, 2)], [cases.servers(2, 4, 8.0)])).architectures["ps"]
    found = Ledger(a.machines, a.options, 10).find(0, 0)
    assert found is not None
    # On two servers they would be as fast and take as much; one server is first in the order of options.
    assert (found.start, found.slots) == (0, 2)
    assert found.workers.tolist() == [4, 0]
    assert found.ps.tolist() == [1, 0]


def test_a_ring_on_several_servers_is_on_two_at_least() -> None:
    """A ring that must use several servers puts its last worker elsewhere, even if one server were cheapest."""
    a = zhou.view(cases.instance([cases.job(3, 2)], [cases.servers(2, 3)])).architectures["ra"]
    o = a.options
    apart = next(i for i in range(len(o.slots)) if not o.together[i] and o.workers[i] == 3)
    ledger = Ledger(a.machines, o, 8)
    ledger.post(np.stack([np.zeros((4, 8)), np.ones((4, 8))]))
    found = ledger.find(0, 0, among=slice(apart, apart + 1))
    assert found is not None
    assert found.workers.tolist() == [2, 1]


def test_runs_become_a_decision() -> None:
    a = zhou.view(cases.instance([cases.job(4, 2)], [cases.servers(2, 4, 8.0)])).architectures["ps"]
    found = Ledger(a.machines, a.options, 10).find(0, 2)
    assert found is not None
    decision = runs_of([(0, found)], first_slot=1)
    assert (decision.start.tolist(), decision.slots.tolist()) == ([3], [2])
    assert (decision.run.tolist(), decision.server.tolist()) == ([0], [0])
    empty = runs_of([], 1)
    assert all(len(getattr(empty, name)) == 0 for name in ("job", "run", "server", "workers", "ps"))


def test_what_nothing_limits_fits_plentifully() -> None:
    assert fitting(np.array([[1.0, 2.0]]), np.zeros(2)).tolist() == [PLENTY]
    assert fitting(np.array([[1.0, 2.0], [0.0, 9.0]]), np.array([1 / 3, 0.0])).tolist() == [3, 0]


def test_servers_of_one_kind_are_one_class() -> None:
    machines: Machines = zhou.view(instances.load("gen/200jobs")).architectures["ps"].machines
    grouped = classes(machines)
    assert grouped.size == 3
    assert grouped.count.tolist() == [5, 5, 5]
    assert (grouped.total == machines.total).all()


@pytest.mark.parametrize(
    ("capacity", "needs", "most"),
    [
        (136.64, [122.0, 61.0, 30.5], 122.0),
        (5.0, [4.0, 2.0, 0.0], 4.0),
        (0.9, [0.3], 0.9),
        (0.3, [0.1], 0.3),
        (7.0, [0.0], 7.0),
        (1.0, [0.3000001, 0.0000007], 1.0),
    ],
)
def test_what_whole_needs_can_take_of_a_capacity(capacity: float, needs: list[float], most: float) -> None:
    assert reachable(capacity, np.array(needs)) == pytest.approx(most, rel=1e-9)

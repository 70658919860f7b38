"""Hadar's pricing is exact, and column generation reaches the optimum of P2's relaxation and bounds P1."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from promised import within_the_promised_gaps

from schedgap import instances, models
from schedgap.harness.check import judge
from schedgap.instances import clock
from schedgap.instances.canonical import validate
from schedgap.instances.registry import PAPERS
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.columns import Domain, Generated, GenerationOptions, Priced, generate, lagrangian
from schedgap.models.engine.gangs import periods, pricing
from schedgap.models.engine.gangs.copies import ForkedPricing
from schedgap.models.engine.gangs.periods import ByPeriod, Sampled
from schedgap.models.engine.gangs.pricing import GangPricing, Machine, machine
from schedgap.models.engine.solve import Solution, SolveOptions
from schedgap.models.engine.solve.session import Session
from schedgap.models.hadar import columns as p2
from schedgap.models.hadar.schedules import schedules

UTILITIES: list[dict[str, Any]] = [
    {"kind": "effective_throughput"},
    {"kind": "normalised"},
    {"kind": "sigmoid", "amplitude": 5.0, "steepness_per_s": 0.8, "midpoint_s": 3.0},
    {"kind": "linear_deadline", "amplitude": 4.0, "grace_s": 2.0},
    {"kind": "constant", "amplitude": 3.0},
]


@st.composite
def tiny(draw: Any) -> HadarView:
    """Draw a view of a few small gangs with unordered rates, some of them 0, in a few slots."""
    types = [f"T{r}" for r in range(draw(st.integers(1, 3)))]
    counts = [draw(st.integers(1, 3)) for _ in types]
    jobs = []
    for i in range(draw(st.integers(1, 3))):
        rates = {r: draw(st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0])) for r in types}
        able = sum(c for r, c in zip(types, counts, strict=True) if rates[r] > 0)
        assume(able)
        job = {
            "id": f"J{i}",
            "gpus": draw(st.integers(1, min(3, able))),
            "epochs": draw(st.integers(1, 9)),
            "rates": rates,
            "submit_s": float(draw(st.integers(0, 2))),
            "utility": draw(st.sampled_from(UTILITIES)),
        }
        if job["utility"]["kind"] == "linear_deadline":
            job["deadline_s"] = job["submit_s"] + draw(st.integers(1, 4))
        jobs.append(job)
    data = {
        "name": "tiny",
        "cluster": {
            "gpu_types": [{"name": r} for r in types],
            "servers": [{"name": r, "count": c, "gpu_type": r, "gpus": 1} for r, c in zip(types, counts, strict=True)],
        },
        "jobs": jobs,
        "horizon": {"slot_s": 1.0, "slots": draw(st.integers(3, 5))},
    }
    return hadar.view(validate(data, "tiny"))


def payoffs(view: HadarView, prices: np.ndarray) -> np.ndarray:
    """Return the best payoff of each job over all its schedules, by enumeration; -inf without any schedule."""
    all_of_them = schedules(view)
    use = prices.reshape(len(view.capacity), view.slots)[all_of_them.gpu_type, all_of_them.slot] * all_of_them.gpus
    cost = np.bincount(all_of_them.schedule, use, len(all_of_them.job))
    most = np.full(view.size, -np.inf)
    np.maximum.at(most, all_of_them.job, all_of_them.utility - cost)
    return most


def priced(oracle: GangPricing | ForkedPricing, prices: np.ndarray) -> Priced:
    return oracle(prices, Domain.of(oracle.packing))


def relaxed_by(oracle: GangPricing | ForkedPricing) -> Generated:
    return generate(Domain.of(oracle.packing), oracle, GenerationOptions(gap=1e-9))


PRICES = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0, 2.0]), min_size=15, max_size=15)


@settings(max_examples=60)
@given(tiny(), PRICES)
def test_pricing_is_exact(view: HadarView, numbers: list[float]) -> None:
    prices = np.array(numbers[: len(view.capacity) * view.slots])
    prices = np.resize(prices, len(view.capacity) * view.slots)
    found = priced(GangPricing(view), prices)
    right = payoffs(view, prices)
    assert np.maximum(found.most, 0) == pytest.approx(np.maximum(right, 0))
    profit = found.columns.profit(prices)
    best = np.zeros(view.size)
    np.maximum.at(best, found.columns.block, profit)
    assert best == pytest.approx(np.maximum(right, 0))
    forced = priced(GangPricing(view, complete=True), prices)
    assert forced.most[view.possible] == pytest.approx(right[view.possible])


@settings(max_examples=60)
@given(tiny(), PRICES)
def test_every_column_is_a_schedule(view: HadarView, numbers: list[float]) -> None:
    """Each column that pricing finds is a valid schedule, and the independent checker finds the column's value."""
    prices = np.resize(np.array(numbers), len(view.capacity) * view.slots)
    columns = priced(GangPricing(view), prices).columns
    for c in range(len(columns)):
        verdict = judge(view.instance, p2.decode(view, columns.take(np.array([c]))), "hadar.utility", ())
        assert verdict.violations == ()
        assert verdict.objective == pytest.approx(columns.value[c])


@settings(max_examples=60)
@given(tiny(), st.lists(st.integers(0, 3), min_size=15, max_size=15))
def test_insertion_stays_within_what_is_left(view: HadarView, numbers: list[int]) -> None:
    room = np.minimum(
        np.resize(np.array(numbers), view.capacity.size * view.slots), np.repeat(view.capacity, view.slots)
    )
    oracle = GangPricing(view)
    for job in range(view.size):
        choice = oracle.insert(job, room.astype(float), np.zeros(room.size))
        smaller = replace(view, capacity=view.capacity)
        if choice is not None:
            assert (choice.amounts <= room[choice.rows]).all()
            assert view.hopeless[job] is None
            assert choice.value <= payoffs(smaller, np.zeros(room.size))[job] + 1e-9


def accepts(m: Machine, counts: tuple[int, ...], state: int) -> bool:
    """Return whether an automaton gets from `state` to "done" with so many slots at each level."""
    for level, count in enumerate(counts[: m.table.shape[1]]):
        for _ in range(count):
            state = int(m.table[state, level])
    return state == 0


@settings(max_examples=80)
@given(
    st.lists(st.floats(0.2, 5.0), min_size=1, max_size=3, unique=True),
    st.floats(0.5, 12.0),
    st.sampled_from([2, 8, 40, 1500]),
)
def test_machines_accept_what_does_the_work(progress: list[float], work: float, largest: int) -> None:
    levels = np.array(sorted(progress, reverse=True))
    m = machine(levels, work, 8, largest)
    assert m.exact or largest < 1500
    for counts in product(range(5), repeat=len(levels)):
        done = float(np.array(counts) @ levels)
        if abs(done - work) < 1e-6 * work or sum(counts) > 8:
            continue
        if done > work and not m.credit:
            assert accepts(m, counts, m.need)
        if accepts(m, counts, m.enough):
            dropped = np.array(counts[m.table.shape[1] :]) @ levels[m.table.shape[1] :]
            assert done - dropped > work * (1 - 1e-6)
        if m.exact and done < work:
            assert not accepts(m, counts, m.need)


@pytest.mark.parametrize("tolerance", [0.0, np.inf])
def test_grids_that_are_too_coarse_and_the_cheapest_slots_still_bound(
    tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = PAPERS.get("hadar").view(instances.load("gen/20jobs"))
    prices = np.linspace(0, 1, view.capacity.size * view.slots)
    fine = priced(GangPricing(view), prices)
    monkeypatch.setattr(pricing, "COARSE", 60)
    monkeypatch.setattr(pricing, "FINE", 60)
    monkeypatch.setattr(pricing, "TOLERANCE", tolerance)
    coarse = priced(GangPricing(view), prices)
    assert (coarse.most >= fine.most - 1e-9 * abs(fine.most)).all()
    attained = coarse.columns.profit(prices)
    assert (attained <= fine.most[coarse.columns.block] + 1e-9).all()


@settings(max_examples=examples(12))
@given(tiny(), st.booleans())
def test_columns_reach_the_relaxation_and_bound_the_optimum(view: HadarView, complete: bool) -> None:
    found = relaxed_by(GangPricing(view, complete))
    suffix = ".complete" if complete else ""
    if models.get(f"hadar.p1{suffix}").skip(view):
        return
    exact = models.get(f"hadar.p1{suffix}").run(view).solution
    if exact.status == "infeasible":
        assert found.ended == "infeasible" or found.value <= found.bound + 1e-9
        return
    assert exact.objective is not None
    assert found.bound >= exact.objective - 1e-6
    fluid = models.get(f"hadar.fluid{suffix}").run(view).solution.bound
    assert fluid is not None
    assert fluid >= exact.objective - 1e-6
    if not complete:
        relaxed = models.get("hadar.p2.relaxed").run(view).solution
        assert found.bound == pytest.approx(relaxed.bound, abs=1e-5)
        assert found.value == pytest.approx(relaxed.bound, abs=1e-5)
    outcome = models.get(f"hadar.p2.columns{suffix}").run(view)
    if outcome.decision is not None:
        verdict = judge(view.instance, outcome.decision, p2.COMPLETE.id if complete else p2.UTILITY.id, ())
        assert verdict.violations == ()
        assert verdict.objective == pytest.approx(outcome.solution.objective)
        assert verdict.objective <= exact.objective + 1e-6


@settings(max_examples=examples(8))
@given(tiny())
def test_with_enumerations_integrality_the_columns_are_exact(view: HadarView) -> None:
    """P2 over all enumerated schedules, as an integer program, has P1's optimum."""
    assume(view.possible.size)
    exact = models.get("hadar.p1").run(view).solution.objective
    enumerated = models.get("hadar.p2.enumerated").run(view).solution.objective
    assert exact is not None
    assert enumerated == pytest.approx(exact, abs=1e-6)


@settings(max_examples=30)
@given(tiny())
def test_jobs_in_copies_are_bounded_too(view: HadarView) -> None:
    forked, gangs = relaxed_by(ForkedPricing(view)), relaxed_by(GangPricing(view))
    assert forked.bound >= gangs.value - 1e-6
    assert forked.value == pytest.approx(forked.bound, abs=1e-5)


@settings(max_examples=40)
@given(tiny(), PRICES)
def test_pricing_of_copies_bounds_every_gang_schedule(view: HadarView, numbers: list[float]) -> None:
    prices = np.resize(np.array(numbers), len(view.capacity) * view.slots)
    found = priced(ForkedPricing(view), prices)
    most = np.maximum(found.most, 0)
    assert (most >= np.maximum(payoffs(view, prices), 0) - 1e-9).all()
    profit = np.zeros(view.size)
    np.maximum.at(profit, found.columns.block, found.columns.profit(prices))
    assert profit == pytest.approx(most)


@settings(max_examples=40)
@given(tiny(), PRICES)
def test_pricing_by_period_is_that_by_slot(view: HadarView, numbers: list[float]) -> None:
    by_period = ByPeriod(GangPricing(view), SolveOptions(), number=3)
    prices = np.resize(np.array(numbers), len(by_period.packing.capacity))
    found = by_period(prices, by_period.domain)
    right = np.maximum(payoffs(view, by_period.by_slot(prices).ravel()), 0)
    assert np.maximum(found.most, 0) == pytest.approx(right, abs=1e-4)
    attained = found.columns.profit(prices)
    assert attained == pytest.approx(right[found.columns.block], abs=1e-4)
    generated = by_period.relax(None)
    assert generated.bound >= relaxed_by(GangPricing(view)).value - 1e-6


def test_slots_that_are_alike_are_priced_as_slots_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pricing finds the same columns for runs of slots with equal prices as for prices that differ slightly."""
    view = PAPERS.get("hadar").view(instances.load("gen/20jobs"))
    monkeypatch.setattr(pricing, "COARSE", 1)
    oracle, rng = GangPricing(view), np.random.default_rng(0)
    for _ in range(5):
        edges = np.sort(rng.integers(0, view.slots, 6))
        levels = rng.random((len(view.capacity), 7)) * 0.3
        alike = levels[:, np.searchsorted(edges, np.arange(view.slots), side="right")].ravel()
        found, other = (
            oracle.rough(prices, oracle.anything) for prices in (alike, alike + 1e-9 * rng.random(alike.size))
        )
        assert found.most == pytest.approx(other.most, abs=1e-5)
        assert found.by_end[view.possible] == pytest.approx(other.by_end[view.possible], abs=1e-5)


def test_samples_have_their_part_of_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample is as small as it may be while every gang still fits on one type."""
    view = PAPERS.get("hadar").view(instances.load("gen/200jobs?servers_per_type=40"))
    monkeypatch.setattr(periods, "SAMPLE", view.possible.size // 2)
    half = periods.sample(view, seed=0)
    assert (half.size, half.capacity.tolist()) == (view.possible.size // 2, (view.capacity // 2).tolist())
    assert set(half.workload.ids) < set(view.workload.ids)
    assert half.arrival.tolist() == [view.arrival[view.workload.ids.index(name)] for name in half.workload.ids]
    monkeypatch.setattr(periods, "SAMPLE", 1)
    least = periods.sample(view, seed=0)
    assert (least.capacity >= view.workload.gpus.max()).all()
    assert least.size < half.size


def test_prices_from_a_sample_bound_all_jobs_about_as_well_as_a_master(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 200 jobs, the bound is within 0.2 % of that of column generation, and its columns have one per job."""
    view = PAPERS.get("hadar").view(instances.load("gen/200jobs"))
    oracle = GangPricing(view)
    exact = generate(oracle.anything, oracle)
    monkeypatch.setattr(periods, "SAMPLE", 50)
    by_period = Sampled(oracle, SolveOptions())
    found = by_period.relax(None)
    free = np.zeros(len(found.prices))
    assert exact.value <= found.bound <= exact.bound * 1.002
    assert found.bound < lagrangian(by_period.domain, free, by_period(free, by_period.domain).most)
    assert len(set(found.columns.block.tolist())) == len(found.columns) <= view.size
    assert oracle.by_parts[[reason is not None for reason in view.hopeless]].all()  # too long to be checked in slots


def test_fig1_is_solved_by_columns() -> None:
    view = PAPERS.get("hadar").view(instances.load("paper/hadar-fig1"))
    outcome = models.get("hadar.p2.columns").run(view)
    assert outcome.solution.objective == pytest.approx(1025 / 21)
    assert outcome.solution.bound >= 1025 / 21 - 1e-9
    assert "discretisation error" in outcome.solution.termination
    incumbents = [point.incumbent for point in outcome.solution.trace if point.incumbent is not None]
    assert incumbents[-1] == pytest.approx(1025 / 21)


def test_50_jobs_within_the_promised_gaps() -> None:
    """On 50 jobs in slots of half an hour, bound and schedule have the promised gaps."""
    within_the_promised_gaps("gen/50jobs?slot_s=1800")


def test_time_limits_are_kept_with_a_valid_bound() -> None:
    view = PAPERS.get("hadar").view(instances.load("gen/200jobs"))
    outcome = models.get("hadar.p2.columns").run(view, SolveOptions(time_limit_s=0.2))
    assert outcome.solution.status == "time limit with incumbent"
    assert outcome.solution.bound >= outcome.solution.objective


def test_cross_check_asks_cbc_about_the_master() -> None:
    view = PAPERS.get("hadar").view(instances.load("paper/hadar-fig1"))
    solution = models.get("hadar.p2.columns").run(view, SolveOptions(cross_check=True)).solution
    assert solution.cross_check is not None
    assert solution.cross_check <= 1e-6


def test_nobody_can_complete() -> None:
    data = {
        "name": "short",
        "cluster": {"gpu_types": [{"name": "A"}], "servers": [{"name": "s", "count": 1, "gpu_type": "A", "gpus": 1}]},
        "jobs": [{"id": "J", "gpus": 1, "epochs": 10, "rates": {"A": 1.0}}],
        "horizon": {"slot_s": 1.0, "slots": 3},
    }
    view = hadar.view(validate(data, "short"))
    assert view.hopeless[0] == "J: needs 10 slots alone, but only 3 are left from its arrival to the horizon"
    outcome = models.get("hadar.p2.columns").run(view)
    assert outcome.solution.bound == 0
    assert outcome.solution.objective == 0
    assert len(outcome.decision.job) == 0
    assert models.get("hadar.p2.columns.complete").run(view).solution.status == "infeasible"
    assert models.get("hadar.forked_bound").run(view).solution.bound == 0


@pytest.mark.parametrize("lp_s", [35.0, 1e6])
def test_a_master_that_takes_too_long_leaves_a_true_bound_and_a_schedule(
    lp_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If linear programs take all of the time limit, the result still has a valid bound and a schedule.

    With 8,000 jobs a single linear program once took longer than the whole limit.
    """
    view = PAPERS.get("hadar").view(instances.load("gen/20jobs?jobs=12&slot_s=1800"))
    best = models.get("hadar.p2.columns").run(view, SolveOptions(nodes=5)).solution
    run, seconds = Session.run, [0.0]

    def slow(session: Session, time_limit_s: float | None = None) -> Solution:
        assert time_limit_s is not None
        seconds[0] += min(lp_s, time_limit_s)
        solved = run(session, np.inf)
        return solved if lp_s <= time_limit_s else replace(solved, status="time limit without incumbent")

    def now() -> float:
        seconds[0] += 0.01
        return seconds[0]

    monkeypatch.setattr(Session, "run", slow)
    monkeypatch.setattr(clock, "now", now)
    monkeypatch.setattr(clock, "computed", now)
    outcome = models.get("hadar.p2.columns").run(view, SolveOptions(time_limit_s=100))
    found = outcome.solution
    assert seconds[0] < 101
    assert found.status == "time limit with incumbent"
    assert best.objective is not None
    assert found.bound is not None
    assert found.objective is not None
    assert found.bound >= best.objective - 1e-6
    assert found.objective >= 0.8 * best.objective
    verdict = judge(view.instance, outcome.decision, models.get("hadar.p2.columns").problem, ())
    assert not verdict.violations
    assert verdict.objective == pytest.approx(found.objective)

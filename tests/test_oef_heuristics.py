"""Gandiva_fair's trading between tenants, and the placer that rounds shares to devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import oef_reference as ref
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from schedgap import heuristics
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics import Context
from schedgap.heuristics.oef import gandiva_fair
from schedgap.heuristics.oef.rounding import ROUNDS, UNIT, Placer, Quality, Rule, quality, round_shares
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Cluster, GpuType, Instance, JobType, ServerGroup, Tenant
from schedgap.instances.views.oef import efficiency, matrix_view

TRUTH = np.array([[1, 2], [1, 3], [1, 4.0]])


def steps(ratios: Array) -> Array:
    """Return speedups in which neighbouring types have these ratios ``(n, k − 1)``."""
    first = np.ones((len(ratios), 1))
    return np.asarray(np.cumprod(np.hstack([first, ratios]), axis=1), float)


def context() -> Context:
    return Context(np.random.default_rng(0), ref.oracle)


@pytest.mark.parametrize("r", [10, 10**3, 10**6])
def test_envy_free_shares_can_be_any_number_of_times_below_the_optimum(r: int) -> None:
    """The optimum exceeds envy-free shares by a factor that grows with r, as ``oef.rounding`` explains.

    At r = 10**6, rounding leaves nothing of the fast type.
    """
    host = [ServerGroup(name=name, count=1, gpu_type=name, gpus=1) for name in ("slow", "fast")]
    kinds = {"quick": (1.0, {"slow": 1.0, "fast": float(r)}), "heavy": (float(r), {"slow": 1.0, "fast": 1.0})}
    instance = Instance(
        name="envy",
        cluster=Cluster(gpu_types=(GpuType(name="slow"), GpuType(name="fast")), servers=tuple(host)),
        tenants=tuple(
            Tenant(id=name, weight=weight, job_types=(JobType(name="job", rates=rates),))
            for name, (weight, rates) in kinds.items()
        ),
    )
    best, fair, rounded = compare_here(instance, ["oef.efficiency", "oef.cooperative", "oef.rounding"]).rows
    assert best.objective == pytest.approx(r + 1)
    assert fair.objective == pytest.approx(2 + 2 * (r - 1) / (r + 1))
    assert rounded.verified
    if r == 10**6:
        assert (rounded.objective, rounded.ratio) == (pytest.approx(2), pytest.approx((r + 1) / 2))


# --- Gandiva_fair ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "prices", "published", "efficiencies"),
    [
        (2.0, [3, 2.5], [[1, 0.09], [0, 0.47], [0, 0.44]], [1.18, 1.41, 1.76]),
        (2.8, [3, 2.9], [[1, 0.11], [0, 0.45], [0, 0.44]], [1.22, 1.35, 1.76]),
    ],
)
def test_gandiva_fair_trades_as_published(
    first: float, prices: list[float], published: list[list[float]], efficiencies: list[float]
) -> None:
    """Trades, shares and efficiencies are those published for eq. (1) and for the misreport after it.

    The paper computes E from the rounded X, hence the tolerance of 0.02.
    """
    view = matrix_view(np.array([[1, first], [1, 3], [1, 4]]), np.ones(2))
    X, trades = gandiva_fair.trade(view.speedups, view.equal_split)
    assert [t.price for t in trades] == pytest.approx(prices)
    assert [(t.buyer, t.seller) for t in trades] == [(2, 0), (1, 0)]
    assert np.abs(X - published).max() <= 0.005
    assert np.abs(efficiency(TRUTH, X) - efficiencies).max() <= 0.02


def test_gandiva_fair_total_is_below_gavel_s() -> None:
    """Gandiva_fair's total efficiency is below Gavel's; the paper ranks them the other way round (§2.4)."""
    view = matrix_view(TRUTH, np.ones(2))
    trading = efficiency(TRUTH, gandiva_fair.shares(view)).sum()
    assert trading == pytest.approx(196 / 45)
    assert np.sum(TRUTH * ref.gavel(TRUTH, np.ones(2), row_cap=True)) == pytest.approx(48 / 11)
    assert trading < 48 / 11


def test_the_registered_baseline_returns_the_shares() -> None:
    view = matrix_view(TRUTH, np.ones(2))
    decision = heuristics.get("oef.gandiva_fair").run(view, context())
    assert np.array_equal(decision.devices, gandiva_fair.shares(view))


@pytest.mark.parametrize(
    ("ratio", "bidders", "seller", "price"),
    [
        ([2, 3, 4], [2, 1, 0], 0, 3),  # the next highest of three
        ([2, 3, 4], [1, 0], 0, 2.5),  # the last pair: the mean
        ([2, 2, 4], [2, 0, 1], 0, 2),  # a rival who bids as little as the seller
        ([3, 2, 4], [2, 1], 0, 3.5),  # a rival below the seller does not count
    ],
)
def test_second_price(ratio: list[float], bidders: list[int], seller: int, price: float) -> None:
    assert gandiva_fair.second_price(np.array(ratio, float), bidders, seller) == price


def test_the_pair_with_the_greatest_gap_trades_first() -> None:
    W = np.array([[1, 2, 2.2], [1, 2.5, 6.0]])
    assert gandiva_fair.pairs(W) == [(0, 2), (1, 2), (0, 1)]
    assert gandiva_fair.pairs(np.ones((2, 3))) == [(0, 1), (0, 2), (1, 2)]


def test_equal_tenants_do_not_trade() -> None:
    view = matrix_view(np.array([[1, 2, 3.0], [1, 2, 3.0]]), np.array([3, 1, 2.0]))
    assert gandiva_fair.trade(view.speedups, view.equal_split)[1] == []


@st.composite
def markets(draw: st.DrawFn) -> Any:
    n, k = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    W = draw(hnp.arrays(np.int64, (n, k), elements=st.integers(50, 600))) / 100
    m = draw(hnp.arrays(np.int64, k, elements=st.integers(1, 9))).astype(float)
    weight = draw(hnp.arrays(np.int64, n, elements=st.integers(1, 5))).astype(float)
    return matrix_view(W, m, weight)


@given(markets())
@settings(max_examples=300)
def test_trading_hurts_nobody_and_loses_nothing(view: Any) -> None:
    X, trades = gandiva_fair.trade(view.speedups, view.equal_split)
    start, end = efficiency(view.speedups, view.equal_split), efficiency(view.speedups, X)
    assert np.all(end >= start * (1 - 1e-9))
    assert X.sum(axis=0) == pytest.approx(view.capacity)
    assert X.min() >= 0
    for t in trades:
        ratio = view.speedups[:, t.fast_type] / view.speedups[:, t.slow_type]
        assert ratio[t.seller] <= t.price <= ratio[t.buyer]
    assert gandiva_fair.trade(view.speedups, X)[1] == []


# --- rounding --------------------------------------------------------------------------------------------

RULES: tuple[Rule, ...] = ("largest_remainder", "tijdeman")


def run(ideal: Array, capacity: Any, rule: Rule, rounds: int, demand: Any = 1) -> tuple[Ints, Array]:
    """Run the placer for some rounds; return the devices ``(rounds, v, k)`` and the deviations after each round."""
    placer = Placer(len(ideal), np.asarray(capacity, float), rule)
    smallest = np.broadcast_to(np.asarray(demand), len(ideal)).astype(np.int64)
    real = np.stack([placer.place(ideal, smallest) for _ in range(rounds)])
    deviation = ideal * np.arange(1, rounds + 1)[:, None, None] - real.cumsum(axis=0)
    assert placer.deviation == pytest.approx(deviation[-1], abs=rounds / UNIT)
    return real, deviation


@st.composite
def shares(draw: st.DrawFn) -> tuple[Array, Ints]:
    """Draw shares of up to 12 tenants in up to 3 types, which use all devices or leave some idle."""
    n, k = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    capacity = draw(hnp.arrays(np.int64, k, elements=st.integers(1, 9)))
    part = draw(hnp.arrays(np.int64, (n, k), elements=st.integers(0, 40)))
    idle = draw(hnp.arrays(np.int64, k, elements=st.integers(0, 40)))
    return part / np.maximum(part.sum(axis=0) + idle, 1) * capacity, capacity


@given(shares())
@settings(max_examples=examples(60))
def test_tijdeman_stays_within_one_device(case: tuple[Array, Ints]) -> None:
    ideal, capacity = case
    real, deviation = run(ideal, capacity, "tijdeman", 60)
    assert np.abs(deviation).max() < 1
    assert np.all(real.sum(axis=1) <= capacity)
    assert real.min() >= 0


@given(st.lists(st.integers(1, 60), min_size=2, max_size=40), st.integers(1, 3))
@settings(max_examples=60)
def test_tijdeman_stays_within_one_device_for_many_tenants(parts: list[int], devices: int) -> None:
    ideal = np.array(parts)[:, None] / sum(parts) * devices
    _, deviation = run(ideal, [devices], "tijdeman", 100)
    assert np.abs(deviation).max() < 1


def test_largest_remainder_does_not_stay_within_one_device_and_tijdeman_does() -> None:
    ideal = np.array([[39], [55], [1], [9], [7], [1], [1], [7]]) / 120
    assert np.abs(run(ideal, [1], "largest_remainder", 120)[1]).max() == pytest.approx(1.1)
    assert np.abs(run(ideal, [1], "tijdeman", 120)[1]).max() < 1


@given(shares(), st.sampled_from(RULES), st.data())
@settings(max_examples=examples(60))
def test_smallest_jobs_get_all_or_nothing(case: tuple[Array, Ints], rule: Rule, data: st.DataObject) -> None:
    """A tenant gets no devices of a type or enough for its smallest job; debts stay below twice the largest batch."""
    ideal, capacity = case
    demand = data.draw(hnp.arrays(np.int64, len(ideal), elements=st.sampled_from([1, 1, 2, 4, 8])))
    real, deviation = run(ideal, capacity, rule, 60, demand)
    batch = np.minimum(demand[:, None], capacity)
    largest = np.where(ideal > 0, batch, 1).max(axis=0)
    assert np.all((real == 0) | (real >= batch))
    assert np.all(real.sum(axis=1) <= capacity)
    assert np.all(np.abs(deviation) < 2 * largest)


@pytest.mark.parametrize("rule", RULES)
def test_a_small_share_accumulates_until_the_smallest_job_fits(rule: Rule) -> None:
    ideal = np.array([[1.0], [3.0]])
    real, deviation = run(ideal, [4], rule, 40, [4, 1])
    assert set(real[:, 0, 0].tolist()) == {0, 4}
    assert real[:, 0, 0].sum() == 40
    assert np.abs(deviation).max() <= 3


def test_the_paper_s_rule_breaks_capacity() -> None:
    """The paper's rule gives two tenants with shares of ½ both no device and both one device in turn.

    Deviations stay within half a device.
    """
    ideal = np.array([[0.5], [0.5]])
    real, _ = run(ideal, [1], "independent", 6)
    assert real[:, :, 0].tolist() == [[0, 0], [1, 1]] * 3
    assert quality(ideal, real, np.ones(1)) == Quality(largest_deviation=0.5, violations=3)
    for rule in RULES:
        assert quality(ideal, run(ideal, [1], rule, 6)[0], np.ones(1)).violations == 0


@given(shares())
@settings(max_examples=60)
def test_the_paper_s_rule_is_within_half_a_device(case: tuple[Array, Ints]) -> None:
    ideal, capacity = case
    assert np.abs(run(ideal, capacity, "independent", 40)[1]).max() <= 0.5 + 1e-6


def test_the_paper_s_rule_is_made_to_fit_by_largest_remainder() -> None:
    ideal = np.array([[0.5], [0.5]])
    real, _ = run(ideal, [1], "round", 6)
    assert real[:, :, 0].tolist() == [[0, 0], [1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]


@given(shares(), st.data())
@settings(max_examples=examples(40))
def test_the_paper_s_rule_made_to_fit_owes_nobody_more_and_more(case: tuple[Array, Ints], data: st.DataObject) -> None:
    ideal, capacity = case
    demand = data.draw(hnp.arrays(np.int64, len(ideal), elements=st.sampled_from([1, 1, 2, 4, 8])))
    real, deviation = run(ideal, capacity, "round", 200, demand)
    batch = np.minimum(demand[:, None], capacity)
    assert np.all((real == 0) | (real >= batch))
    assert np.all(real.sum(axis=1) <= capacity)
    assert np.abs(deviation).max() <= batch.sum(axis=0).max() + 1


@pytest.mark.parametrize("rule", RULES)
def test_whole_shares_are_given_every_round(rule: Rule) -> None:
    ideal = np.array([[2.0, 0.0], [1.0, 3.0], [1.0, 1.0]])
    real, _ = run(ideal, [4, 4], rule, 5)
    assert np.array_equal(real, np.broadcast_to(ideal, real.shape))


@pytest.mark.parametrize("rule", RULES)
def test_debts_survive_a_change_of_shares_and_those_who_leave_are_forgotten(rule: Rule) -> None:
    placer = Placer(3, np.array([2.0]), rule)
    one = np.ones(3, np.int64)
    for _ in range(4):
        placer.place(np.full((3, 1), 2 / 3), one)
    owed = placer.deviation[:, 0]
    assert owed.sum() == pytest.approx(0, abs=1e-6)
    placer.forget(np.array([True, False, False]))
    assert placer.deviation[:, 0] == pytest.approx([0, owed[1], owed[2]])
    for _ in range(20):
        real = placer.place(np.array([[0.0], [1.2], [0.8]]), one)
        assert real.sum() <= 2
        assert real[0, 0] == 0
    assert np.abs(placer.deviation).max() < 2


@pytest.mark.parametrize("rule", RULES)
def test_those_who_leave_again_and_again_do_not_shift_the_others(rule: Rule) -> None:
    """A tenant that leaves whenever it is owed something does not change the debts to the others much."""
    placer = Placer(3, np.array([1.0]), rule)
    one = np.ones(3, np.int64)
    for _ in range(60):
        placer.place(np.array([[0.45], [0.35], [0.2]]), one)
        placer.forget(np.array([False, False, placer.deviation[2, 0] > 0]))
        assert np.abs(placer.deviation[:2]).max() < 2


def test_a_solver_s_tolerance_passes_and_more_does_not() -> None:
    placer = Placer(2, np.array([1.0]), "tijdeman")
    one = np.ones(2, np.int64)
    for _ in range(10):
        assert placer.place(np.array([[0.5 + 4e-7], [0.5]]), one).sum() == 1
    with pytest.raises(UsageError, match=r"shares of type 0 sum to 1\.1: at most 1"):
        placer.place(np.array([[0.6], [0.5]]), one)
    with pytest.raises(UsageError, match="none negative"):
        placer.place(np.array([[-0.5], [0.5]]), one)


def test_unknown_rules_are_named() -> None:
    with pytest.raises(UsageError, match="unknown rounding rule 'floor'; known: round, largest_remainder, tijdeman"):
        Placer(1, np.ones(1), "floor")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["oef.rounding", "oef.rounding_tijdeman"])
def test_rounded_shares_are_the_cooperative_ones_on_average(name: str) -> None:
    rng = np.random.default_rng(5)
    W = steps(rng.uniform(1, 2, (7, 2)))
    view = matrix_view(W, np.array([8.0, 8.0, 8.0]))
    decision = heuristics.get(name).run(view, context())
    ideal = ref.cooperative(view.speedups, view.capacity)
    assert decision.rounds.shape == (ROUNDS, 7, 3)
    assert decision.devices == pytest.approx(decision.rounds.mean(axis=0))
    assert np.abs(decision.devices - ideal).max() <= 2 / ROUNDS
    assert np.all(decision.rounds.sum(axis=1) <= view.capacity)


def test_rounding_is_deterministic() -> None:
    view = matrix_view(TRUTH, np.array([2.0, 3.0]))
    ideal = ref.noncooperative(view.speedups, view.capacity)
    once, again = (round_shares(view, ideal, "tijdeman", 50) for _ in range(2))
    assert np.array_equal(np.array(once.rounds), np.array(again.rounds))

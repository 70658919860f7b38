"""The checkers of fairness properties, and what they find about OEF's mechanisms, computed by independent LPs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import oef_reference as ref
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from schedgap import models
from schedgap.harness.ask import fairness
from schedgap.harness.ask.mechanisms import SLACK, in_double_precision, mechanism, of_program
from schedgap.heuristics.oef import gandiva_fair
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import OefView, efficiency, matrix_view

COOPERATIVE = ref.mechanism("oef.cooperative")
NONCOOPERATIVE = ref.mechanism("oef.noncooperative")


def shape(most_tenants: int = 4, most_types: int = 4) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(2, most_tenants), st.integers(2, most_types))


def hundredths(low: float, high: float, size: tuple[int, ...]) -> st.SearchStrategy[Array]:
    grid = hnp.arrays(np.int64, size, elements=st.integers(round(100 * low), round(100 * high)))
    return grid.map(lambda numbers: numbers / 100)


def steps(ratios: Array) -> Array:
    """Return speedups in which neighbouring types have these ratios ``(n, k − 1)``."""
    first = np.ones((len(ratios), 1))
    return np.asarray(np.cumprod(np.hstack([first, ratios]), axis=1), float)


@st.composite
def views(draw: st.DrawFn, ordered: bool = False, weighted: bool = False, most_tenants: int = 4) -> OefView:
    """Draw a small instance; if `ordered`, the ratios of neighbouring types rank all tenants alike and differ."""
    n, k = draw(shape(most_tenants))
    if ordered:
        ratios = 1.01 + np.cumsum(draw(hundredths(0.05, 1, (n, k - 1))), axis=0)
        W = steps(ratios)
    else:
        W = np.hstack([np.ones((n, 1)), draw(hundredths(0.5, 6, (n, k - 1)))])
    m = draw(hnp.arrays(np.int64, k, elements=st.integers(1, 4)))
    weight = draw(hnp.arrays(np.int64, n, elements=st.integers(1, 3))) if weighted else np.ones(n)
    return matrix_view(W, m.astype(float), weight.astype(float))


def view_of(*rows: tuple[float, ...], m: tuple[float, ...] | None = None) -> OefView:
    return matrix_view(np.array(rows), np.ones(len(rows[0])) if m is None else np.array(m, float))


EQ1 = view_of((1, 2), (1, 3), (1, 4))


# --- the checkers themselves -----------------------------------------------------------------------------


def test_envy_of_gandiva_fair_is_the_one_the_paper_names() -> None:
    finding = fairness.envy_free(EQ1, gandiva_fair.shares(EQ1))
    assert not finding
    assert list(finding.witness) == [("u3", "u2")]
    assert finding.witness["u3", "u2"] == pytest.approx(4 * (7 / 15 - 4 / 9))
    assert finding.text == "u3 envies u2: 1.86667 is more than its 1.77778"


def test_gavel_leaves_envy_and_gains_from_trade() -> None:
    X = ref.gavel(EQ1.speedups, EQ1.capacity, row_cap=True)
    assert ("u3", "u2") in fairness.envy_free(EQ1, X).witness
    assert fairness.pareto_efficient(EQ1, X).margin < -0.04


def test_envy_counts_per_weight() -> None:
    view = matrix_view(np.array([[1, 2.0], [1, 2.0]]), np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    assert fairness.envy_free(view, view.equal_split)
    turned = fairness.envy_free(view, view.equal_split[::-1])
    assert list(turned.witness) == [("u2", "u1")]


def test_sharing_incentive_names_who_loses_what() -> None:
    view = view_of((1, 2), (1, 5))
    finding = fairness.sharing_incentive(view, ref.noncooperative(view.speedups, view.capacity))
    assert not finding
    assert finding.witness == pytest.approx({"u2": 3 - 15 / 7})
    assert finding.margin == pytest.approx(15 / 21 - 1)


def test_optimal_efficiency_against_no_rules_and_against_a_model() -> None:
    assert fairness.optimal_efficiency(EQ1, np.array([[1, 0], [0, 0], [0, 1.0]]))
    cooperative = COOPERATIVE(EQ1).devices
    assert fairness.optimal_efficiency(EQ1, cooperative).witness == 5
    assert not fairness.optimal_efficiency(EQ1, cooperative)
    assert fairness.optimal_efficiency(EQ1, cooperative, best=4.5)


def test_support_and_gaps_of_a_made_up_allocation() -> None:
    view = view_of((1, 2, 6), (1, 4, 8))
    X = np.array([[1, 0, 0.5], [0, 1e-9, 0.5]])
    assert fairness.adjacent(view, X).witness == {"u1": ("GPU1", "GPU3")}
    assert fairness.support_size(view, X).witness == 3
    assert fairness.support_size(view, X).margin == 1


def test_equal_efficiency_is_per_weight() -> None:
    view = matrix_view(np.array([[1, 2.0], [1, 5.0]]), np.ones(2), np.array([1.0, 2.0]))
    X = NONCOOPERATIVE(view).devices
    assert fairness.equal_efficiency(view, X)
    assert fairness.equal_efficiency(view, X).witness == pytest.approx([5 / 3, 5 / 3])
    assert not fairness.equal_efficiency(view, view.equal_split)


@given(views())
@settings(max_examples=25)
def test_pareto_gain_agrees_with_the_independent_program(view: OefView) -> None:
    for X in (view.equal_split, COOPERATIVE(view).devices):
        finding = fairness.pareto_efficient(view, X)
        assert -finding.margin == pytest.approx(ref.pareto_gain(view.speedups, view.capacity, X)[0], abs=1e-6)
        better = finding.witness
        assert np.all(better.sum(axis=0) <= view.capacity + 1e-6)
        assert np.all(efficiency(view.speedups, better) >= efficiency(view.speedups, X) - 1e-6)


def test_truth_and_reports_are_kept_apart() -> None:
    view = replace(view_of((1, 2.8), (1, 3), (1, 4)), true_speedups=EQ1.speedups)
    X = gandiva_fair.shares(view)
    assert fairness.sharing_incentive(view, X)
    assert fairness.truthful(view).speedups is view.true_speedups
    assert fairness.envy_free(fairness.truthful(view), X).witness["u3", "u2"] < 0.02


def test_the_search_is_reproducible_and_keeps_to_its_direction() -> None:
    view = view_of((1, 2, 3), (1, 5, 4))
    directions: tuple[tuple[fairness.Direction, int], ...] = (("over", 1), ("under", -1))
    for direction, sign in directions:
        once = fairness.strategy_proof("oef.noncooperative", view, direction=direction, trials=8, steps=4).witness
        again = fairness.strategy_proof("oef.noncooperative", view, direction=direction, trials=8, steps=4).witness
        assert np.array_equal(once.report, again.report)
        assert np.all(sign * (once.report - view.true_speedups[once.tenant]) >= 0)
        assert once.report[0] == 1
        assert once.report.min() >= 1


def test_gandiva_fair_is_not_strategy_proof() -> None:
    """A tenant gains by the paper's misreport, 2.8 for 2, and the search finds a report that is at least as good."""

    lied = replace(view_of((1, 2.8), (1, 3), (1, 4)), true_speedups=EQ1.speedups)
    gained = efficiency(EQ1.speedups, gandiva_fair.shares(lied))[0]
    finding = fairness.strategy_proof("oef.gandiva_fair", EQ1, direction="over")
    assert not finding
    assert finding.witness.gained >= gained - 1e-3 > finding.witness.honest


def test_a_gain_by_the_choice_of_the_optimum_is_none() -> None:
    """A report after which a tenant may have more or less, as the solver chooses, does not count as a gain.

    Tenant 1 reports that all types are alike: it then has 3 or 6, and 3.2 with the truth.
    """
    truth = view_of((1, 2, 4), (1, 1, 1), m=(1, 2, 1))
    lie = replace(truth, speedups=np.ones((2, 3)))
    shared, worth = mechanism("oef.noncooperative"), fairness.own_worth(truth, 0)
    assert shared(truth).span(worth) == (Fraction(16, 5), Fraction(16, 5))
    assert shared(lie).span(worth) == (3, 6)


def test_witnesses_against_strategy_proofness_hold_in_every_optimum() -> None:
    shared, view = mechanism("oef.noncooperative"), view_of((1, 2, 4), (1, 1, 1), m=(1, 2, 1))
    found = fairness.strategy_proof(shared, view, direction="under", trials=6, steps=4)
    lie = replace(view, speedups=view.speedups.copy())
    lie.speedups[found.witness.tenant] = found.witness.report
    worth = fairness.own_worth(view, found.witness.tenant)
    assert found.witness.gained == float(shared(lie).span(worth)[0])
    assert found.witness.honest == float(shared(view).span(worth)[1])


SEVERAL = replace(
    view_of((1, 1.1), (1, 10), (1, 10)), owner=np.array([0, 0, 1]), weight=np.array([0.5, 0.5, 1]), tenants=("u1", "u2")
)
"""A view in which the first tenant has two job types."""


def test_tenants_of_several_job_types_gain_by_over_reports() -> None:
    """Theorem 5.4 fails for tenants of several job types: an over-report moves GPU2 to the tenant's other job type.

    It reports ⟨1, 9⟩ for ⟨1, 1.1⟩.
    """
    shared, worth = mechanism("oef.noncooperative"), fairness.own_worth(SEVERAL, 0)
    speedups = SEVERAL.speedups.copy()
    speedups[0, 1] = 9
    assert shared(SEVERAL).span(worth)[1] == Fraction(60, 19)
    assert float(shared(replace(SEVERAL, speedups=speedups)).span(worth)[0]) == pytest.approx(3.910810811)


@given(views(weighted=True), st.sampled_from(["oef.cooperative", "oef.noncooperative"]))
@settings(max_examples=15)
def test_optima_in_double_precision_are_those_in_fractions(view: OefView, method: str) -> None:
    worth, spec = fairness.own_worth(view, 0), models.get(method)
    exact, near = of_program(spec, view), in_double_precision(spec, view)
    size = float(abs(worth).sum() * view.capacity.max())
    assert list(map(float, near.span(worth))) == pytest.approx(list(map(float, exact.span(worth))), abs=1e-6 * size)
    assert (exact.slack, near.slack) == (0, SLACK)


def test_numbers_that_are_no_fractions_are_solved_in_double_precision() -> None:
    view = view_of((1, np.pi), (1, np.e))
    assert mechanism("oef.noncooperative")(view).slack == SLACK
    with pytest.raises(ValueError, match="is not a fraction"):
        mechanism("oef.gavel")(view)


def test_whole_tenants_of_several_job_types_envy_and_lose_by_sharing() -> None:
    X = COOPERATIVE(SEVERAL).devices
    assert fairness.envy_free(SEVERAL, X)
    assert fairness.sharing_incentive(SEVERAL, X)
    whole, bundles = fairness.whole_tenants(SEVERAL, X)
    assert fairness.envy_free(whole, bundles).witness["u1", "u2"] == pytest.approx(20 / 3 - 13 / 3, abs=1)
    assert not fairness.sharing_incentive(whole, bundles)
    assert whole.speedups.tolist() == [[1, 10], [1, 10]]


def test_one_job_type_each_makes_whole_tenants_of_the_rows() -> None:
    whole, bundles = fairness.whole_tenants(EQ1, EQ1.equal_split)
    assert np.array_equal(bundles, EQ1.equal_split)
    assert np.array_equal(whole.speedups, EQ1.speedups)
    assert whole.labels == EQ1.labels


def test_two_types_suffice_for_cooperative_shares_not_to_be_pareto_efficient() -> None:
    view = view_of((1, 1.3), (1, 2.5), (1, 2.6), (1, 3.9), m=(2, 2))
    assert fairness.pareto_efficient(view, COOPERATIVE(view).devices).margin == pytest.approx(-0.024)


def test_trading_pairs_of_three_types_is_not_pareto_efficient() -> None:
    """Gandiva_fair is not Pareto efficient, although §2.4 says so: no tenants trade three types in a circle."""
    view = view_of((1, 1.5, 6), (1, 2, 4), (1, 3, 10.5), m=(2, 2, 1))
    assert fairness.pareto_efficient(view, gandiva_fair.shares(view)).margin == pytest.approx(-0.5)


# --- what theory really holds ----------------------------------------------------------------------------


@st.composite
def over_reports(draw: st.DrawFn) -> tuple[OefView, Array]:
    """Draw an instance, and a report of its first tenant in which no speedup is below the true one."""
    view = draw(views())
    factors = draw(hundredths(1, 4, (view.capacity.size,)))
    report = view.speedups[0] * factors
    report[0] = 1.0
    return view, report


@given(over_reports())
@settings(max_examples=examples(150))
def test_no_over_report_gains_without_cooperation(case: tuple[OefView, Array]) -> None:
    """Theorem 5.4: under non-cooperative shares an over-report gains nothing, whatever the order of speedups."""
    view, report = case
    W = view.speedups.copy()
    W[0] = report
    honest = efficiency(view.speedups, ref.noncooperative(view.speedups, view.capacity))[0]
    lied = efficiency(view.speedups, ref.noncooperative(W, view.capacity))[0]
    assert lied <= honest * (1 + 1e-7)


def test_searched_over_reports_do_not_gain_either() -> None:
    for view in (EQ1, view_of((1, 2, 6), (1, 4, 8)), view_of((1, 3, 2), (1, 0.5, 4), (1, 2, 2))):
        assert fairness.strategy_proof("oef.noncooperative", view, direction="over", trials=20, steps=20)


def test_an_under_report_gains_without_cooperation() -> None:
    truth, lie = view_of((1, 2), (1, 5)), view_of((1, 2), (1, 3))
    honest = efficiency(truth.speedups, NONCOOPERATIVE(truth).devices)
    lied = efficiency(truth.speedups, NONCOOPERATIVE(lie).devices)
    assert honest == pytest.approx([15 / 7, 15 / 7])
    assert lied[1] == pytest.approx(3)
    finding = fairness.strategy_proof("oef.noncooperative", truth, direction="under", trials=20, steps=20)
    assert not finding
    assert finding.witness.tenant == 1
    assert finding.witness.gained > 3


def test_under_reports_can_triple_a_tenants_efficiency() -> None:
    """A tenant that denies to be faster on the faster devices, of which there are more, gets most of them."""
    truth = view_of((1, 1.57), (1, 4.11), (1, 3.12), (1, 0.92), m=(1, 2))
    lie = view_of((1, 1.57), (1, 1.03), (1, 3.12), (1, 0.92), m=(1, 2))
    honest = efficiency(truth.speedups, NONCOOPERATIVE(truth).devices)[1]
    assert efficiency(truth.speedups, NONCOOPERATIVE(lie).devices)[1] > 3 * honest


def test_under_reports_gain_almost_everywhere() -> None:
    rng = np.random.default_rng(11)
    gains = 0
    for _ in range(20):
        W = steps(rng.uniform(1, 3, (3, 2)))
        view = matrix_view(np.round(W, 3), np.ones(3))
        finding = fairness.strategy_proof("oef.noncooperative", view, direction="under", trials=6, steps=4)
        gains += not finding
    assert gains >= 16


def test_cooperative_shares_invite_over_reports() -> None:
    """Theorem 3.2: in eq. (6), tenant 1 gains by reporting 4 for 2."""
    truth, lie = view_of((1, 2), (1, 5)), view_of((1, 4), (1, 5))
    assert efficiency(truth.speedups, COOPERATIVE(truth).devices) == pytest.approx([1.5, 3.75])
    assert efficiency(truth.speedups, COOPERATIVE(lie).devices)[0] == pytest.approx(1.75)
    assert not fairness.strategy_proof("oef.cooperative", truth, direction="over", trials=10, steps=5)


@given(views(weighted=True))
@settings(max_examples=100)
def test_cooperative_shares_are_envy_free_and_give_sharing_incentive(view: OefView) -> None:
    X = COOPERATIVE(view).devices
    assert fairness.envy_free(view, X), fairness.envy_free(view, X).text
    assert fairness.sharing_incentive(view, X), fairness.sharing_incentive(view, X).text


@given(views(weighted=True))
@settings(max_examples=60)
def test_noncooperative_shares_are_equal_and_pareto_efficient(view: OefView) -> None:
    X = NONCOOPERATIVE(view).devices
    assert fairness.equal_efficiency(view, X)
    assert ref.pareto_gain(view.speedups, view.capacity, X)[0] <= 1e-6


def test_cooperative_shares_are_not_pareto_efficient() -> None:
    """Theorem 5.3 fails: other shares leave every tenant at least as well off and have 1/15 more in total.

    The support of the cooperative shares is too large as well.
    """
    view = view_of((1, 1.5, 2), (1, 2, 5), (1, 3, 8))
    X = COOPERATIVE(view).devices
    finding = fairness.pareto_efficient(view, X)
    assert not finding
    assert finding.margin == pytest.approx(-1 / 15)
    before, after = efficiency(view.speedups, X), efficiency(view.speedups, finding.witness)
    assert np.all(after >= before - 1e-9)
    assert not fairness.envy_free(view, finding.witness)
    assert fairness.support_size(view, X).witness == 6
    assert fairness.support_size(view, X).margin == -1


def test_noncooperative_shares_need_not_give_sharing_incentive_nor_freedom_from_envy() -> None:
    view = view_of((1, 2), (1, 5))
    X = NONCOOPERATIVE(view).devices
    assert not fairness.sharing_incentive(view, X)
    assert not fairness.envy_free(view, X)


@given(views())
@settings(max_examples=100)
def test_noncooperative_support_is_small(view: OefView) -> None:
    """A vertex of (9) has at most n + k − 1 positive shares, as it has n + k rows and the level is basic too."""
    assert fairness.support_size(view, NONCOOPERATIVE(view).devices)


def test_noncooperative_shares_can_skip_a_type() -> None:
    """Theorem 5.2 fails if ratios of neighbouring types rank tenants differently (2, 3 and 4, 2): u1 skips a type."""
    view = view_of((1, 2, 6), (1, 4, 8))
    X = NONCOOPERATIVE(view).devices
    assert fairness.adjacent(view, X).witness == {"u1": ("GPU1", "GPU3")}
    assert pytest.approx(np.array([[1, 0, 11 / 14], [0, 1, 3 / 14]])) == X


@given(views(ordered=True))
@settings(max_examples=150)
def test_ordered_ratios_make_noncooperative_types_adjacent(view: OefView) -> None:
    assert fairness.adjacent(view, NONCOOPERATIVE(view).devices)


def test_cooperative_shares_can_skip_a_type_even_then() -> None:
    rng = np.random.default_rng(0)
    skipped = 0
    for _ in range(120):
        ratios = np.sort(rng.uniform(1, 3, (4, 3)), axis=0)
        view = matrix_view(steps(ratios), rng.integers(1, 4, 4).astype(float))
        skipped += not fairness.adjacent(view, COOPERATIVE(view).devices)
    assert 0 < skipped < 20


@given(views(weighted=True, most_tenants=3))
@settings(max_examples=40)
def test_weights_in_the_rows_equal_replicated_tenants(view: OefView) -> None:
    W, m, weight = view.speedups, view.capacity, view.weight
    copies = weight.astype(np.int64)
    for solve in (ref.noncooperative, ref.cooperative):
        in_rows = float(np.sum(W * solve(W, m, weight)))
        assert in_rows == pytest.approx(float(np.sum(W * ref.replicated(solve, W, m, copies))), rel=1e-6)

"""Steps of primal–dual algorithms, what their own prices prove, and the command that shows both."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
from charts import records
from conftest import Command
from hadar_reference import best, instances_of
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import row

import schedgap as sg
from schedgap import certificates, models
from schedgap.harness.ask.prices import PricesFound
from schedgap.harness.check import judge
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.page.prices import blocks, picture
from schedgap.harness.show.plots.common import by_setting
from schedgap.harness.show.table import Line
from schedgap.harness.studies.compare.methods import select
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.advice import plateau
from schedgap.heuristics.duals import Purchase, follow
from schedgap.heuristics.hadar.duality import dual_objective, loads
from schedgap.heuristics.hadar.duality import steps as hadar_steps
from schedgap.heuristics.hadar.prices import prices as extremes_of
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.random_instances import admission as random_admission
from schedgap.instances.random_instances import zhou as random_zhou
from schedgap.instances.random_instances.hadar import linear
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views.hadar import HadarSchedule
from schedgap.models.engine.solve import SolveOptions

PROOF = "hadar.online?mode=incremental&payoff=lifetime"
FIG1 = "paper/hadar-fig1"
TRUSTS_NOBODY = {
    "hadar.advised": "hadar.online?payoff=lifetime",
    "admission.advised": "admission.online",
    "zhou.ps.advised": "zhou.ps.amaxweight",
    "zhou.ra.advised": "zhou.ra.amaxweight",
}
"""Methods with advice, and what they do without trust."""

LIMITS = ((60.0, None), (9.0, 3))
"""Limits of a search, in seconds and nodes."""

POSTING = ("hadar.online", "admission.online", "zhou.ps.amaxweight", "zhou.ra.amaxweight")


@pytest.fixture(scope="module")
def fig1() -> PricesFound:
    return sg.prices(PROOF, FIG1)


def test_the_methods_that_post_prices_are_known() -> None:
    assert {spec.id for spec in HEURISTICS if spec.steps and not spec.settings} >= set(POSTING)
    with pytest.raises(UsageError, match=r"no steps are known of it, only of these: .*hadar\.online"):
        sg.prices("oef.rounding", "paper/oef-eq1")


def test_the_first_step_of_figure_1_is_computed_by_hand(fig1: PricesFound) -> None:
    """J1 takes two V100 and the K80 of empty servers: it pays U_min for each, and fills the servers."""
    view = PAPERS.get("hadar").view(fig1.instance)
    low, high = extremes_of(view).low, extremes_of(view).high
    step, decision = fig1.run.steps[0], HEURISTICS.get(PROOF).decide(fig1.instance)
    held = [decision.job == step.job, decision.server, decision.gpus]
    kind, full = view.servers.gpu_type[held[1][held[0]]], view.servers.gpus[held[1][held[0]]]
    gpus = held[2][held[0]]
    after = low[kind] * (high[kind] / low[kind]) ** (gpus / full)
    assert step.paid == pytest.approx(float(low[kind] @ gpus))
    assert step.rise == pytest.approx(float(full @ (after - low[kind])))
    assert step.needed == pytest.approx(max(full * (after - low[kind]) / (low[kind] * gpus)))
    assert fig1.run.start == pytest.approx(view.slots * float(low @ view.capacity))


def test_what_the_steps_of_figure_1_say(fig1: PricesFound) -> None:
    assert [fig1.ids[step.job] for step in fig1.run.steps] == ["J1", "J2", "J3"]
    assert [fig1.ids[step.job] for step in fig1.broken] == ["J1", "J2", "J3"]
    assert [fig1.ids[step.job] for step in fig1.behind] == ["J3"]
    assert fig1.run.primal[-1] == pytest.approx(fig1.objective)
    assert fig1.own_bound is not None and fig1.best_bound is not None  # noqa: PT018
    assert fig1.objective <= fig1.best_bound * (1 + 1e-9) <= fig1.own_bound
    assert list(fig1.table["lemma_1"]) == [True, True, False]


@pytest.mark.parametrize("method", POSTING)
def test_the_certificate_is_the_algorithms_own(method: str) -> None:
    """Any reader derives its bound from the raw instance; it holds, and is no better than the best prices'."""
    found = sg.prices(method, FIG1 if method.startswith("hadar") else "paper/walkthrough")
    assert found.own is not None
    assert not found.reasons
    assert float(certificates.check(found.own, found.instance.plain, 1)) <= found.own["bound"]
    assert found.objective <= found.best_bound * (1 + 1e-9)  # type: ignore[operator]
    assert found.best_bound <= found.own_bound * (1 + 1e-9)  # type: ignore[operator]
    assert found.best_rows is not None
    assert found.best_rows.shape == found.run.rows.shape


@given(instances_of())
@settings(max_examples=25)
def test_on_small_instances_the_own_bound_holds(instance: Instance) -> None:
    """Exhaustive search finds nothing better; the steps add up to the decision and its final prices."""
    view = PAPERS.get("hadar").view(instance)
    most = best(instance, complete=False)
    assert most is not None
    for method in (PROOF, "hadar.online"):
        found = sg.prices(method, instance, best=False)
        assert found.own_bound is not None
        assert found.own_bound >= most * (1 - 1e-9)
        decision = HEURISTICS.get(method).decide(instance)
        run = hadar_steps(view, decision)
        assert found.own_bound <= dual_objective(view, loads(view, decision), extremes_of(view)) * (1 + 1e-6) + 1e-9
        final = run.start + sum(step.rise for step in run.steps)
        assert final == pytest.approx(float((view.capacity @ run.rows).sum()))
        assert sum(step.primal for step in run.steps) == pytest.approx(found.objective)


def random(draw: Any, seed: int) -> Instance:
    return draw(np.random.default_rng(seed))  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("draw", "method"),
    [(random_zhou.draw, "zhou.ps.amaxweight"), (random_zhou.draw, "zhou.ra.amaxweight")],
)
def test_steps_of_zhou_add_up(draw: Any, method: str, seed: int) -> None:
    found = sg.prices(method, random(draw, seed))
    assert found.own_bound is not None and found.best_bound is not None  # noqa: PT018
    assert found.objective <= found.best_bound * (1 + 1e-9) <= found.own_bound * (1 + 1e-6)
    assert found.run.primal[-1] == pytest.approx(found.objective)
    assert found.run.start == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_admission_are_those_of_the_algorithm(seed: int) -> None:
    instance = random(random_admission.draw, seed)
    found = sg.prices("admission.online", instance)
    view = PAPERS.get("admission").view(instance)
    taken = [step for step in sg.heuristics.admission.steps(view) if step.chosen]
    assert [step.job for step in found.run.steps] == [step.job for step in taken]
    for mine, step in zip(found.run.steps, taken, strict=True):
        assert step.chosen
        assert (mine.worth, mine.paid) == pytest.approx((step.chosen.utility, step.chosen.run.cost))
    if taken:
        assert found.run.rows[0] == pytest.approx(taken[-1].after)


def one_cell(low: float, high: float, gpus: int, before: int, amount: int) -> float:
    """Return the α that a step on one server needs, at the prices (5)."""

    def price(cells: Any, used: Any) -> Any:
        return low * (high / low) ** (used / gpus)

    bought = [Purchase(0, 1.0, np.array([0]), np.array([float(each)])) for each in (before, amount)]
    return follow(bought, np.array([float(gpus)]), price)[0][1].needed


@given(st.floats(1.1, 1e6), st.integers(1, 16), st.data())
def test_no_integer_step_of_hadar_meets_definition_1(ratio: float, gpus: int, data: st.DataObject) -> None:
    amount = data.draw(st.integers(1, gpus))
    before = data.draw(st.integers(0, gpus - amount))
    needed = one_cell(1.0, ratio, gpus, before, amount)
    assert needed == pytest.approx(gpus * (ratio ** (amount / gpus) - 1) / amount)
    assert needed > math.log(ratio)


@given(st.floats(2.0, 1e9), st.floats(0.0, 1.0), st.floats(1e-3, 1.0))
def test_small_steps_of_zhou_meet_definition_1(base: float, used: float, part: float) -> None:
    """Theorem 3 asks for steps of at most 1/log λ of a capacity; they need no more than log λ."""
    amount = min(part / math.log2(base), 1.0)
    before = used * (1.0 - amount)

    def price(cells: Any, used: Any) -> Any:
        return np.expm1(used * math.log(base))

    bought = [Purchase(0, 1.0, np.array([0]), np.array([each])) for each in (before, amount)]
    assert follow(bought, np.ones(1), price, unit=1.0)[0][1].needed <= math.log2(base) * (1 + 1e-9)


@given(instances_of())
@settings(max_examples=40)
def test_lemma_2(instance: Instance) -> None:
    """Where Definition 1 holds for a step with a payoff, the inequality of Lemma 1 holds, too."""
    view = PAPERS.get("hadar").view(instance)
    run = hadar_steps(view, HEURISTICS.get(PROOF).decide(instance))
    for step in run.steps:
        needed = max(step.needed, 1.0)
        if step.payoff >= 0:
            assert step.dual <= needed * step.primal * (1 + 1e-9)


def test_the_figure_shows_both_objectives_and_both_bounds(fig1: PricesFound) -> None:
    (drawing,) = figures(fig1)
    alt.Chart.from_dict(drawing.spec, validate=True)
    assert drawing.kind == "prices.steps"
    assert "n = 3 steps of 3 jobs; Definition 1 fails in 3." in drawing.caption
    dual = records(drawing, series="D, as the proof counts it")
    assert [each["value"] for each in dual] == pytest.approx([fig1.run.start, *fig1.run.dual], rel=1e-5)
    assert {each["value"] for each in records(drawing, series="bound of its own prices")} == {
        float(f"{fig1.own_bound:.6g}")
    }


def test_nothing_scheduled_is_told() -> None:
    view = PAPERS.get("hadar").view(sg.load(FIG1))
    decision = HEURISTICS.get(PROOF).decide(sg.load(FIG1))
    none = type(decision).of(np.zeros((0, 4), np.int64))
    run = hadar_steps(view, none)
    assert run.steps == ()
    found = PricesFound(PROOF, sg.load(FIG1), "hadar.utility", "utility", run, 0.0, None, None, {"own": "why"})
    text = [block.text for block in blocks(found) if isinstance(block, Line)]
    assert "No certificate from its own final prices: why." in text
    assert "fails in none of 0 steps" in text[2]
    assert picture(found) == []
    assert figures(found) == []


def test_the_command_fits_into_80_columns(command: Command, tmp_path: Path) -> None:
    """It prints the steps, and its files hold: the certificate is checked without the models."""
    svg = tmp_path / "steps.svg"
    files = ["--picture", svg, "--certificates", tmp_path]
    done = command("explain", PROOF, "--prices", "--instance", FIG1, *files, width=80)
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "Lemma 1's ΔP ≥ ΔD/α with α = 7.442 (Theorem 2) fails in 1 of 3 steps: J3." in " ".join(done.stdout.split())
    assert svg.read_text().startswith("<svg")
    (proof,) = (tmp_path / "certificates").iterdir()
    assert (tmp_path / "instances").is_dir()
    certificates.main([str(proof)])


def test_the_command_prints_data_and_refuses_what_it_cannot_do(command: Command) -> None:
    listed = json.loads(command("explain", PROOF, "--prices", "--instance", FIG1, "--format", "json").stdout)
    assert [each["job"] for each in listed] == ["J1", "J2", "J3"]
    for arguments, why in (
        (["oef.rounding", "--prices"], "no steps are known of it"),
        ([PROOF, "--picture", "a.svg"], "--prices"),
        ([PROOF, "--prices", "--drop", "no_envy"], "use one of them"),
    ):
        done = command("explain", *arguments)
        assert done.returncode == 2
        assert why in done.stderr


# forecast errors and predicted prices -------------------------------------------------------------


@given(st.floats(1e-3, 1.0), st.floats(1.1, 1e6), st.floats(1e-6, 1e9), st.floats(0.0, 0.999))
def test_predicted_prices_keep_what_the_proof_needs(low: float, spread: float, predicted: float, trust: float) -> None:
    """From low to high, never falling, and no steeper than Definition 2 with α/(1 − trust) allows."""
    share = np.linspace(0.0, 1.0, 401)
    high = low * spread
    prices = plateau(np.array(predicted), trust, share, share, np.array(low), np.array(high))
    assert prices[0] == pytest.approx(low)
    assert prices[-1] == pytest.approx(high)
    rises = np.diff(np.log(prices))
    assert rises.min() >= -1e-12
    assert rises.max() <= math.log(spread) / (1.0 - trust) / 400 * (1 + 1e-6) + 1e-12
    if trust == 0.0:
        assert prices == pytest.approx(low * spread**share)


def test_predicted_prices_are_followed_while_most_is_sold() -> None:
    share = np.linspace(0.0, 1.0, 11)
    prices = plateau(np.array(0.1), 0.8, share, share, np.array(0.01), np.array(1.0))
    assert prices[2:9] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("method", "reference"),
    [
        ("hadar.advised", FIG1),
        ("admission.advised", "paper/walkthrough"),
        ("zhou.ps.advised", "gen/20jobs?slot_s=3600&jobs=8"),
        ("zhou.ra.advised", "gen/20jobs?slot_s=3600&jobs=8"),
    ],
)
@pytest.mark.parametrize("settings", ["", "?trust=0", "?trust=1", "?trust=0.9&noise=1", "?noise=garbage"])
def test_algorithms_with_advice_keep_all_rules(method: str, reference: str, settings: str) -> None:
    instance, spec = sg.load(reference), HEURISTICS.get(method + settings)
    decision = spec.decide(instance, 0, models.oracle, models.shadow_prices)
    verdict = judge(instance, decision, spec.problem, spec.claims)
    assert not verdict.violations
    assert verdict.objective
    assert spec.problem == HEURISTICS.get(TRUSTS_NOBODY[method]).problem
    if settings == "?trust=0":
        plain = HEURISTICS.get(TRUSTS_NOBODY[method])
        again = judge(instance, plain.decide(instance), spec.problem).objective
        assert verdict.objective == pytest.approx(again)


def test_advice_may_come_from_another_draw() -> None:
    instance, spec = sg.load("gen/20jobs?slot_s=3600&jobs=6&seed=4"), HEURISTICS.get("hadar.advised?of=other")
    decision = spec.decide(instance, 0, models.oracle, models.shadow_prices)
    assert not judge(instance, decision, spec.problem).violations
    with pytest.raises(NotApplicableError, match="is not generated"):
        spec.decide(sg.load(FIG1), 0, models.oracle, models.shadow_prices)
    with pytest.raises(UsageError, match=r"models\.shadow_prices"):
        HEURISTICS.get("hadar.advised").decide(instance)


def test_advice_is_found_without_a_search() -> None:
    """Predicted prices are those before branching, so that time limits and busy machines do not change them."""
    view = PAPERS.get("hadar").view(sg.load("gen/20jobs?slot_s=3600&jobs=10"))
    asked = [models.shadow_prices("hadar.p2.columns", view, SolveOptions(time_limit_s=s, nodes=n)) for s, n in LIMITS]
    assert all((prices == asked[0]).all() for prices in asked)


@pytest.mark.parametrize("trust", [0.0, 0.5, 0.9, 1.0])
def test_zhou_states_a_ratio_with_advice_where_the_dual_shows_it(trust: float) -> None:
    """Where it is stated, the optimum is within it, whatever was predicted."""
    spec, told = HEURISTICS.get(f"zhou.ra.advised?trust={trust}&noise=garbage"), 0
    for seed in range(4):
        roomy = random_zhou.draw_roomy(np.random.default_rng(seed))
        decision = spec.decide(roomy, seed, models.oracle, models.shadow_prices)
        view = PAPERS.get("zhou").view(roomy)
        assert spec.shown is not None
        stated = spec.shown(view, decision)
        if trust == 1.0 or not view.of("zhou.ra").meets_assumptions.all():
            assert stated is None
        elif stated is not None and stated.factor:
            assert stated.factor == pytest.approx(view.of("zhou.ra").gamma / (1 - trust))
            assert ("1 − trust" in stated.text) is (trust > 0)
            most = models.get("zhou.ra.dual").solve(roomy).bound
            got = judge(roomy, decision, spec.problem).objective
            assert most is not None
            assert got is not None
            assert most <= stated.factor * got
            told += 1
    assert told == 0 if trust == 1.0 else told > 0


def test_algorithms_with_advice_run_only_by_their_names() -> None:
    assert "hadar.advised" not in {spec.id for spec in select(["hadar.*"], [])}
    assert [spec.id for spec in select(["hadar.advised?trust=1"], [])] == ["hadar.advised?trust=1"]


def test_forecast_errors_change_prices_only() -> None:
    view = PAPERS.get("hadar").view(sg.load(FIG1))
    true = extremes_of(view)
    wrong = true.believed(0.5, 8.0)
    assert wrong.low == pytest.approx(true.low / 2)
    assert wrong.high == pytest.approx(8 * true.high)
    assert true.believed(1.0, 1.0) is true
    flat = true.believed(1e6, 1e-6)
    assert (flat.high >= flat.low).all()
    zhou = PAPERS.get("zhou").view(sg.load("paper/walkthrough")).architectures["ps"]
    assert zhou.believed(8.0).price_base - 1 == pytest.approx(8 * (zhou.price_base - 1))
    assert HEURISTICS.get(PROOF + "&u_min=8").guarantee(view) is None


def test_the_figure_of_settings_has_a_point_for_each_value() -> None:
    mark = "f" * 64
    rows = [
        row(f"hadar.online{query}", mark, 4.0 - at / 10)
        for at, query in enumerate(["", "?u_min=0.5", "?u_min=2", "?u_max=2"])
    ]
    found = by_setting(rows)
    assert {key: list(values) for key, values in found.items()} == {("hadar.online", "u_min"): [0.5, 1.0, 2.0]}


@pytest.mark.parametrize("prices", ["round", "learned"])
def test_steps_are_at_the_prices_that_were_posted(prices: str) -> None:
    """With prices of each round's jobs, those of all jobs were posted in no round."""
    with pytest.raises(UsageError, match=f"prices={prices}: each round has prices of its own"):
        sg.prices(f"hadar.online?prices={prices}", FIG1)


def test_where_nobody_can_earn_own_prices_prove_it() -> None:
    """No job completes by the horizon, so that no GPU is worth anything."""
    late = linear([{"gpus": 1, "epochs": 9, "rates": {"fast": 1.0}}], {"fast": 3}, slots=4)
    found = sg.prices(PROOF, late, best=False)
    assert found.run.start == pytest.approx(0.0)
    assert found.own_bound == pytest.approx(0.0)


def test_theorem_3_is_promised_for_the_right_f_only() -> None:
    """A job may weigh at most F times what it takes, and the algorithm must know F."""
    roomy = random_zhou.draw_roomy(np.random.default_rng(1))
    assert sg.prices("zhou.ra.amaxweight", roomy, best=False).run.promise == "Theorem 3"
    assert not sg.prices("zhou.ra.amaxweight?f=0.5", roomy, best=False).run.promise
    worth = PAPERS.get("zhou").view(roomy).of("zhou.ra").unit_worth
    cheap = roomy.model_copy(update={"unit_worth": worth / 2})
    assert not sg.prices("zhou.ra.amaxweight", cheap, best=False).run.promise


def test_small_steps_do_not_save_theorem_2() -> None:
    """Small jobs of two slots make one round dear; jobs that start in it are charged that price for all rounds.

    Each job takes one of 60 GPUs, and all jobs of 150 slots fit side by side if the small ones are left out.
    """
    slots, gpus = 150, 60

    def worth(amount: float, epochs: int, submit_s: float) -> dict[str, Any]:
        utility = {"kind": "constant", "amplitude": amount}
        return {"gpus": 1, "epochs": epochs, "submit_s": submit_s, "rates": {"fast": 1.0}, "utility": utility}

    small, long = worth(2.02 / slots, 2, 0.0), worth(1.0, slots, 1.0)
    crowded = linear([small] * gpus + [long] * gpus, {"fast": gpus}, slots=slots + 1)
    found = sg.prices(PROOF, crowded, best=False)
    assert found.run.ratio is not None
    assert 2 * found.run.ratio == pytest.approx(29.6, abs=0.05)
    assert gpus / found.objective == pytest.approx(74.3, abs=0.05)
    best = judge(crowded, _all_long(gpus, slots), "hadar.utility")
    assert best.objective == pytest.approx(gpus)


def _all_long(gpus: int, slots: int) -> HadarSchedule:
    """Return the schedule of the long jobs alone, each on a GPU of its own from slot 1 on."""
    job, slot = np.divmod(np.arange(gpus * slots), slots)
    return HadarSchedule.of(np.column_stack((gpus + job, slot + 1, 0 * job, 0 * job + 1)))

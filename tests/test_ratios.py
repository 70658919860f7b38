"""Guarantees are stated where a run shows them, what refutes one is flagged, and the hard families do what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Command

import schedgap as sg
from schedgap import heuristics, models
from schedgap.harness.check import judge
from schedgap.harness.studies.adversary import families
from schedgap.harness.studies.adversary.families import (
    FamilyPoint,
    answer,
    as_bad,
    curve,
    exponent,
    families_of,
    point,
    ratios_on,
)
from schedgap.harness.studies.audit.lab import ClaimLab, certified, measured
from schedgap.harness.studies.audit.row import Audit
from schedgap.harness.studies.compare import task
from schedgap.harness.studies.compare.methods import find_spec
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics.hadar.duality import dual_objective, earned, loads, shown
from schedgap.heuristics.hadar.prices import guarantee, prices
from schedgap.heuristics.zhou.batches import Way, maxweight
from schedgap.heuristics.zhou.duality import dual_objective as zhou_dual
from schedgap.heuristics.zhou.duality import loads as zhou_loads
from schedgap.instances import load, plugins
from schedgap.instances.catalogue import references
from schedgap.instances.families import HARD, HardFamily
from schedgap.instances.random_instances.hadar import draw, linear
from schedgap.instances.random_instances.zhou import draw as draw_zhou
from schedgap.instances.schema import Instance
from schedgap.instances.views.hadar import HadarSchedule, view
from schedgap.instances.views.zhou import view as zhou_view

ROOT = Path(__file__).resolve().parent.parent

ARGUMENT = "hadar.online?mode=incremental&payoff=lifetime"


def job(amplitude: float, slots: int, begin: int = 0, gpus: int = 1) -> dict[str, object]:
    utility = {"kind": "constant", "amplitude": amplitude}
    return {"gpus": gpus, "epochs": slots * gpus, "rates": {"a": 1.0}, "utility": utility, "submit_s": float(begin)}


# what a run shows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_dual_at_the_prices_of_a_run_is_no_less_than_the_optimum(seed: int) -> None:
    instance = draw(np.random.default_rng(seed))
    v = view(instance)
    if not v.possible.size:
        return
    best = models.get("hadar.p1").run(v).solution.objective
    rng = np.random.default_rng(seed)
    for used in (
        loads(v, heuristics.get(ARGUMENT).decide(instance)),
        rng.integers(0, v.servers.gpus + 1, (v.slots, v.servers.size)),
    ):
        assert dual_objective(v, used, prices(v)) >= best * (1 - 1e-9)


def test_the_dual_of_one_type_is_exact() -> None:
    """Two slots of one GPU are sold: the job of two slots pays for the two cheapest of its three."""
    v = view(linear([job(3.0, 2), job(1.0, 1)], {"a": 1}, slots=3))
    used, found = np.array([[1], [0], [0]]), prices(v)
    low, high = found.low[0], found.high[0]
    assert found.alpha == pytest.approx(np.log(high / low))
    assert dual_objective(v, used, found) == pytest.approx(3 - 2 * low + 1 - low + 2 * low + high)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_earned_is_what_the_checker_says(seed: int) -> None:
    instance = draw(np.random.default_rng(seed))
    schedule = heuristics.get("hadar.online").decide(instance)
    assert earned(view(instance), schedule) == pytest.approx(judge(instance, schedule, "hadar.utility").objective)


def shown_by(method: str, instance: Instance) -> str | None:
    spec = heuristics.get(method)
    assert spec.shown is not None
    found = spec.shown(spec.view(instance), spec.decide(instance))
    return found and found.text


def test_a_ratio_is_stated_only_for_the_settings_of_the_proof_and_only_if_the_run_shows_it() -> None:
    alone = linear([job(1.0, 1)], {"a": 4}, slots=5)
    assert shown_by(ARGUMENT, alone) == guarantee(view(alone)).text
    others = ("hadar.online", "hadar.online?payoff=lifetime", "hadar.online?mode=incremental", f"{ARGUMENT}&keep=false")
    assert {shown_by(method, alone) for method in others} == {None}
    late = linear([job(1.0, 2), job(11.0, 1, begin=1)], {"a": 1}, slots=2)
    assert shown_by(ARGUMENT, late) == "none shown: dual 22 P"


def test_a_run_that_completes_nothing_shows_nothing() -> None:
    v = view(linear([job(1.0, 2)], {"a": 1}, slots=2))
    assert shown(v, HadarSchedule.of(np.zeros((0, 4), np.int64))).text == "none shown: no job completes"


# families -------------------------------------------------------------------------------------------------------------

EXACT = {
    "hadar.utility": "hadar.p1",
    "admission.utility": "admission.offline",
    "oef.allocation": "oef.efficiency",
    "zhou.ps.completion": "zhou.ps.schedules.offline",
    "zhou.ra.completion": "zhou.ra.schedules.offline",
    "zhou.ps.weight": "zhou.ps.schedules",
    "zhou.ra.weight": "zhou.ra.schedules",
}
"""An exact model of each problem that has one for these instances."""

PAIRS = [(family, method) for family in HARD for method in family.methods]
SMALL = [(family, method) for family, method in PAIRS if find_spec(method).problem in EXACT]


def named(value: object) -> str | None:
    return value.id if isinstance(value, HardFamily) else None


def test_every_family_is_in_the_catalogue() -> None:
    assert {f"family/{family.id}" for family in HARD} == {ref for ref in references() if ref.startswith("family/")}
    for family in HARD:
        assert family.build.__doc__
        assert load(f"family/{family.id}").title


@pytest.mark.parametrize(("family", "method"), SMALL, ids=named)
def test_the_answer_of_a_family_is_nearly_optimal_where_a_model_proves_the_optimum(
    family: HardFamily, method: str
) -> None:
    """Of five jobs that outbid each other, another may be left out; of two small jobs, one may wait for a blocker."""
    instance = load(family.ref(family.values[0]))
    problem = find_spec(method).problem
    row = certified(instance, [EXACT[problem]])[EXACT[problem]]
    assert row.status == "optimal"
    assert row.objective is not None
    reached = answer(family, instance, problem)
    ratio = row.objective / reached if row.sense == "max" else reached / row.objective
    assert 1 - 1e-6 <= ratio <= 1.2


@pytest.mark.parametrize(("family", "method"), PAIRS, ids=named)
def test_the_ratio_grows_with_the_parameter_up_to_the_limit(family: HardFamily, method: str) -> None:
    points = curve(family.id, method, family.values[3])
    ratios = [one.ratio for one in points]
    assert ratios == sorted(ratios)
    assert ratios[-1] > 1.2 * ratios[0]
    if family.limit is not None:
        assert ratios[-1] <= family.limit
    elif family.exponent:
        assert family.exponent - 0.2 < exponent(points) < family.exponent + 0.3


def test_ratios_of_families_by_hand() -> None:
    late, lone, rising = (HARD.get(name) for name in ("hadar-late", "zhou-lone", "admission-rising"))
    assert point(late, ARGUMENT, 11).ratio == pytest.approx(11)
    assert point(lone, "zhou.ra.online", 6).ratio == pytest.approx(9 * 64 / 65)
    assert point(rising, "admission.online", 256).ratio == pytest.approx(256)
    odd = point(HARD.get("synergy-odd-one"), "synergy.tune", 8).ratio
    assert odd == pytest.approx(2 - 1 / 16 - (1 - 1 / 16) / 8)


def test_blockers_come_near_the_ratio_of_theorem_5() -> None:
    found = point(HARD.get("zhou-blockers"), "zhou.ra.online", 160)
    assert (found.guarantee, found.shown, found.exceeded) == ("4α = 16", True, False)
    assert found.ratio > 13.5


def test_theorem_2_is_refuted_with_16_jobs_and_without_preemption_with_2() -> None:
    chain = HARD.get("hadar-outbidding")
    refuted = point(chain, "hadar.online?payoff=lifetime", 16, "slots=5&rise=0.25")
    assert (refuted.exceeded, refuted.shown) == (True, False)
    assert not any(
        point(chain, "hadar.online?payoff=lifetime", 15, f"slots={slots}&rise=0.25").exceeded for slots in range(3, 17)
    )
    late = HARD.get("hadar-late")
    assert [point(late, ARGUMENT, value).exceeded for value in (10, 11)] == [False, True]


def test_theorem_2_is_refuted_with_11_jobs_none_of_which_is_preempted() -> None:
    gang = HARD.get("hadar-gang-first")
    for method in ("hadar.online?payoff=lifetime", ARGUMENT):
        refuted = point(gang, method, 10, "more=0.23")
        assert (refuted.exceeded, refuted.shown) == (True, False)
        assert refuted.ratio == pytest.approx(10 / 1.23)
        assert not point(gang, method, 9, "more=0.23").exceeded


def test_theorem_2_is_refuted_with_8_jobs_that_pay_for_one_round() -> None:
    gang = HARD.get("hadar-gang-first")
    for slots, exceeds in ((6, False), (7, True)):
        found = point(gang, "hadar.online", slots, "more=0.001")
        promised = guarantee(view(load(found.ref))).factor
        assert promised is not None
        assert found.ratio == pytest.approx(slots / 1.001)
        assert (found.ratio > promised) is exceeds
    assert promised == pytest.approx(6.69, abs=0.005)


def test_one_ring_job_comes_near_the_ratio_with_short_windows() -> None:
    found = point(HARD.get("zhou-ring-lone"), "zhou.ra.online?alpha=1", 10)
    assert (found.guarantee, found.shown, found.exceeded) == ("4α = 4", True, False)
    assert found.ratio == pytest.approx(2047 / 514)


def test_theorem_3_is_refuted_with_46_jobs_at_a_lambda_that_stays() -> None:
    for method in HARD.get("zhou-slivers").methods:
        points = [point(HARD.get("zhou-slivers"), method, jobs) for jobs in (40, 41, 82)]
        assert [(one.shown, one.exceeded) for one in points] == [(False, False), (False, True), (False, True)]
        assert {one.guarantee for one in points} == {"2 log λ = 8.2"}
        a = zhou_view(load(points[1].ref)).architectures[method.split(".")[1]]
        assert a.meets_assumptions.all()
        assert a.size == 46


def test_theorem_3_is_refuted_and_no_row_states_it_there() -> None:
    family = HARD.get("zhou-memory")
    small, refuted = (point(family, "zhou.ra.amaxweight", slots) for slots in (8, 15))
    assert (small.shown, small.exceeded) == (True, False)
    assert (refuted.shown, refuted.exceeded) == (False, True)
    assert refuted.ratio == pytest.approx(14 / 1.001)
    assert refuted.guarantee == "2 log λ = 13.8"
    assert "none shown: dual" in str(shown_by("zhou.ra.amaxweight", load(refuted.ref)))


@pytest.mark.parametrize("seed", range(12))
def test_the_dual_of_a_run_of_zhou_is_no_less_than_the_optimum(seed: int) -> None:
    instance = draw_zhou(np.random.default_rng(seed))
    for name, a in zhou_view(instance).architectures.items():
        best = models.get(f"zhou.{name}.schedules").run(zhou_view(instance)).solution.objective
        schedule = maxweight(a, Way())
        used = zhou_loads(a, schedule)
        assert used.max() <= a.machines.capacity.max() * (1 + 1e-9)
        assert zhou_dual(a, used) >= best * (1 - 1e-9)
        assert zhou_dual(a, np.zeros_like(used)) >= best * (1 - 1e-9)


def test_who_else_fails() -> None:
    late = HARD.get("hadar-late")
    instance, best = load(late.ref(11)), 11.0
    ratios = ratios_on(instance, "hadar.utility", best)
    assert ratios["hadar.fifo"] == pytest.approx(11)
    assert ratios["hadar.online"] == pytest.approx(1)
    assert list(ratios.values()) == sorted(ratios.values(), reverse=True)
    bad = as_bad(ratios, ARGUMENT, 11.0)
    assert "hadar.fifo" in bad
    assert not any(name.startswith("hadar.online") for name in bad)


def few(family: str, method: str) -> list[FamilyPoint]:
    return [point(HARD.get(family), method, value) for value in (4, 6, 8)]


def test_worst_cases_in_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "curve", few)
    table = sg.worst_cases(["hadar-late", "zhou-lone", "oef-heavy"]).set_index(["family", "method"])
    late = table.loc[("hadar-late", ARGUMENT)]
    assert (late["largest"], late["growth"]) == (pytest.approx(8), pytest.approx(1))
    assert late["instance"] == "family/hadar-late?value=8"
    assert "hadar.fifo" in late["also"]
    assert "Baruah" in late["source"]
    lone, heavy = table.loc[("zhou-lone", "zhou.ra.online")], table.loc[("oef-heavy", "oef.rounding")]
    assert (lone["guarantee"], lone["any_algorithm"]) == ("4α = 16", "2")
    assert lone["theorem"].startswith("4α (Theorem 5)")
    assert late["theorem"].startswith("2α (Theorem 2): refuted")
    assert heavy["theorem"] == "none"
    assert (heavy["guarantee"], heavy["any_algorithm"]) == ("", "")


def test_families_of_a_method_are_those_of_its_settings() -> None:
    assert {one.id for one in families_of("hadar.online?beam=1")} == {
        *("hadar-outbidding", "hadar-long-first", "hadar-late", "hadar-small-first"),
        *("hadar-phantom", "hadar-gang-first", "hadar-cheapest", "hadar-skipped"),
    }
    assert families_of("hadar.fifo") == []


def test_the_command_compares_on_a_family(command: Command) -> None:
    done = command("compare", "--instance", "family/hadar-late?value=20", "--method", ARGUMENT, "--method", "hadar.p1")
    assert done.returncode == 0
    assert "none shown: dual 40 P" in done.stdout


# what refutes a guarantee ---------------------------------------------------------------------------------------------

LIAR = '''
from schedgap.heuristics import get
from schedgap.heuristics.registry import Guarantee, heuristic


@heuristic("hadar.liar", problem="hadar.utility", kind="online", guarantee=lambda view: Guarantee("1.5, they say", 1.5))
def liar(view, context):
    """Return what Hadar does."""
    return get("hadar.online").run(view, context)
'''
"""A plug-in with a guarantee that is false."""

CHAIN = "family/hadar-outbidding?jobs=5"


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "liar.py"
    file.write_text(LIAR)
    yield file
    plugins.restore(())


def test_commands_end_with_1_if_a_row_states_a_guarantee_that_a_verified_decision_refutes(
    command: Command, plugin: Path, tmp_path: Path
) -> None:
    given = ("--plugin", str(plugin), "--results", str(tmp_path))
    compared = command("compare", "--instance", CHAIN, "--method", "hadar.liar", "--method", ARGUMENT, *given)
    grid = tmp_path / "grid.toml"
    grid.write_text(f'title = "t"\ninstances = ["{CHAIN}"]\nmethods = ["hadar.liar", "{ARGUMENT}"]\n')
    swept = command("sweep", str(grid), *given)
    sought = command(
        "adversary", "--heuristic", "hadar.liar", "--tries", "3", "--most-jobs", "40", "--jobs", "1", *given
    )
    for done in (compared, swept, sought):
        assert done.returncode == 1, done.stdout + done.stderr
        assert "REFUTED" in done.stdout + done.stderr
    assert "1.5, they say is refuted" in compared.stdout


def test_an_audit_is_not_in_order_if_a_row_of_a_check_states_a_false_guarantee(plugin: Path) -> None:
    sg.load_plugin(plugin)
    lab, honest = ClaimLab("hadar.theorem-2"), ClaimLab("hadar.theorem-2")
    measured(lab, [load(CHAIN)], "hadar.liar", ("hadar.p1",), "one")
    measured(honest, [load(CHAIN)], ARGUMENT, ("hadar.p1",), "one")
    found, other = lab.finding("x"), honest.finding("x")
    assert found.refuted.startswith("hadar.liar: 1.5, they say is refuted: ")
    assert (found.finished, found.ok, other.ok) == (True, False, True)
    assert not Audit({}, [found]).ok
    assert found.verdict == "refuted"


def test_the_page_prints_the_ratios_of_the_families_at_their_largest_parameter() -> None:
    page = (ROOT / "docs" / "studies.md").read_text()
    printed = dict(re.findall(r"^\| `[^|]*`[^|]* \| `([a-z-]+)`[^|]* \| ([\d,.]+) \|", page, flags=re.M))
    assert {*printed, "oef-one-fast"} == set(HARD.ids())
    for name, text in printed.items():
        family = HARD.get(name)
        ratio = point(family, family.methods[0], family.values[-1]).ratio
        assert float(text.replace(",", "")) == pytest.approx(ratio, rel=2e-3), name


# instances by hand, in the folder of real traces ----------------------------------------------------------------------


def test_the_chain_of_twenty_jobs_states_a_ratio_only_without_preemption(data_dir: Path) -> None:
    instance = load(str(data_dir / "cases" / "instances" / "hadarconst20.json"))
    methods = ["hadar.online", "hadar.online?payoff=lifetime", "hadar.online?mode=incremental", ARGUMENT]
    rows = certified(instance, methods)
    assert [rows[method].guarantee for method in methods] == [None, None, None, "2α = 12.8"]
    assert [rows[method].objective for method in methods] == pytest.approx([1.2552, 1.2552, 19.04, 19.04], abs=5e-3)
    assert rows["hadar.online"].ratio_at_least == pytest.approx(15.2, abs=0.05)
    assert rows[ARGUMENT].refuted is None


@pytest.mark.parametrize(
    ("name", "online", "best", "least"),
    [("hadarfin6", "hadar.online", "hadar.fifo", 5.34), ("zb40", "zhou.ra.online", None, 10.5)],
)
def test_ratios_found_by_hand(data_dir: Path, name: str, online: str, best: str | None, least: float) -> None:
    """The blockers of `zb40` are those of a family, whose answer is feasible for them."""
    instance = load(str(data_dir / "cases" / "instances" / f"{name}.json"))
    rows = certified(instance, [online, *filter(None, [best])])
    problem, row = find_spec(online).problem, rows[online]
    value = rows[best].objective if best else answer(HARD.get("zhou-blockers"), instance, problem)
    assert row.replace(best_objective=value).ratio_at_least >= least
    assert row.refuted is None


def test_a_decision_that_violates_a_rule_states_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guarantee is about decisions that satisfy all rules."""
    case, chosen = load("family/zhou-lone?doublings=4"), ["zhou.ra.online"]
    (right,) = compare_here(case, chosen, probes=False).rows
    assert right.guarantee == "4α = 16"
    monkeypatch.setattr(task, "judge", lambda *args: replace(judge(*args), violations=("a rule is broken",)))
    (wrong,) = compare_here(case, chosen, probes=False).rows
    assert (wrong.verified, wrong.guarantee, wrong.guarantee_factor) == (False, None, None)

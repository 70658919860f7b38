"""Models that certify a bound and do not branch: what they prove, what they start from, and what their status says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from test_columns import TIGHT, Known, known

from schedgap import instances, models
from schedgap.harness.compare.methods import related, seeds, select, verified_oracle
from schedgap.harness.compare.run import compare
from schedgap.harness.verify import VERIFIERS
from schedgap.heuristics import HEURISTICS, Context
from schedgap.instances.canonical import validate
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.hadar import Schedule
from schedgap.models import MODELS, ModelSpec
from schedgap.models.columns import Choice, Columns, Packing, PackingOptions, generate, pack
from schedgap.models.columns.integer import LATE
from schedgap.models.hadar.pricing import Pricing
from schedgap.models.solve import Seed, SolveOptions

PAIRS = {
    "hadar.p2.columns": "hadar.p1",
    "hadar.p2.columns.complete": "hadar.p1.complete",
    "zhou.ps.columns": "zhou.ps.schedules.offline",
    "zhou.ps.columns.maxweight": "zhou.ps.schedules",
    "zhou.ra.columns": "zhou.ra.schedules.offline",
    "zhou.ra.columns.maxweight": "zhou.ra.schedules",
    "admission.columns": "admission.offline",
    "admission.columns.from_arrival": "admission.offline.from_arrival",
}
"""Models that do not branch, and exact ones of the same problems."""

# The relaxation is worth 7.45, and with every job completing 6.86; no schedule completes all three.
ROUNDS_BADLY: dict[str, Any] = {
    "name": "rounds badly",
    "cluster": {
        "gpu_types": [{"name": "A"}, {"name": "B"}],
        "servers": [
            {"name": "A", "count": 1, "gpu_type": "A", "gpus": 3},
            {"name": "B", "count": 2, "gpu_type": "B", "gpus": 2},
        ],
    },
    "jobs": [
        {
            "id": "J0", "gpus": 3, "epochs": 1, "minibatches_per_chunk": 4752, "rates": {"A": 2, "B": 1},
            "submit_s": 720.0,
            "utility": {"kind": "sigmoid", "amplitude": 1, "steepness_per_s": 1 / 120, "midpoint_s": 720},
        },
        {"id": "J1", "gpus": 3, "epochs": 1, "minibatches_per_chunk": 4768, "rates": {"A": 1, "B": 2},
         "submit_s": 360.0},
        {"id": "J2", "gpus": 2, "epochs": 1, "minibatches_per_chunk": 4320, "rates": {"A": 0.5, "B": 1.5}},
    ],
    "horizon": {"slot_s": 360, "slots": 5},
}  # fmt: skip


def test_every_model_that_does_not_branch_says_so() -> None:
    assert {m.id for m in MODELS if m.kind == "matheuristic"} == set(PAIRS)
    assert all(MODELS.get(exact).kind == "exact" for exact in PAIRS.values())
    assert "*matheuristic*" in (ROOT / "README.md").read_text()


def small_views(paper: str, count: int) -> list[Any]:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(count):
        try:
            found.append(PAPERS.get(paper).view(RANDOM.get(paper).draw(rng)))
        except NotApplicableError:
            continue
    return found


@pytest.mark.parametrize("model", PAIRS)
def test_small_instances_against_the_exact_model(model: str) -> None:
    """Optimal means the optimum, infeasible that there is none, and no limit is named where none was given."""
    spec, exact = models.get(model), models.get(PAIRS[model])
    sign = 1 if spec.sense == "max" else -1
    tried = 0
    for view in small_views(spec.paper, 12):
        if spec.skip(view) or exact.skip(view) or exact.too_large(view):
            continue
        tried += 1
        right, outcome = exact.run(view).solution, spec.run(view)
        solution = outcome.solution
        assert solution.status in {"optimal", "gap left", "infeasible"}
        assert (solution.status == "infeasible") == (right.status == "infeasible")
        if right.objective is None:
            continue
        tolerance = 1e-6 * max(1.0, abs(right.objective))
        assert sign * solution.bound >= sign * right.objective - tolerance
        met = abs(solution.bound - right.objective) <= tolerance >= abs(solution.objective - right.objective)
        assert (solution.status == "optimal") == met
        verdict = VERIFIERS.get(spec.paper).check(view, outcome.decision, spec.problem, ())
        assert not verdict.violations
        assert verdict.objective == pytest.approx(solution.objective)
    assert tried > 3


def test_what_the_relaxation_rounds_badly_is_solved_all_the_same() -> None:
    view = PAPERS.get("hadar").view(validate(ROUNDS_BADLY, "inline"))
    solution = models.get("hadar.p2.columns").run(view).solution
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(models.get("hadar.p1").run(view).solution.objective)
    assert generate_value(view) > solution.objective * 1.1
    complete = models.get("hadar.p2.columns.complete").run(view).solution
    assert (complete.status, complete.bound) == ("infeasible", None)


def generate_value(view: Any) -> float:
    from schedgap.models.hadar.columns import packing

    return generate(packing(view), Pricing(view)).value


@settings(max_examples=25)
@given(problem=known())
def test_the_columns_that_matter_prove_the_optimum(problem: Known) -> None:
    """Where all columns within the slack are listed, the bound is the integer optimum; without one, it says so."""
    found = generate(problem.packing, problem.oracle, TIGHT)
    if found.ended == "infeasible":
        assert problem.best() is None
        return
    priced = problem.oracle(found.prices).most
    most = priced if problem.packing.cover else np.maximum(priced, 0.0)

    def within(slack: float) -> list[tuple[int, Choice]]:
        dense, profit = problem.columns.use.toarray(), problem.columns.profit(found.prices)
        keep = np.flatnonzero(profit >= most[problem.columns.block] - slack - 1e-9)
        rows = {c: np.flatnonzero(dense[:, c]) for c in keep.tolist()}
        block, value = problem.columns.block, problem.columns.value
        return [(int(block[c]), Choice(float(value[c]), rows[c], dense[rows[c], c])) for c in keep.tolist()]

    packed = pack(problem.packing, problem.insert, found, PackingOptions(moves=1), within=within)
    best = problem.best()
    if best is None:
        assert packed.bound == -np.inf
    else:
        assert packed.value == pytest.approx(best)
        assert packed.bound == pytest.approx(best, abs=1e-6)


def test_a_search_with_a_time_limit_ends_at_the_bound_or_at_the_limit() -> None:
    """A triangle: of three columns each pair is in conflict; the relaxation is worth 1.5 and a packing 1."""
    listed = [(b, 1.0, np.array(rows), np.ones(2)) for b, rows in enumerate(([0, 1], [1, 2], [0, 2]))]
    problem = Known(Packing(np.ones(3), 3), Columns.of(3, listed))
    found = generate(problem.packing, problem.oracle, TIGHT)
    assert found.bound == pytest.approx(1.5)
    packed = pack(problem.packing, problem.insert, found, PackingOptions(time_limit_s=0.3))
    assert (packed.value, packed.why) == (1.0, LATE)
    assert "stalled" in pack(problem.packing, problem.insert, found, PackingOptions()).why


def test_rounding_proves_no_infeasibility() -> None:
    """The floor is the sum of all values, added up in another order."""
    values = (0.3, 0.2, 0.1)
    assert sum(values) < sum(reversed(values))
    columns = Columns.of(1, [(b, value, np.array([0]), np.zeros(1) + 1) for b, value in enumerate(values)])
    problem = Known(Packing(np.array([3.0]), 3, cover=True, floor=sum(reversed(values))), columns)
    assert generate(problem.packing, problem.oracle).ended == "gap"


def decided(spec: ModelSpec, view: Any) -> Sequence[Seed]:
    """What all heuristics of a model's problem decide that is feasible in it."""
    context = Context(np.random.default_rng(0), verified_oracle(SolveOptions()))
    return seeds(spec, view, [(h.id, h.run(view, context)) for h in related(spec) if not h.skip(view)])


REF, FIG1 = "gen/20jobs?jobs=8", "paper/hadar-fig1"


@pytest.mark.parametrize(
    "model", ["hadar.p2.columns", "zhou.ra.columns", "zhou.ps.columns.maxweight", "admission.columns"]
)
def test_a_model_is_no_worse_than_any_heuristic(model: str) -> None:
    spec = models.get(model)
    view = PAPERS.get(spec.paper).view(instances.load(FIG1 if spec.paper == "hadar" else REF))
    found = decided(spec, view)
    own = {h.id for h in HEURISTICS if h.problem == spec.problem}
    assert own <= {seed.method for seed in found}
    outcome = spec.run(view, SolveOptions(seeds=found))
    verdict = VERIFIERS.get(spec.paper).check(view, outcome.decision, spec.problem, ())
    assert not verdict.violations
    better = max if spec.sense == "max" else min
    assert better([verdict.objective, *(seed.objective for seed in found)]) == pytest.approx(verdict.objective)


def test_a_seed_that_no_packing_reaches_is_the_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    spec = models.get("hadar.p2.columns")
    (seed,) = [s for s in decided(spec, view) if s.method == "hadar.srtf"]
    monkeypatch.setattr(Pricing, "insert", lambda *args: None)
    monkeypatch.setattr("schedgap.models.columns.integer._Packer.load", lambda self, known: None)
    outcome = spec.run(view, SolveOptions(seeds=[seed]))
    assert outcome.decision is seed.decision
    assert outcome.solution.objective == seed.objective
    assert outcome.solution.status == "gap left"
    assert "gap left: no branching" in outcome.solution.solution_status


def test_a_seed_is_read_as_the_columns_that_it_is() -> None:
    """Where nothing else can be inserted, the schedule is that of the seed, job by job."""
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    spec = models.get("hadar.p2.columns")
    (seed,) = [s for s in decided(spec, view) if s.method == "hadar.fifo"]
    from schedgap.models.hadar.columns import read

    read_back = read(view, Pricing(view), seed.decision)
    assert sum(choice.value for choice in read_back.values()) == pytest.approx(seed.objective)
    assert sum(choice.amounts.sum() for choice in read_back.values()) == seed.decision.gpus.sum()


def test_starting_from_decisions_can_be_turned_off() -> None:
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    options = SolveOptions(seeds=decided(models.get("hadar.p2.columns"), view))
    ways = (models.get(f"hadar.p2.columns{ask}") for ask in ("", "?seeded=false"))
    begins = [way.run(view, options).solution.trace[0] for way in ways]
    assert begins[0].incumbent == max(seed.objective for seed in options.seeds)
    assert begins[1].incumbent is None


def test_decisions_that_are_wrong_or_of_another_problem_are_no_seeds() -> None:
    """P2 that completes everybody takes no decision that leaves somebody out; nobody takes one that breaks a rule."""
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    cheat, idle = Schedule.of(np.array([[0, 0, 0, 1]])), Schedule.of(np.zeros((0, 4)))
    known = [("hadar.cheat", cheat), ("hadar.idle", idle)]
    assert [s.method for s in seeds(models.get("hadar.p2.columns"), view, known)] == ["hadar.idle"]
    assert seeds(models.get("hadar.p2.columns.complete"), view, known) == []


def test_a_comparison_hands_over_what_heuristics_decide_also_those_that_nobody_asked_for() -> None:
    alone = compare(FIG1, ["hadar.p2.columns"], jobs=2)
    assert [row.method for row in alone.rows] == ["hadar.p2.columns"]
    together = compare(FIG1, ["hadar.*"], jobs=2)
    (beside,) = (row for row in together.rows if row.method == "hadar.p2.columns")
    for row in (alone.rows[0], beside):
        assert int(str(row.termination).split(" known decisions")[0].split()[-1]) > 5
    assert [row.method for row in together.rows] == [spec.id for spec in select(["hadar.*"], [])]

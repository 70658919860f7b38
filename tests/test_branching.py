"""Branch and price: trees are complete, bounds are valid at any time, and results equal those of exact models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from branched import EXACT
from conftest import ROOT, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_columns import TIGHT, Known, known
from test_hadar_columns import PRICES, tiny

from schedgap import instances, models
from schedgap.harness.check import judge_asked
from schedgap.harness.studies.compare.methods import related, seeds, select, verified_oracle
from schedgap.harness.studies.compare.run import compare
from schedgap.heuristics import HEURISTICS, Context
from schedgap.instances import clock
from schedgap.instances.arrays import Ints
from schedgap.instances.canonical import validate
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.moldable import classes
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.hadar import HadarSchedule, HadarView
from schedgap.models import MODELS, ModelSpec
from schedgap.models.admission.columns import admitting
from schedgap.models.engine.columns import (
    BranchAndPrice,
    Columns,
    Covers,
    Dive,
    Domain,
    Knapsacks,
    Packing,
    children,
    generate,
)
from schedgap.models.engine.columns.knapsacks import separated
from schedgap.models.engine.gangs.pricing import GangPricing
from schedgap.models.engine.moldable import CapacityGrid, MoldableJobs
from schedgap.models.engine.moldable import MoldablePricing as RunPricing
from schedgap.models.engine.moldable import schedules as schedules_of_runs
from schedgap.models.engine.moldable.jobs import Scheduled, columns_of
from schedgap.models.engine.solve import Seed, SolveOptions
from schedgap.models.hadar.schedules import schedules
from schedgap.models.zhou.columns import weighing

UNFINISHED = {"zhou.", "admission."}
"""Papers whose models list the placements of jobs, which may be too many: such models may end without a proof."""

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


def test_every_model_that_does_not_branch_to_the_end_says_so() -> None:
    unfinished = {m for m in EXACT if m.startswith(tuple(UNFINISHED))}
    others = ("rigid.search", "oef.cooperative.first_order", "synergy.servers", "synergy.columns")
    others += ("zhou.ps.inter", "zhou.ra.inter")
    searches = {m.id for m in MODELS if m.kind == "matheuristic" and m.id.startswith(others)}
    assert {m.id for m in MODELS if m.kind == "matheuristic"} - searches == unfinished
    assert all(MODELS.get(m).kind == "exact" for m in [*EXACT.values(), *(set(EXACT) - unfinished)])
    assert "*matheuristic*" in (ROOT / "docs/numbers.md").read_text()


def small_views(paper: str, count: int) -> list[Any]:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(count):
        try:
            found.append(PAPERS.get(paper).view(RANDOM.get(paper).draw(rng)))
        except NotApplicableError:
            continue
    return found


@pytest.mark.parametrize("model", EXACT)
def test_small_instances_against_the_exact_model(model: str) -> None:
    """On small instances, statuses and optima equal those of the exact model, and no limit is reported."""
    spec, exact = models.get(model), models.get(EXACT[model])
    sign = 1 if spec.sense == "max" else -1
    tried = 0
    for view in small_views(spec.paper, 12):
        if spec.skip(view) or exact.skip(view) or exact.too_large(view):
            continue
        tried += 1
        right, outcome = exact.run(view).solution, spec.run(view)
        solution = outcome.solution
        assert solution.status == right.status
        if right.objective is None:
            continue
        tolerance = 2e-6 * max(1.0, abs(right.objective))
        assert sign * solution.bound >= sign * right.objective - tolerance
        assert abs(solution.bound - right.objective) <= tolerance >= abs(solution.objective - right.objective)
        verdict = judge_asked(view, outcome.decision, spec.problem, ())
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


def triples(number: int) -> HadarView:
    """Return triples of jobs, each with a GPU of its own for three slots; every job needs two slots and is worth 1."""
    jobs = [
        {"id": f"{name}{k}", "gpus": 1, "epochs": 1, "minibatches_per_chunk": 720, "rates": {f"A{k}": 1},
         "utility": {"kind": "constant", "amplitude": 1}}
        for k in range(number) for name in "abc"
    ]  # fmt: skip
    types = [{"name": f"A{k}"} for k in range(number)]
    servers = [{"name": f"A{k}", "count": 1, "gpu_type": f"A{k}", "gpus": 1} for k in range(number)]
    cluster = {"gpu_types": types, "servers": servers}
    given = {"name": "halves", "cluster": cluster, "jobs": jobs, "horizon": {"slot_s": 360, "slots": 3}}
    view = PAPERS.get("hadar").view(validate(given, "inline"))
    assert isinstance(view, HadarView)
    return view


def test_prices_alone_leave_a_gap_of_half_the_optimum() -> None:
    """Only branching closes the gap here: the relaxation runs half of each of three jobs, a schedule one.

    There are one GPU and three slots, and each job needs two slots. Covers need jobs with more than one GPU.
    """
    view = triples(1)
    assert generate_value(view) == pytest.approx(1.5)
    solution = models.get("hadar.p2.columns").run(view).solution
    assert (solution.status, solution.objective) == ("optimal", pytest.approx(1.0))
    assert solution.bound == pytest.approx(1.0)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_half_of_a_gap_takes_the_root_of_all_leaves(number: int) -> None:
    """With L leaves, triples of jobs have a bound of at least 1.5 m − log2(L) / 2, where the optimum is m.

    Proof: a decision concerns one job, and either child of it has a solution in which its triple is worth 1, as another
    job of the triple completes. So a decision lowers the bound by at most 1/2, and some leaf has at most log2(L) above.
    """
    pricing = GangPricing(triples(number))
    root = generate(pricing.anything, pricing, TIGHT)
    tree = BranchAndPrice(pricing, root, pricing.anything, True, SolveOptions(), None)
    assert tree.bound == pytest.approx(1.5 * number)
    while not tree.done:
        tree.explore(float(number), None)
        leaves = (tree.made + 1) // 2
        assert max(tree.bound, number) >= 1.5 * number - math.log2(leaves) / 2 - 1e-6
    assert tree.bound == pytest.approx(number)
    assert leaves >= 2**number


def generate_value(view: Any) -> float:
    pricing = GangPricing(view)
    return generate(pricing.anything, pricing).value


def grown(problem: Known, whole: bool = True) -> Iterator[tuple[BranchAndPrice, float]]:
    """Grow a tree without a search for schedules; yield it after each node, with the best value so far."""
    found = problem.generate(TIGHT)
    tree = BranchAndPrice(problem, found, problem.domain, whole, SolveOptions(), None)
    best = -np.inf
    while not tree.done:
        before, bound = {node: node.bound for node in tree.open}, tree.bound
        outcome = tree.explore(best, None)
        (taken,) = set(before) - set(tree.open)
        assert best == -np.inf or before[taken] == max(before.values())
        assert tree.bound <= bound
        if outcome and len(outcome[1]):
            solution = outcome[1]
            assert (solution.use.sum(axis=1)[: len(problem.packing.capacity)] <= problem.packing.capacity + 1e-9).all()
            assert len(set(solution.block.tolist())) == len(solution)
            best = max(best, float(solution.value.sum()))
        yield tree, best


@settings(max_examples=60)
@given(problem=known())
def test_a_tree_ends_at_the_optimum_and_its_bound_is_valid_at_any_moment(problem: Known) -> None:
    best = problem.best()
    if problem.generate(TIGHT).ended == "infeasible":
        assert best is None
        return
    value = -np.inf
    for tree, value in grown(problem):
        assert best is None or max(tree.bound, value) >= best - 1e-6
    # Unless all blocks must be covered, taking no column is a solution of value 0.
    value = value if problem.packing.cover else max(value, 0.0)
    assert value == (-np.inf if best is None else pytest.approx(best, abs=1e-6))
    if best is None:
        assert tree.bound == -np.inf


def test_a_triangle_is_branched_on() -> None:
    """Three columns that exclude each other in pairs: the relaxation is worth 1.5, the optimum 1, by branching."""
    listed = [(b, 1.0, np.array(rows), np.ones(2)) for b, rows in enumerate(([0, 1], [1, 2], [0, 2]))]
    problem = Known.of(Packing(np.ones(3), 3), Columns.of(3, listed))
    steps = list(grown(problem))
    assert problem.generate(TIGHT).bound == pytest.approx(1.5)
    assert steps[-1][1] == 1.0
    assert steps[-1][0].nodes > 1


def test_ends_are_split_where_either_side_changes_most() -> None:
    """A job's possible ends are split where its value falls most: here after 2, between its ends at 0 and 3.

    Right after 0 the ends of the later part would hardly change.
    """
    domain = Domain.of(Packing(np.ones(1), 1, worth=np.array([[10.0, 9.0, 8.0, 1.0]])))
    known = Columns.of(1, [(0, 10.0, np.array([0]), np.ones(1)), (0, 1.0, np.array([0]), np.ones(1))], [0, 3])
    pair = children(domain, known, np.array([0.6, 0.4]), True)
    assert pair is not None
    assert [(int(part.first[0]), int(part.last[0])) for part in pair] == [(0, 2), (3, 4)]


@st.composite
def some_covers(draw: Any, packing: Packing) -> Covers:
    """Draw covers as the search would find them: what jobs keep fits into the capacity without the spare."""
    assert packing.most is not None
    found = Covers.none(packing.blocks)
    for row in draw(st.lists(st.integers(0, len(packing.capacity) - 1), max_size=4)):
        spare = draw(st.integers(1, max(int(packing.capacity[row]), 1)))
        kept = np.array([draw(st.sampled_from([0, int(m)])) for m in packing.most], np.int64)
        if kept.sum() <= packing.capacity[row] - spare:
            found = found.and_(Covers(np.array([row]), np.array([spare]), kept[None, :]))
    return found


def some_knapsacks(rng: np.random.Generator, rows: Ints, packing: Packing) -> Knapsacks:
    """Draw knapsack cuts with any weights that do not fall with the use, each with the least valid limit."""
    assert packing.most is not None
    steps = rng.integers(0, 3, (len(rows), packing.blocks, int(packing.most.max()) + 1))
    weights = np.cumsum(steps * (rng.random(steps.shape) < 0.5), axis=2)
    weights -= weights[:, :, :1]
    limit = [heaviest(int(packing.capacity[row]), one) for row, one in zip(rows.tolist(), weights, strict=True)]
    return Knapsacks(rows, np.array(limit, np.int64), np.arange(len(rows)), weights)


def heaviest(room: int, weights: Ints) -> int:
    """Return the largest total weight of blocks whose uses fit into `room`, one block after another."""
    best = {0: 0}
    for block in weights.tolist():
        before = best
        best = {}
        for used, total in before.items():
            for use, weight in enumerate(block):
                if used + use <= room:
                    best[used + use] = max(best.get(used + use, 0), total + weight)
    return max(best.values())


@settings(max_examples=examples(20))
@given(problem=known(), weighed=st.booleans(), data=st.data())
def test_cuts_leave_every_solution(problem: Known, weighed: bool, data: st.DataObject) -> None:
    """Cuts that are found cut off the relaxation for which they are found; no cut cuts off the optimum."""
    use = problem.columns.use
    most = np.array([use[:, problem.columns.block == b].max() for b in range(problem.packing.blocks)], np.int64)
    every = np.ones(len(use.toarray()), bool)
    packing = replace(problem.packing, most=np.maximum(most, 1), weighed=every if weighed else None)
    relaxed = problem.generate(TIGHT)
    best = problem.best()
    if best is None or relaxed.ended == "infeasible":
        return
    stronger = packing.stronger(relaxed.columns, relaxed.x)
    if stronger is not None:
        broken = stronger.lifted(relaxed.columns).use @ relaxed.x - stronger.limits
        assert (broken[len(packing.capacity) :] > 0.01).all()
    if weighed:
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
        more: Any = some_knapsacks(rng, rng.integers(0, len(packing.capacity), 3), packing)
    else:
        more = data.draw(some_covers(packing))
    known_ones = replace(packing, known=stronger.cuts.and_(more) if stronger else more)
    bound = replace(problem, packing=known_ones).generate(TIGHT).bound
    assert best - 1e-6 <= bound <= relaxed.bound + 1e-6
    assert list(grown(replace(problem, packing=packing)))[-1][1] == pytest.approx(best, abs=1e-6) or best <= 0


@pytest.mark.parametrize("kind", ["admission", "ra", "ps"])
def test_pricing_of_runs_pays_for_cuts(kind: str) -> None:
    """Pricing of runs with cuts finds the best profit among all runs: what a run pays for cuts is known beforehand."""
    rng, tried, pools = np.random.default_rng(3), 0, 0
    for view in small_views("admission" if kind == "admission" else "zhou", 8):
        if kind != "admission" and view.architectures[kind].reason:
            continue
        jobs = admitting(view, "admission.utility") if kind == "admission" else weighing(view.architectures[kind])
        grid = CapacityGrid(classes(jobs.machines), jobs.slots)
        pools += len(grid.pools)
        pricing = RunPricing(jobs, grid)
        packing, rows = pricing.domain.packing, np.flatnonzero(grid.whole.repeat(jobs.slots))
        if packing.most is None:
            continue
        domain = Domain.of(replace(packing, known=some_knapsacks(rng, rng.choice(rows, 5), packing)))
        prices = rng.random(len(domain.packing.limits)) * (rng.random(len(domain.packing.limits)) < 0.5)
        every = domain.packing.lifted(all_runs(jobs, grid))
        right = np.zeros(jobs.size)
        np.maximum.at(right, every.block, domain.profit(every, prices))
        priced = pricing(prices, domain)
        assert np.maximum(priced.most, 0.0) == pytest.approx(right)
        best = domain.packing.lifted(priced.columns)
        assert domain.profit(best, prices) == pytest.approx(priced.most[best.block])
        tried += 1
    assert tried
    assert pools or kind == "admission"


@settings(max_examples=80)
@given(data=st.data())
def test_a_knapsack_cut_is_found_where_shares_are_no_mixture_of_sets_that_fit(data: st.DataObject) -> None:
    """Separation is exact: shares with no cut are a convex combination of sets of uses that fit, or less, nearly."""
    room, blocks = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    uses = [sorted(data.draw(st.sets(st.integers(1, min(room, 5)), min_size=1, max_size=2))) for _ in range(blocks)]
    block = np.array([b for b, some in enumerate(uses) for _ in some], np.int64)
    use = np.array([u for some in uses for u in some], np.int64)
    share = np.array([data.draw(st.integers(0, 6)) / 6 for _ in use])
    share /= np.maximum(np.bincount(block, share, blocks), 1.0)[block]
    most, matrix = np.bincount(block, use, blocks).astype(np.int64), sp.csc_array(use[None, :].astype(float))
    found = separated(np.array([room + 1e-9]), most, np.zeros(1, np.int64), matrix, block, share, clock.Budget())
    sets = [np.array(one) for one in itertools.product((0, 1), repeat=len(use)) if use @ one <= room]
    sets = [one for one in sets if np.bincount(block, one, blocks).max() <= 1]
    mixed = scipy.optimize.linprog(
        np.ones(len(sets)), -np.array(sets).T, -share, bounds=(0, None)
    )  # the least total of sets that cover the shares
    if found is None:
        assert mixed.fun <= 1.02
    else:
        weight = found.weight(np.zeros(len(use), np.int64), block, use)
        assert max(weight @ one for one in sets) <= found.limit[0] < weight @ share
        assert weight @ share / found.limit[0] <= mixed.fun + 1e-6
        assert found.limit[0] == heaviest(room, found.weights[0])


def all_runs(jobs: MoldableJobs, grid: CapacityGrid) -> Columns:
    """Return all runs of jobs, which may also be left out, as columns over classes of servers."""
    ends = np.isfinite(jobs.late).cumsum(axis=1).argmax(axis=1)  # the last that is allowed
    found = list(columns_of(jobs, 0, schedules_of_runs(jobs.machines, jobs.options, jobs.earliest, ends)))
    listed, ended = [], []
    for job, choice in found:
        assert isinstance(choice, Scheduled)
        run = choice.found
        use = jobs.machines.use(run.worker_type, run.ps_type, run.workers, run.ps)
        by_class = np.zeros_like(grid.machines.capacity)
        np.add.at(by_class, jobs.machines.kind, use)
        listed.append((job, choice.value, *grid.taken(by_class, run)))
        ended.append(run.end)
    return Columns.of(grid.rows, listed, ended)


def test_a_gang_half_the_time_beside_others_all_the_time_is_cut_off() -> None:
    """Covers cut off a relaxation that runs half a gang in each of two slots, which lowers the bound from 3 to 2.

    The gang needs all four GPUs; two other jobs run in both slots.
    """
    rows = [np.array([0]), np.array([1])]
    gang = [(0, 1.0, row, np.full(1, 4.0)) for row in rows]
    others = [(b, 1.0, np.array([0, 1]), np.ones(2)) for b in (1, 2)]
    problem = Known.of(Packing(np.full(2, 4.0), 3, most=np.array([4, 1, 1])), Columns.of(2, [*gang, *others]))
    relaxed = problem.generate(TIGHT)
    stronger = problem.packing.stronger(relaxed.columns, relaxed.x)
    assert stronger is not None
    assert relaxed.bound == pytest.approx(3.0)
    assert replace(problem, packing=stronger).generate(TIGHT).bound == pytest.approx(2.0)


@settings(max_examples=30)
@given(view=tiny(), complete=st.booleans())
def test_a_dive_ends_in_a_schedule(view: HadarView, complete: bool) -> None:
    pricing = GangPricing(view, complete)
    found = generate(pricing.anything, pricing, TIGHT)
    if found.master is None:
        return
    chosen = Dive(pricing, pricing.anything, found.master).run()
    assert (chosen.use.sum(axis=1) <= pricing.packing.capacity + 1e-9).all()
    assert len(set(chosen.block.tolist())) == len(chosen)
    assert chosen.value.sum() <= found.bound + 1e-6 or (complete and len(chosen) < view.size)


@settings(max_examples=60)
@given(view=tiny(), numbers=PRICES, data=st.data())
def test_pricing_keeps_what_is_decided(view: HadarView, numbers: list[float], data: st.DataObject) -> None:
    """Pricing returns columns that obey all decisions, and no schedule that obeys them pays more than it says."""
    pricing = GangPricing(view, complete=data.draw(st.booleans()))
    covers = data.draw(some_covers(pricing.packing))
    domain = Domain.of(replace(pricing.packing, known=covers))
    prices = np.resize(np.array(numbers), len(domain.packing.limits))
    rows = len(pricing.packing.capacity)
    for _ in range(data.draw(st.integers(1, 3))):
        job = data.draw(st.integers(0, view.size - 1))
        row = data.draw(st.integers(0, rows - 1))
        most = int(pricing.packing.capacity[row])
        low, high = sorted(data.draw(st.tuples(st.integers(0, most), st.integers(0, most))))
        ending = data.draw(st.booleans())
        domain = domain.ending(job, low, high + 2) if ending else domain.using(job, row, low, high)
    found = pricing(prices, domain)
    values = domain.values(found.columns)
    assert (values > -np.inf).all()
    found = replace(found, columns=domain.packing.lifted(found.columns))
    every = domain.packing.lifted(listed(view, pricing))
    profit = domain.profit(every, prices)
    right = np.full(view.size, -np.inf)
    np.maximum.at(right, every.block, profit)
    floor = np.where(domain.must, -np.inf, 0.0)
    assert (np.maximum(found.most, floor) >= np.maximum(right, floor) - 1e-9).all()
    attained = floor.copy()
    np.maximum.at(attained, found.columns.block, domain.profit(found.columns, prices))
    some = np.maximum(found.most, floor) > -1e100
    assert attained[some] == pytest.approx(np.maximum(found.most, floor)[some])
    assert found.by_end is not None
    paid = np.full_like(found.by_end, -np.inf)
    np.maximum.at(paid, (every.block, every.end), profit)
    assert (np.maximum(found.by_end, floor[:, None]) >= np.maximum(paid, floor[:, None]) - 1e-9).all()


def listed(view: HadarView, pricing: GangPricing) -> Columns:
    """Return all schedules of a tiny view as columns."""
    every = schedules(view)
    rows = every.gpu_type * view.slots + every.slot
    uses = [np.flatnonzero(every.schedule == i) for i in range(len(every.job))]
    entries = zip(every.job.tolist(), every.utility.tolist(), uses, strict=True)
    ends = [int(every.slot[use].max()) for use in uses]
    columns = [(job, worth, rows[use], every.gpus[use].astype(float)) for job, worth, use in entries]
    return Columns.of(len(pricing.packing.capacity), columns, ends)


@settings(max_examples=15)
@given(view=tiny(), complete=st.booleans())
def test_hadar_trees_reach_the_optimum(view: HadarView, complete: bool) -> None:
    exact = models.get(f"hadar.p1{'.complete' if complete else ''}")
    if exact.skip(view):
        return
    pricing = GangPricing(view, complete)
    right = exact.run(view).solution
    found = generate(pricing.anything, pricing, TIGHT)
    tree = BranchAndPrice(pricing, found, pricing.anything, True, SolveOptions(), None)
    best = -np.inf if complete else 0.0
    while not tree.done and found.ended != "infeasible":
        if (outcome := tree.explore(best, None)) and len(outcome[1]):
            best = max(best, float(outcome[1].value.sum()))
        assert right.objective is None or max(tree.bound, best) >= right.objective - 1e-6
    assert best == (-np.inf if right.objective is None else pytest.approx(right.objective, abs=1e-5))


def test_limits_say_what_they_are() -> None:
    """A solve that stops at a limit of nodes or of time says which, and its bound is valid."""
    view = PAPERS.get("hadar").view(instances.load("gen/50jobs"))
    spec = models.get("hadar.p2.columns")
    for options, status in (
        (SolveOptions(nodes=0), "gap left"),
        (SolveOptions(time_limit_s=1e-3), "time limit with incumbent"),
    ):
        solution = spec.run(view, options).solution
        assert solution.status == status
        assert solution.bound > solution.objective


def test_rounding_proves_no_infeasibility() -> None:
    """A floor on the total value is not called infeasible because sums in another order differ by rounding."""
    values = (0.3, 0.2, 0.1)
    assert sum(values) < sum(reversed(values))
    columns = Columns.of(1, [(b, value, np.array([0]), np.zeros(1) + 1) for b, value in enumerate(values)])
    problem = Known.of(Packing(np.array([3.0]), 3, cover=True, floor=sum(reversed(values))), columns)
    assert problem.generate().ended == "gap"


def decided(spec: ModelSpec, view: Any) -> Sequence[Seed]:
    """Return the feasible decisions of all heuristics of a model's problem."""
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
    own = {h.id for h in HEURISTICS if h.problem == spec.problem and not h.by_name}
    assert own <= {seed.method for seed in found}
    outcome = spec.run(view, SolveOptions(seeds=found))
    verdict = judge_asked(view, outcome.decision, spec.problem, ())
    assert not verdict.violations
    better = max if spec.sense == "max" else min
    assert better([verdict.objective, *(seed.objective for seed in found)]) == pytest.approx(verdict.objective)


def test_a_seed_that_no_packing_reaches_is_the_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    spec = models.get("hadar.p2.columns")
    (seed,) = [s for s in decided(spec, view) if s.method == "hadar.srtf"]
    monkeypatch.setattr(GangPricing, "insert", lambda *args: None)
    monkeypatch.setattr("schedgap.models.engine.columns.integer.Inserting.load", lambda self, known: None)
    outcome = spec.run(view, SolveOptions(seeds=[seed], nodes=0))
    assert outcome.decision is seed.decision
    assert outcome.solution.objective == seed.objective
    assert outcome.solution.status == "gap left"


def test_a_seed_is_read_as_the_columns_that_it_is() -> None:
    """A decision to start from is read as columns of the same value and GPUs."""
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    spec = models.get("hadar.p2.columns")
    (seed,) = [s for s in decided(spec, view) if s.method == "hadar.fifo"]
    from schedgap.models.hadar.columns import read

    read_back = read(GangPricing(view).worth, view.servers.gpu_type, seed.decision)
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
    """Models do not start from decisions that break a rule or, if all jobs must complete, that leave one out."""
    view = PAPERS.get("hadar").view(instances.load(FIG1))
    cheat, idle = HadarSchedule.of(np.array([[0, 0, 0, 1]])), HadarSchedule.of(np.zeros((0, 4)))
    known = [("hadar.cheat", cheat), ("hadar.idle", idle)]
    assert [s.method for s in seeds(models.get("hadar.p2.columns"), view, known)] == ["hadar.idle"]
    assert seeds(models.get("hadar.p2.columns.complete"), view, known) == []


def test_a_comparison_hands_over_what_heuristics_decide_also_those_that_nobody_asked_for() -> None:
    alone = compare(FIG1, ["hadar.p2.columns"], jobs=2)
    assert [row.method for row in alone.rows] == ["hadar.p2.columns"]
    asked = ["hadar.p2.columns", "hadar.*if*"]
    together = compare(FIG1, asked, jobs=2)
    (beside,) = (row for row in together.rows if row.method == "hadar.p2.columns")
    for row in (alone.rows[0], beside):
        assert int(str(row.termination).split(" known decisions")[0].split()[-1]) > 5
    assert [row.method for row in together.rows] == [spec.id for spec in select(asked, [])]

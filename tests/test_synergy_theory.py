"""Synergy's theorems and errors as properties of random instances, with witnesses where a theorem fails."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pyomo.environ as pyo
import pytest
from conftest import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp
from synergy_cases import instance, job, matrix, mix, pipelines, resting, servers, small
from synergy_rounds import best_run, tiny

from schedgap import instances, models
from schedgap.certificates import certified
from schedgap.harness.check import judge
from schedgap.harness.studies.audit.claims.synergy import different_jobs
from schedgap.heuristics import HEURISTICS, Context
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergyView
from schedgap.models.engine.fluid.single_machine import (
    FluidJobs,
    blended,
    mean_busy_times,
    of_sum,
    shortest_first,
    weigh,
)
from schedgap.models.engine.solve import Session, SolveOptions, StandardForm, build, compile_model, solve
from schedgap.models.engine.solve.session import interior_point
from schedgap.models.provers.registry import prove
from schedgap.models.synergy.configurations import configurations, fitting
from schedgap.models.synergy.ideal import ideal_round
from schedgap.models.synergy.jct import build_intervals, run_of
from schedgap.models.synergy.placement import Demands, demands, placed, placement_form
from schedgap.models.synergy.throughput import (
    FLOORED,
    OPEN,
    QUEUED,
    RELAXED,
    WITH_ORACLE,
    RoundRule,
    build_round,
    equal_split,
    own_floor,
)
from schedgap.models.synergy.unpruned import build_unpruned

EXACT = SolveOptions(rel_gap=0.0)
BOTH = ("V100", "K80")


def optimum(view: SynergyView, rule: RoundRule) -> float | None:
    found = solve(build(build_round, view, rule), EXACT)
    assert found.status in {"optimal", "infeasible"}
    return found.objective


def best_round(view: SynergyView, jobs: Ints, *, floors: bool, everybody: bool) -> float:
    """Return the largest objective of a round of `jobs` on super-machines, by trying every choice of every job."""
    pools, tables = view.pools, view.profiles
    room = np.column_stack((pools.gpus, pools.cpus, pools.memory_gb)) * (1 + 1e-9)
    options = []
    for j in jobs.tolist():
        kind = int(tables.kind[j])
        found = [] if everybody else [(0.0, 0, (0.0, 0.0, 0.0))]
        for i, a, b in product(range(view.types), range(tables.cpus.shape[1]), range(tables.memory_gb.shape[1])):
            cpus, memory_gb, rate = tables.cpus[kind, a], tables.memory_gb[kind, b], tables.rate[kind, i, a, b]
            within = cpus <= view.needs.limit[kind, i, 0] and memory_gb <= view.needs.limit[kind, i, 1]
            fair = view.needs.fair[kind, i] if floors else 0.0
            if within and rate > 0 and rate >= fair and (view.needs.able[kind, i] or not floors):
                found.append(
                    (float(view.weight[j] * rate), i, (float(tables.gpus[kind]), float(cpus), float(memory_gb)))
                )
        options.append(_undominated(found))
    best = -math.inf
    for chosen in product(*options):
        used = np.zeros_like(room)
        for _, i, held in chosen:
            used[i] += held
        if (used <= room).all():
            best = max(best, sum(value for value, *_ in chosen))
    return best


Option = tuple[float, int, tuple[float, float, float]]


def _undominated(found: list[Option]) -> list[Option]:
    """Keep only options that no other option on the same type beats, with no more of anything and no less value."""

    def better(x: Option, y: Option) -> bool:
        return x[1] == y[1] and x[0] >= y[0] and all(p <= q for p, q in zip(x[2], y[2], strict=True)) and x != y

    unique = list(dict.fromkeys(found))
    return [y for y in unique if not any(better(x, y) for x in unique)]


# ------------------------------------------------------------------------------------------ LP1, ILP1, pruning, merging


@given(small(jobs=3))
@settings(max_examples=25)
def test_lp1_bounds_ilp1_which_is_the_best_round(case: Instance) -> None:
    """ILP1 has the best objective of a round, found by search, and LP1 bounds it (Theorems 4.1 and A.1)."""
    view = synergy.view(case)
    exact, relaxed = optimum(view, FLOORED), optimum(view, RELAXED)
    assert exact is not None
    assert relaxed is not None
    assert exact == pytest.approx(best_round(view, view.runnable, floors=True, everybody=True))
    assert relaxed >= exact - 1e-7


@given(small(jobs=3, chips=BOTH))
@settings(max_examples=15)
def test_the_extension_to_several_types_too(case: Instance) -> None:
    view = synergy.view(case)
    exact, relaxed, free = optimum(view, FLOORED), optimum(view, RELAXED), optimum(view, OPEN)
    assert exact is not None
    assert relaxed is not None
    assert free is not None
    assert exact == pytest.approx(best_round(view, view.runnable, floors=True, everybody=True))
    assert exact - 1e-7 <= relaxed <= free + 1e-6
    assert best_round(view, view.runnable, floors=False, everybody=False) <= free + 1e-7


@given(small(jobs=4, chips=BOTH, arrivals=(0.0, 1.0, 2.0, 3.0)))
@settings(max_examples=examples(7))
def test_no_policy_beats_the_best_round_of_the_queue_which_lp1_bounds(case: Instance) -> None:
    """The best round of the whole queue, found by search, is that of the program with integers.

    Policies stay below it, LP1 and its certificate above.
    """
    view = synergy.view(case)
    best = best_round(view, view.queue, floors=False, everybody=False)
    assert best_round(view, view.runnable, floors=False, everybody=False) <= best + 1e-9
    assert optimum(view, replace(QUEUED, integer=True)) == pytest.approx(best)
    outcome = models.get("synergy.lp1.queue").run(view)
    content = prove("synergy.queue", view, outcome, SolveOptions())
    assert content is not None
    proved = certified({"problem": "synergy.queue", **content}, case.plain)
    assert outcome.solution.objective == pytest.approx(proved, rel=1e-6)
    assert proved >= best - 1e-9
    for name in ("greedy", "drf", "drf?by=tenant", "tetris"):
        spec = HEURISTICS.get(f"synergy.{name}")
        verdict = judge(
            case, spec.run(view, Context(np.random.default_rng(0), models.oracle)), spec.problem, spec.claims
        )
        assert verdict.violations == ()
        assert verdict.objective is not None
        assert verdict.objective <= best * (1 + 1e-9)


def round_of(case: Instance) -> SynergyView:
    """Return a view of a case in which some jobs can never run, but not all."""
    try:
        return synergy.view(case)
    except NotApplicableError:
        assume(False)
        raise


def to_the_letter(view: SynergyView, *, integer: bool, split: bool = False) -> float | None:
    """Return the optimum of the paper's program, stated again on plain arrays with a variable for every cell.

    The program is (1)–(5), or (22)–(25) with (5) on each type, or (22)–(26) if `split`. Jobs are listed one by one,
    nothing is pruned, and cells without progress are included.
    """
    tables, needs, jobs = view.profiles, view.needs, view.runnable.tolist()
    usable = fitting(view) if split else needs.able
    cells = [
        (n, i, tables.gpus[kind], tables.cpus[kind, a], tables.memory_gb[kind, b], tables.rate[kind, i, a, b])
        for n, kind in enumerate(tables.kind[jobs].tolist())
        for i, a, b in product(range(view.types), range(tables.cpus.shape[1]), range(tables.memory_gb.shape[1]))
        if usable[kind, i] and tables.cpus[kind, a] <= needs.limit[kind, i, 0]
        if tables.memory_gb[kind, b] <= needs.limit[kind, i, 1]
    ]
    if {n for n, *_ in cells} != set(range(len(jobs))):
        return None
    job, gpu_type = np.array([cell[:2] for cell in cells]).T
    held, rate = np.array([cell[2:5] for cell in cells]), np.array([cell[5] for cell in cells])
    fair = own_floor(view)[job, gpu_type]
    rows: list[tuple[Array, float, float]] = []
    for i, n in product(range(view.types), range(len(jobs))):
        rows.append((((job == n) & (gpu_type == i)) * (rate - fair), -np.inf if split else 0.0, np.inf))
    for i, r in product(range(view.types), range(3)):
        pools = (view.pools.gpus, view.pools.cpus, view.pools.memory_gb)
        rows.append(((gpu_type == i) * held[:, r], -np.inf, float(pools[r][i]) * (1 + 1e-9)))
    for n, least in enumerate(equal_split(view) if split else np.zeros(len(jobs))):
        rows += [((job == n).astype(float), 1.0, 1.0), ((job == n) * rate, float(least) * (1 - 1e-9), np.inf)]
    matrix, low, high = (np.array(part) for part in zip(*rows, strict=True))
    cost = -view.weight[view.runnable][job] * rate
    found = milp(cost, constraints=LinearConstraint(matrix, low, high), integrality=np.full(len(cost), int(integer)))
    return None if found.fun is None else -float(found.fun)


@pytest.mark.parametrize("chips", [("V100",), BOTH], ids=["one type", "two types"])
@pytest.mark.parametrize("split", [False, True], ids=["own fair share", "oracle"])
@given(data=st.data())
@settings(max_examples=examples(8))
def test_optima_are_those_of_the_printed_programs_also_where_cells_make_no_progress(
    data: st.DataObject, chips: tuple[str, ...], split: bool
) -> None:
    view = round_of(data.draw(resting(jobs=4, chips=chips)))
    pairs = [(WITH_ORACLE, True)] if split else [(RELAXED, False), (FLOORED, True)]
    for rule, integer in pairs:
        printed = to_the_letter(view, integer=integer, split=split)
        for pruned in (True, False):
            found = optimum(view, replace(rule, pruned=pruned))
            assert found == (None if printed is None else pytest.approx(printed, rel=1e-6))
    if not split:
        assert optimum(view, FLOORED) == pytest.approx(best_round(view, view.runnable, floors=True, everybody=True))


def test_a_part_of_a_job_at_rest_pays_for_a_fast_one() -> None:
    """The relaxation gains by letting jobs rest part of the time: 10 on 12 CPUs, where jobs without rest make 4.

    Four jobs each run a quarter of the time on 9 CPUs and rest on 1; without rest, each has 3 CPUs.
    """
    steep = matrix((1.0, 3.0, 9.0), (62.5,), [[0.0], [1.0], [10.0]])
    view = synergy.view(instance([job(sensitivity=steep)] * 4, [servers(1, gpus=4, cpus=12.0, memory_gb=250.0)]))
    assert optimum(view, RELAXED) == pytest.approx(10.0)
    assert optimum(view, FLOORED) == pytest.approx(4.0)
    literal = build(build_unpruned, view)
    assert solve(literal, EXACT).objective == pytest.approx(4.0)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(literal)
    assert solve(literal).objective == pytest.approx(10.0)


@given(small(jobs=6, chips=BOTH))
@settings(max_examples=examples(6))
def test_dominated_configurations_change_no_optimum(case: Instance) -> None:
    view = synergy.view(case)
    for rule in (FLOORED, RELAXED, OPEN, WITH_ORACLE):
        kept, everything = optimum(view, rule), optimum(view, replace(rule, pruned=False))
        assert (kept is None) == (everything is None)
        if kept is not None:
            assert kept == pytest.approx(everything, rel=1e-7)


@given(small(jobs=6, chips=BOTH))
@settings(max_examples=15)
def test_what_pruning_keeps_is_undominated_and_covers_the_rest(case: Instance) -> None:
    view = synergy.view(case)
    few, all_of_them = (configurations(view, fitting(view), pruned=pruned) for pruned in (True, False))
    one, other = (np.column_stack((c.kind, c.gpu_type, c.level, c.rate)) for c in (few, all_of_them))
    same = (one[:, None, :2] == other[None, :, :2]).all(axis=2)
    covers = same & (one[:, None, 2:4] <= other[None, :, 2:4]).all(axis=2) & (one[:, None, 4] >= other[None, :, 4])
    assert covers.any(axis=0).all()
    assert (covers[:, :].sum(axis=0) >= 1).all()
    among = (one[:, None, :2] == one[None, :, :2]).all(axis=2)
    among &= (one[:, None, 2:4] <= one[None, :, 2:4]).all(axis=2) & (one[:, None, 4] >= one[None, :, 4])
    assert among.sum() == len(one)


@given(small(jobs=2), st.integers(1, 3))
@settings(max_examples=20)
def test_counting_equal_jobs_is_one_binary_per_job(case: Instance, copies: int) -> None:
    several = [j.model_copy(update={"id": f"{j.id}.{i}"}) for i in range(copies) for j in case.jobs]
    view = synergy.view(case.model_copy(update={"jobs": tuple(several)}))
    literal = build(build_unpruned, view)
    assert optimum(view, FLOORED) == pytest.approx(solve(literal, EXACT).objective, rel=1e-7)
    # The relaxations are equal, too: a class can mix configurations as its single jobs could.
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(literal)
    assert optimum(view, RELAXED) == pytest.approx(solve(literal).objective, rel=1e-6)


@given(small(jobs=5))
@settings(max_examples=15)
def test_with_one_type_the_extension_is_lp1(case: Instance) -> None:
    """With one GPU type, rows for GPUs change nothing, because the runnable jobs fit the GPUs."""
    view = synergy.view(case)
    for rule in (FLOORED, RELAXED):
        assert optimum(view, rule) == pytest.approx(optimum(view, replace(rule, gpu_rows=False)), rel=1e-8)


@given(small(jobs=6, chips=BOTH))
@settings(max_examples=20)
def test_shares_are_always_feasible(case: Instance) -> None:
    """Jobs that `pick` makes runnable can all have their shares, so ILP1 always has a solution."""
    view = synergy.view(case)
    assert optimum(view, FLOORED) is not None
    assert optimum(view, RELAXED) is not None


def test_shares_rounded_up_make_lp1_infeasible() -> None:
    """LP1 is infeasible if W[C_g, M_g] is read at the next higher levels: those add up to more than there is.

    Off the grid, it must be read at the levels below.
    """
    rising = matrix((1.0, 2.0, 3.0), (10.0,), [[1.0], [2.0], [3.0]])
    view = synergy.view(instance([job(sensitivity=rising)] * 8, [servers(1, cpus=20.0)]))
    assert view.needs.share[0, 0, 0] == 2.0
    assert optimum(view, RELAXED) == pytest.approx((4 * 2 + 4 * 3) / 2)
    ceiling = view.profiles.rate[:, :, 2, 0]
    upward = replace(view, needs=replace(view.needs, fair=ceiling))
    assert optimum(upward, RELAXED) is None


def test_without_gpu_rows_a_type_is_used_twice() -> None:
    """(22)–(26) as printed let two gangs use the fast type that has GPUs for one, because rows for GPUs are missing."""
    light = matrix((1.0, 3.0), (10.0, 62.5), [[1.0, 1.0], [1.0, 1.0]])
    jobs = [job(gpus=4, rates={"V100": 4.0, "K80": 3.0}, sensitivity=light)] * 2
    hosts = [servers(1, "V100", 4, 12.0, 250.0), servers(1, "K80", 4, 12.0, 250.0)]
    view = synergy.view(instance(jobs, hosts))
    half = RoundRule(lambda v: np.full((2, 2), 1e-3), integer=True)
    assert optimum(view, half) == pytest.approx(1.0 + 0.75)
    # 8 GPUs of the fast type in use, of 4.
    assert optimum(view, replace(half, gpu_rows=False)) == pytest.approx(2.0)


def test_the_equal_split_on_one_type_is_at_most_fair() -> None:
    view = synergy.view(mix(40, [servers(4)]))
    assert (equal_split(view) <= own_floor(view)[:, 0] * (1 + 1e-12)).all()


# ------------------------------------------------------------------------------------------------------ Theorem A.2


def wanted_of(view: SynergyView) -> Demands:
    found = ideal_round(view, EXACT)[1]
    assert found is not None
    return demands(view, found)


def lp2(wanted: Demands, cost: Array | None = None) -> StandardForm:
    room = np.ones((3, len(wanted.hosts)))
    cost = wanted.host.astype(float) if cost is None else cost
    return placement_form(wanted.part, wanted.host, wanted.demand, wanted.count, room, cost)


@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans())
@settings(max_examples=15)
def test_a_vertex_fragments_at_most_three_jobs_per_server(seed: int, count: int, pipeline: bool) -> None:
    made = (pipelines if pipeline else mix)(12 * count, [servers(count)], seed=seed)
    view = synergy.view(made)
    wanted = wanted_of(view)
    # The paper has no objective: any vertex will do.
    cost = np.random.default_rng(seed).random(len(wanted.host))
    for objective in (cost, None):
        found = Session(lp2(wanted, objective), SolveOptions(method="simplex")).run()
        assert (found.column_values > 1e-9).sum() <= 3 * count + len(wanted.count)
        assert (np.bincount(placed(view, wanted, found.column_values).job) > 1).sum() <= 3 * count


def test_an_interior_point_fragments_more() -> None:
    """Theorem A.2 is about vertices: an interior point of LP2 splits every job."""
    view = synergy.view(different_jobs())
    wanted = wanted_of(view)
    assert len(wanted.count) == 16
    x = interior_point(lp2(wanted, np.zeros(len(wanted.host)))).reshape(16, 2)
    assert ((x > 0.01).sum(axis=1) > 1).sum() == 16 > 3 * 2
    at_vertex = Session(lp2(wanted), SolveOptions(method="simplex")).run().column_values
    assert ((at_vertex.reshape(16, 2) > 1e-9).sum(axis=1) > 1).sum() <= 3 * 2


def test_all_x_positive_is_no_lp_and_no_vertex() -> None:
    """(19) as printed requires all x > 0, which no linear program can state and no vertex can have."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    with pytest.raises(ValueError, match="strict inequality"):
        m.row = pyo.Constraint(expr=m.x > 0)
    wanted = wanted_of(synergy.view(different_jobs()))
    # 32 variables, and a vertex has at most 3s + n = 22 positive ones.
    assert len(wanted.host) > 3 * 2 + 16
    least = lp2(wanted, np.ones(len(wanted.host)))
    bounded = replace(least, lower=np.full(len(wanted.host), 1e-6))
    found = Session(bounded, SolveOptions(method="simplex")).run().column_values
    # Even with a tiny lower bound on all x, some x of the optimum are at that bound.
    assert (found <= 1e-6 + 1e-9).any()


def test_more_than_all_of_a_job_is_never_needed() -> None:
    """(18), ≥ 1 in the paper, may be = 1: scaling a solution down keeps every capacity."""
    wanted = wanted_of(synergy.view(mix(20, [servers(4)], gangs=(1,))))
    form = lp2(wanted, -np.ones(len(wanted.host)))
    upper = np.where(np.isinf(form.row_lower), form.row_upper, np.inf)
    x = Session(replace(form, row_upper=upper), SolveOptions(method="simplex")).run().column_values
    given_out = np.bincount(wanted.demand, x)
    assert (given_out > wanted.count + 0.5).any()
    scaled = x * (wanted.count / given_out)[wanted.demand]
    assert (form.matrix @ scaled <= form.row_upper + 1e-9).all()
    np.testing.assert_allclose(np.bincount(wanted.demand, scaled), wanted.count)


# ---------------------------------------------------------------------------------------------- mean completion times


def jct_bound(view: SynergyView) -> float:
    found = models.get("synergy.jct").run(view).solution.bound
    assert found is not None
    return found


def simple_bounds(run: FluidJobs, weights: np.ndarray) -> list[float]:
    """Return the bounds (a) and (b) on the sum of completion times."""
    return [bound(run.volume(weights), 0.0) for bound in of_sum(run)]


@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.integers(1, 4), st.sampled_from([0.0, 40.0, 150.0])), min_size=1, max_size=3
    )
)
@example([(8, 4, 0.0), (2, 4, 40.0), (2, 2, 150.0)])
@settings(max_examples=examples(6))
def test_no_schedule_is_faster_than_the_bound(given_jobs: list[tuple[int, int, float]]) -> None:
    works, gpus, submit_s = (list(x) for x in zip(*given_jobs, strict=True))
    view = synergy.view(tiny([100 * w for w in works], gpus, submit_s))
    best = best_run(view, 14)
    assume(best < math.inf)
    assert jct_bound(view) <= best * (1 + 1e-9)
    assert models.get("synergy.jct_intervals").run(view).solution.bound <= best * (1 + 1e-9)


def test_the_bound_is_reached_where_nobody_waits() -> None:
    view = synergy.view(tiny([1200], [4], [0.0]))
    # Eight CPUs are two per GPU: 8 iterations per second.
    assert jct_bound(view) == pytest.approx(150.0)
    assert best_run(view, 3) == pytest.approx(150.0)
    one_after_another = synergy.view(tiny([1600, 1600], [4, 4], [0.0, 0.0]))
    assert best_run(one_after_another, 5) == pytest.approx(300.0)
    assert jct_bound(one_after_another) == pytest.approx(300.0)


def test_completion_counts_from_the_arrival_and_starts_with_a_round() -> None:
    view = synergy.view(tiny([100], [1], [40.0]))
    assert view.arrival.tolist() == [1]
    alone = (100 / 3) + 60
    assert jct_bound(view) == pytest.approx(alone)
    assert best_run(view, 3) == pytest.approx(alone)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=5),
)
@settings(max_examples=60)
def test_one_machine_by_exhaustive_search(jobs: list[tuple[int, int]]) -> None:
    """Bounds on one machine equal an exhaustive search; with integer data it changes jobs at integer times only."""
    start, volume = (np.array(x, float) for x in zip(*jobs, strict=True))
    memo: dict[tuple[int, tuple[int, ...]], tuple[float, float]] = {}

    def search(t: int, left: tuple[int, ...]) -> tuple[float, float]:
        if not any(left):
            return 0.0, 0.0
        if (t, left) not in memo:
            ready = [i for i, rest in enumerate(left) if rest and start[i] <= t]
            found = [] if ready else [search(t + 1, left)]
            for i in ready:
                ended, busy = search(t + 1, (*left[:i], left[i] - 1, *left[i + 1 :]))
                found.append((ended + (t + 1) * (left[i] == 1), busy + (t + 0.5) / volume[i]))
            memo[t, left] = min(x for x, _ in found), min(y for _, y in found)
        return memo[t, left]

    ended, busy = search(0, tuple(int(v) for v in volume))
    assert shortest_first(start, volume) == pytest.approx(ended)
    assert mean_busy_times(start, volume, np.ones(len(jobs))).sum() == pytest.approx(busy)


@given(st.integers(0, 10**6), st.integers(2, 30))
@settings(max_examples=10)
def test_the_lp_over_intervals_and_the_fast_bound(seed: int, n: int) -> None:
    made = mix(n, [servers(2)], seed=seed)
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 20, n) * 300.0
    jobs = tuple(j.model_copy(update={"submit_s": s}) for j, s in zip(made.jobs, at.tolist(), strict=True))
    view = synergy.view(made.model_copy(update={"jobs": jobs}))
    run = run_of(view)
    weights = weigh(run)
    busy = simple_bounds(run, weights)[1]
    fast = (busy - float(view.workload.arrival_s.sum())) / n
    loose, capped = (solve(build(build_intervals, view, weights, capped=c)) for c in (False, True))
    length = loose.model.mean_length.value * n
    assert loose.objective - 1e-6 <= fast <= loose.objective + length + 1e-6
    assert loose.objective <= capped.objective + 1e-6


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4))
@settings(max_examples=40)
def test_parts_by_exhaustive_search(jobs: list[tuple[int, int, int]]) -> None:
    """Serving the largest part per volume first minimises the weighted mean busy times."""
    start, volume, part = (np.array(x, float) for x in zip(*jobs, strict=True))

    @cache
    def least(t: int, left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        ready = [i for i, rest in enumerate(left) if rest and start[i] <= t]
        after = [(i, (*left[:i], left[i] - 1, *left[i + 1 :])) for i in ready]
        found = [part[i] * (t + 0.5) / volume[i] + least(t + 1, rest) for i, rest in after]
        return float(min(found, default=least(t + 1, left) if not ready else math.inf))

    found = float(part @ mean_busy_times(start, volume, part))
    assert found == pytest.approx(least(0, tuple(int(v) for v in volume)))


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=10)
def test_blending_is_between_the_simple_bounds_and_the_capped_lp(seed: int, count: int) -> None:
    view = synergy.view(mix(20, [servers(count)], seed=seed))
    run = run_of(view)
    weights = weigh(run)
    best, _ = blended(run, run.volume(weights))
    assert best >= max(simple_bounds(run, weights)[1], float((run.start + run.alone).sum())) * (1 - 1e-12)
    capped = solve(build(build_intervals, view, weights, intervals=200))
    length = capped.model.mean_length.value * 20
    assert best / 20 <= capped.objective + length + 1e-6


def test_every_weight_gives_a_bound_and_the_search_a_better_one() -> None:
    view = synergy.view(mix(60, [servers(2)]))
    run = run_of(view)
    found = max(simple_bounds(run, weigh(run)))
    rng = np.random.default_rng(0)
    others = [max(simple_bounds(run, rng.dirichlet(np.ones(3)))) for _ in range(20)]
    assert found >= max(others) * 0.98
    # No resource with these weights is used more than there is by the jobs of ILP1's round.
    held = models.get("synergy.ilp1").run(view).decision
    total = np.array([view.pools.gpus[0], view.pools.cpus[0], view.pools.memory_gb[0]])
    used = np.array([held.gpus.sum(), held.cpus.sum(), held.memory_gb.sum()]) / total
    assert weigh(run) @ used <= 1 + 1e-9
    rate = view.profiles.rate_of(view.profiles.kind[held.job], held.server, held.cpus, held.memory_gb)
    position = np.searchsorted(view.possible, held.job)
    assert (run.volume(weigh(run))[position] / view.workload.work[held.job] * rate).sum() <= 1 + 1e-9


def test_thousands_of_jobs_are_bounded() -> None:
    view = synergy.view(instances.load("gen/2000jobs"))
    assert jct_bound(view) > 0


def test_lp1_compiles_to_few_columns() -> None:
    view = synergy.view(mix(512, [servers(64)], gangs=(1,)))
    assert compile_model(build(build_round, view, FLOORED)).matrix.shape[1] < 100

"""Synergy's models on worked instances: what they decide and refuse, and that statements and arrays agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synergy_cases import instance, job, matrix, mix, pipelines, servers

from schedgap import instances, models
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergySchedule, SynergyView
from schedgap.models.engine.solve import SolveOptions, StandardForm, build, compile_model, solve
from schedgap.models.engine.solve.scaling import units
from schedgap.models.synergy.configurations import configurations, fitting
from schedgap.models.synergy.ideal import FEW, ideal_round, round_form
from schedgap.models.synergy.placement import Demands, build_fewest, build_vertex, demands, placed, placement_form
from schedgap.models.synergy.throughput import (
    FLOORED,
    OPEN,
    RoundRule,
    build_round,
    choices,
    equal_split,
    own_floor,
    passes,
)

EXACT = SolveOptions(rel_gap=0.0)
TOLERANCE = 1 + 1e-9


def progress(view: SynergyView, found: SynergySchedule) -> float:
    """Check a decision on super-machines against the tables, and return its objective."""
    kind, i = view.profiles.kind[found.job], found.server
    assert (np.diff(np.sort(found.job)) > 0).all()
    assert set(found.job) <= set(view.runnable)
    assert (found.gpus == view.workload.gpus[found.job]).all()
    held = np.column_stack((found.cpus, found.memory_gb))
    assert (held <= view.needs.limit[kind, i] * TOLERANCE).all()
    for amount, pool in ((found.gpus, view.pools.gpus), (found.cpus, view.pools.cpus)):
        assert (np.bincount(i, amount, view.types) <= pool * TOLERANCE).all()
    assert (np.bincount(i, found.memory_gb, view.types) <= view.pools.memory_gb * TOLERANCE).all()
    rate = view.profiles.rate_of(kind, i, found.cpus, found.memory_gb)
    assert (rate > 0).all()
    return float(view.weight[found.job] @ rate)


def ideal(view: SynergyView, method: str) -> float:
    """Return the optimum of an exact model of ``synergy.ideal``, and check that all jobs make their fair progress."""
    outcome = models.get(method).run(view, EXACT)
    found = outcome.decision
    assert outcome.solution.status == "optimal"
    assert sorted(found.job) == sorted(view.runnable)
    kind = view.profiles.kind[found.job]
    rate = view.profiles.rate_of(kind, found.server, found.cpus, found.memory_gb)
    assert (rate >= view.needs.fair[kind, found.server] * (1 - 1e-9)).all()
    assert progress(view, found) == pytest.approx(outcome.solution.objective)
    return float(outcome.solution.objective)


def on_servers(view: SynergyView, found: SynergySchedule) -> int:
    """Check that a placement is complete, proportional and within capacity; return how many jobs it splits."""
    for name in ("gpus", "cpus", "memory_gb"):
        used = np.bincount(found.server, getattr(found, name), view.servers.size)
        assert (used <= getattr(view.servers, name) * TOLERANCE).all()
        if name != "gpus":
            each = getattr(found, name) / found.gpus
            low, high = np.full(view.size, np.inf), np.zeros(view.size)
            np.minimum.at(low, found.job, each)
            np.maximum.at(high, found.job, each)
            assert (high[view.runnable] <= low[view.runnable] * TOLERANCE).all()
    whole = np.bincount(found.job, found.gpus, view.size)
    np.testing.assert_allclose(whole[view.runnable], view.workload.gpus[view.runnable], rtol=1e-9)
    assert (found.gpus > 0).all()
    chips = view.servers.gpu_type[found.server]
    assert all(len(set(chips[found.job == j])) == 1 for j in view.runnable)
    return int((np.bincount(found.job) > 1).sum())


def place(view: SynergyView, method: str) -> int:
    outcome = models.get(method).run(view, EXACT)
    assert outcome.solution.status == "optimal"
    return on_servers(view, outcome.decision)


# --------------------------------------------------------------------------------------------- progress of a round


def test_the_paper_example() -> None:
    view = synergy.view(instances.load("paper/synergy-example"))
    most = ideal(view, "synergy.ilp1")
    assert ideal(view, "synergy.ilp1.unpruned") == pytest.approx(most, rel=1e-9)
    assert models.get("synergy.lp1").run(view).solution.objective >= most
    # Table 3 holds 23/400, 12/450, 1/100, 12/50: one of the feasible rounds.
    table = view.profiles.rate_of(
        view.profiles.kind, np.zeros(4, np.int64), *np.array([[23.0, 12, 1, 12], [400, 450, 100, 50]])
    )
    assert most >= float(view.weight @ table)
    assert float(view.weight @ table) > 4.5


def test_a_round_of_200_jobs_on_three_types() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    most = ideal(view, "synergy.hetero.ilp1")
    wider = ("hetero.lp1", "lp1.free", "lp1.queue")
    relaxed, free, queue = (models.get(f"synergy.{name}").run(view).solution.objective for name in wider)
    assert most <= relaxed + 1e-6 <= free + 2e-6
    assert queue > 1.5 * free


@pytest.mark.parametrize("raw", [False, True])
def test_both_objectives(raw: bool) -> None:
    view = synergy.view(mix(24, [servers(6)]), raw=raw)
    assert (view.weight == 1).all() == raw
    most = ideal(view, "synergy.ilp1")
    assert ideal(view, "synergy.ilp1.unpruned") == pytest.approx(most)
    assert models.get("synergy.lp1").run(view).solution.objective >= most - 1e-9


def test_models_name_the_one_that_fits_the_cluster() -> None:
    mixed, plain = instances.load("gen/20jobs"), instances.load("paper/synergy-example")
    for method in ("synergy.lp1", "synergy.ilp1", "synergy.ilp1.unpruned"):
        with pytest.raises(NotApplicableError, match=r"synergy\.hetero\.lp1"):
            models.get(method).solve(mixed)
    for method in ("synergy.hetero.lp1", "synergy.hetero.ilp1"):
        with pytest.raises(NotApplicableError, match=r"synergy\.lp1"):
            models.get(method).solve(plain)
    assert "synergy.ilp1" in str(
        models.get("synergy.ilp1.unpruned").too_large(synergy.view(pipelines(200, [servers(25)])))
    )


def test_configurations_stay_within_what_a_gang_may_hold() -> None:
    view = synergy.view(pipelines(30, [servers(8)]))
    everything = configurations(view, fitting(view), pruned=False)
    few = configurations(view, fitting(view))
    assert 0 < few.size < everything.size / 3
    for found in (everything, few):
        limit = view.needs.limit[found.kind, found.gpu_type]
        assert (found.held()[:, 1:] <= limit * TOLERANCE).all()
        assert (found.rate > 0).all()
        a, b = found.level.T
        np.testing.assert_array_equal(view.profiles.rate[found.kind, found.gpu_type, a, b], found.rate)


def test_equal_jobs_are_counted() -> None:
    view = synergy.view(instance([("Synergy ResNet18", 1)] * 6 + [("Synergy GNMT", 1)] * 2))
    form = compile_model(build(build_round, view, FLOORED))
    assert form.upper.shape[0] < 30
    found = models.get("synergy.ilp1").run(view, EXACT).decision
    assert sorted(found.job) == list(range(8))


def test_rules_are_templates() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    model = build(build_round, view, FLOORED)
    assert type(model.cpus_2[0]).__name__ == "TemplateConstraintData"
    assert type(model.one_each_4[0]).__name__ == "TemplateConstraintData"
    model = build(build_vertex, view)
    assert type(model.capacity_15_17[0, 0]).__name__ == "TemplateConstraintData"


def by_index(form: StandardForm, variable: Any) -> StandardForm:
    """Put the columns of a compiled model into the order of its variable's indices."""
    where = {id(v): i for i, v in enumerate(form.columns)}
    order = [where[id(v)] for v in variable.values()]
    return replace(form, matrix=form.matrix[:, order], cost=form.cost[order])


def scaled(model: Any) -> StandardForm:
    """Compile a model in the units that it declares."""
    form = compile_model(model)
    return units(form).scaled(form)


def rows(form: StandardForm) -> list[tuple[float, ...]]:
    """Return the rows of a compiled model with their bounds, sorted."""
    dense = np.column_stack((form.matrix.toarray(), form.row_lower, form.row_upper))
    return sorted(map(tuple, np.round(dense, 12).tolist()))


def test_prices_are_those_of_a_cpu_and_a_gigabyte() -> None:
    """The prices of (2)–(4), times the amounts there are, sum to the optimum of LP1 without floors."""
    view = synergy.view(mix(24, [servers(2)]))
    statement = build(build_round, view, OPEN)
    answer = solve(statement, SolveOptions(method="simplex"))
    pools = view.pools
    side = {"gpus_per_type[0]": pools.gpus[0], "cpus_2[0]": pools.cpus[0], "memory_3[0]": pools.memory_gb[0]}
    side |= {f"at_most_one_4[{e}]": jobs for e, jobs in statement.jobs.items()}
    assert answer.duals.keys() == side.keys()
    assert sum(price * side[row] for row, price in answer.duals.items()) == pytest.approx(answer.objective, rel=1e-6)


@pytest.mark.parametrize("case", ["gen/20jobs", "paper/synergy-example", "gen/200jobs"])
def test_arrays_are_the_statements(case: str) -> None:
    view = synergy.view(instances.load(case))
    model = build(build_round, view, FLOORED)
    stated, direct = by_index(scaled(model), model.y), round_form(view, choices(view, FLOORED))
    assert rows(stated) == rows(direct)
    np.testing.assert_allclose(stated.cost, direct.cost)
    wanted = wanted_of(view)
    model = build(build_vertex, view, wanted)
    stated = by_index(scaled(model), model.x)
    room = np.ones((3, len(wanted.hosts)))
    direct = placement_form(wanted.part, wanted.host, wanted.demand, wanted.count, room, wanted.host.astype(float))
    assert rows(stated) == rows(direct)
    np.testing.assert_allclose(stated.cost, direct.cost)


@pytest.mark.parametrize(
    "case",
    [
        mix(150, [servers(40), servers(40, "K80")], gangs=range(1, 9)),
        pipelines(40, [servers(6)]),
        pipelines(30, [servers(3), servers(3, "P100", cpus=32.0)]),
    ],
    ids=["mixes", "pipelines", "two types"],
)
def test_rounding_the_lp_finds_the_optimum_of_the_statement(case: Instance) -> None:
    view = synergy.view(case)
    assert len(choices(view, FLOORED).at) > FEW
    stated = solve(build(build_round, view, FLOORED), EXACT).objective
    for options in (EXACT, SolveOptions()):
        solution, _ = ideal_round(view, options)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(stated, rel=1e-6 if options.rel_gap else 1e-9)
        assert solution.bound >= stated * (1 - 1e-9)


def wanted_of(view: SynergyView) -> Demands:
    found = ideal_round(view, EXACT)[1]
    assert found is not None
    return demands(view, found)


# ------------------------------------------------------------------------------------------------------- placement


@pytest.mark.parametrize(
    "case",
    [
        instances.load("paper/synergy-example"),
        instances.load("gen/200jobs"),
        mix(40, [servers(8)]),
        pipelines(40, [servers(8)]),
        instance([("Synergy ResNet18", 12), ("Synergy GNMT", 2), ("Synergy M5", 2)], [servers(2)]),
    ],
    ids=lambda case: case.name,
)
def test_placements_are_whole_and_few_are_fragmented(case: Instance) -> None:
    view = synergy.view(case)
    at_vertex = place(view, "synergy.lp2.vertex")
    assert place(view, "synergy.lp2.min_fragments") <= at_vertex <= 3 * view.servers.size


def test_the_fewest_fragments_of_hand_made_cases() -> None:
    # Two gangs of 3 fill 6 of 2 × 4 GPUs whole; a third of 2 finds one GPU on each server.
    flat = matrix((1.0,), (10.0,), [[1.0]])
    jobs = [job(gpus=3, sensitivity=flat), job(gpus=3, sensitivity=flat), job(gpus=2, sensitivity=flat)]
    view = synergy.view(instance(jobs, [servers(2, gpus=4)]))
    assert place(view, "synergy.lp2.min_fragments") == 1
    # A gang larger than a server is always fragmented, others need not be.
    view = synergy.view(instance([job(gpus=6, sensitivity=flat), job(gpus=2, sensitivity=flat)], [servers(2, gpus=4)]))
    assert place(view, "synergy.lp2.min_fragments") == 1
    view = synergy.view(instance([job(gpus=2, sensitivity=flat)] * 4, [servers(2, gpus=4)]))
    assert place(view, "synergy.lp2.min_fragments") == 0


def test_servers_of_a_type_that_differ_may_leave_no_placement() -> None:
    """If servers of a type differ, the super-machine's optimum may have no placement on them.

    Both gangs get the CPUs per GPU of all servers together, which no single server has for both.
    """
    needy = matrix((2.0, 5.0), (10.0,), [[1.0], [3.0]])
    hosts = [servers(1, gpus=4, cpus=8.0), servers(1, gpus=4, cpus=40.0)]
    view = synergy.view(instance([job(gpus=4, sensitivity=needy)] * 2, hosts))
    assert ideal(view, "synergy.ilp1") == pytest.approx(6.0)
    for method in ("synergy.lp2.vertex", "synergy.lp2.min_fragments"):
        outcome = models.get(method).run(view, EXACT)
        assert outcome.solution.status == "infeasible"
        assert outcome.decision is None
    with pytest.raises(NotApplicableError, match="infeasible"):
        models.oracle("synergy.lp2.vertex", view)


def test_fractions_fill_whole_jobs_first() -> None:
    view = synergy.view(instance([("Synergy GNMT", 2)] * 5, [servers(3, gpus=4)]))
    wanted = wanted_of(view)
    assert len(wanted.count) == 1
    found = placed(view, wanted, np.array([1.6, 1.7, 1.7 + 1e-12]))
    entries = sorted(
        (int(j), int(i), round(float(g), 6)) for j, i, g in zip(found.job, found.server, found.gpus, strict=True)
    )
    assert entries == [(0, 0, 2.0), (1, 1, 2.0), (2, 2, 2.0), (3, 0, 1.2), (3, 1, 0.8), (4, 1, 0.6), (4, 2, 1.4)]


def test_a_time_limit_is_an_ordinary_end() -> None:
    view = synergy.view(mix(120, [servers(32)]))
    outcome = models.get("synergy.lp2.min_fragments").run(view, SolveOptions(time_limit_s=0.5))
    assert outcome.solution.status.startswith(("time limit", "optimal"))
    if outcome.decision is not None:
        assert on_servers(view, outcome.decision) >= outcome.solution.bound


def test_numbers_far_apart_stay_within_what_a_solver_takes() -> None:
    """Models are solved although levels and rates are up to sixteen orders of magnitude apart."""
    tiny = matrix((1e-9, 3.0), (1e-9, 62.5), [[1e-8, 1.0], [1.0, 1e4]])
    jobs = [job(gpus=g, rates={"V100": r, "K80": 1e-4}, sensitivity=tiny) for g, r in ((1, 1e4), (8, 1.0), (2, 1e-4))]
    case = instance(jobs, [servers(1), servers(2, "K80", 8, 64.0, 1e6)])
    for raw in (False, True):
        view = synergy.view(case, raw=raw)
        found = ideal(view, "synergy.hetero.ilp1")
        assert found <= models.get("synergy.hetero.lp1").run(view).solution.objective * (1 + 1e-6)
        assert place(view, "synergy.lp2.min_fragments") <= place(view, "synergy.lp2.vertex")
        assert np.isfinite(models.get("synergy.jct").run(view).solution.bound)


def test_a_second_opinion_on_every_model() -> None:
    view = synergy.view(mix(8, [servers(2, gpus=4, cpus=12.0, memory_gb=250.0)]))
    options = replace(EXACT, cross_check=True)
    for method in ("lp1", "ilp1", "ilp1.unpruned", "lp1.free", "lp1.queue", "lp2.vertex", "lp2.min_fragments"):
        assert models.get(f"synergy.{method}").run(view, options).solution.cross_check < 1e-6, method


def test_statements_of_placement_solve_alone() -> None:
    view = synergy.view(mix(10, [servers(2)]))
    assert solve(build(build_vertex, view), SolveOptions(method="simplex")).status == "optimal"
    assert solve(build(build_fewest, view), EXACT).objective == pytest.approx(place(view, "synergy.lp2.min_fragments"))


# -------------------------------------------------------------------------------------------------- with an oracle

FAST_AND_SLOW = [servers(1, "V100", 4, 12.0, 250.0), servers(1, "K80", 4, 12.0, 250.0)]
FLAT = matrix((1.0, 3.0), (10.0, 62.5), [[1.0, 1.0], [1.0, 1.0]])


def test_an_equal_split_of_two_types() -> None:
    rates = {"V100": 4.0, "K80": 1.0}
    jobs = [job(gpus=gpus, rates=rates, sensitivity=FLAT) for gpus in (1, 2, 4)]
    view = synergy.view(instance(jobs, FAST_AND_SLOW))
    # 4/3 GPUs of each type for everybody: more than the gang of 1 needs, less than that of 4.
    assert equal_split(view) == pytest.approx([0.5 * 4 + 0.5 * 1, (4 / 6 * 8 + 4 / 6 * 2) / (8 / 6), (16 + 4) / 3])


def test_the_oracles_floor_decides_who_gets_the_fast_gpus() -> None:
    equal, indifferent = {"V100": 4.0, "K80": 1.0}, {"V100": 1.0, "K80": 1.0}
    jobs = [job(gpus=4, rates=rates, sensitivity=FLAT) for rates in (equal, indifferent)]
    view = synergy.view(instance(jobs, FAST_AND_SLOW))
    outcome = models.get("synergy.hetero").run(view, EXACT)
    assert progress(view, outcome.decision) == pytest.approx(outcome.solution.objective)
    assert dict(zip(outcome.decision.job.tolist(), outcome.decision.server.tolist(), strict=True)) == {0: 0, 1: 1}


def two_on_one_type() -> SynergyView:
    """Return a view of two gangs that both need the fast type, which has GPUs for one of them."""
    jobs = [job(gpus=4, rates={"V100": 4.0, "K80": 1.0}, sensitivity=FLAT)] * 2
    return synergy.view(instance(jobs, FAST_AND_SLOW))


def test_every_job_at_its_oracle_may_be_impossible_and_passes_leave_jobs_out() -> None:
    view = two_on_one_type()
    assert equal_split(view) == pytest.approx([(16 + 4) / 2] * 2)
    assert models.get("synergy.hetero").run(view, EXACT).solution.status == "infeasible"
    (found,) = passes(view)
    assert progress(view, found) == pytest.approx(1.0)
    assert found.server.tolist() == [0]


def test_passes_give_what_is_left_to_the_next_jobs() -> None:
    fast = job(gpus=4, rates={"V100": 4.0, "K80": 1.0}, sensitivity=FLAT)
    slow = job(gpus=2, rates={"V100": 1.0, "K80": 1.0}, sensitivity=FLAT, submit_s=10.0)
    large = job(gpus=8, rates={"V100": 1.0, "K80": 0.0}, sensitivity=FLAT, submit_s=20.0)
    hosts = [servers(2, "V100", 4, 12.0, 250.0), servers(1, "K80", 4, 12.0, 250.0)]
    view = synergy.view(instance([fast, fast, fast, slow, slow, slow, large], hosts))
    found = passes(view)
    held = [(int(j), int(i)) for part in found for j, i in zip(part.job, part.server, strict=True)]
    assert len({j for j, _ in held}) == len(held)
    assert {j for j, _ in held} >= {3, 4}
    assert 6 not in {j for j, _ in held}
    used = sum(np.bincount(part.server, part.gpus, 2) for part in found)
    assert (used <= view.pools.gpus).all()
    assert len(found) == 2
    assert passes(view, queue=[5])[0].job.tolist() == [5]


def test_an_oracle_that_asks_for_too_much() -> None:
    view = two_on_one_type()
    for everybody, status in ((True, "infeasible"), (False, "optimal")):
        rule = RoundRule(lambda v: np.full((2, 2), 1e9), integer=True, everybody=everybody)
        assert solve(build(build_round, view, rule), EXACT).status == status
    assert [part.job.size for part in passes(view, fair=lambda v: np.full(v.runnable.size, 1e9))] == [0]


def test_a_round_without_jobs() -> None:
    view = replace(two_on_one_type(), runnable=np.zeros(0, np.int64))
    for method in ("hetero.lp1", "hetero.ilp1", "lp1.free", "hetero", "lp2.vertex", "lp2.min_fragments"):
        outcome = models.get(f"synergy.{method}").run(view, EXACT)
        assert (outcome.solution.status, outcome.solution.objective) == ("optimal", 0.0), method
        assert outcome.decision is None or outcome.decision.job.size == 0


def test_own_floors_are_those_of_the_type() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    floor = own_floor(view)
    assert floor.shape == (view.runnable.size, 3)
    np.testing.assert_array_equal(floor, view.needs.fair[view.profiles.kind[view.runnable]])


def test_other_rounds_of_the_same_view() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    jobs, _ = view.pick(view.possible[::-1].tolist())
    other = replace(view, runnable=jobs)
    assert set(jobs) != set(view.runnable)
    assert on_servers(other, models.oracle("synergy.lp2.vertex", other)) <= 45

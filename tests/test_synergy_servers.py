"""Rounds on servers by columns: against brute force, and the parts of the method one by one."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from synergy_cases import instance, job, matrix, mix, servers, small
from synergy_rounds import best_on_servers

from schedgap import instances, models
from schedgap.certificates import RefusedError, certified
from schedgap.harness.check import judge
from schedgap.heuristics import HEURISTICS, Context
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergyView
from schedgap.models.engine.solve import Seed, Session, SolveOptions, build, solve
from schedgap.models.provers.registry import prove
from schedgap.models.synergy.servers import (
    FINEST,
    ServerColumns,
    ServerPricing,
    build_servers,
    gathered,
    stepped,
    steps_of,
    too_large,
)
from schedgap.models.synergy.throughput import FLOORED, QUEUED

PROBLEMS = {"synergy.servers": "synergy.fair", "synergy.servers.queue": "synergy.round"}


def proved(view: SynergyView, method: str, rel_gap: float = 1e-9) -> tuple[float, float]:
    """Return the checked objective and the certified bound of a round."""
    outcome = models.get(method).run(view, SolveOptions(rel_gap=rel_gap))
    proof = prove(PROBLEMS[method], view, outcome, SolveOptions())
    assert proof is not None
    bound = certified(proof | {"problem": PROBLEMS[method]}, view.instance.plain)
    assert bound == pytest.approx(outcome.solution.bound, rel=1e-6)
    claims = ("proportional", "all_offered") if method == "synergy.servers" else ()
    verdict = judge(view.instance, outcome.decision, PROBLEMS[method], claims)
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(outcome.solution.objective)
    return verdict.objective, bound


@given(small(jobs=3, chips=("V100", "K80")))
@settings(max_examples=examples(10))
def test_a_round_lies_between_the_columns_and_their_bound(case: instances.Instance) -> None:
    view = synergy.view(case)
    for method in PROBLEMS:
        fair = method == "synergy.servers"
        best = best_on_servers(view, view.runnable if fair else view.queue, fair)
        value, bound = proved(view, method)
        assert value * (1 - 1e-9) <= best <= bound * (1 + 1e-9)


def test_the_columns_find_the_best_round_of_most_small_instances() -> None:
    """Of 20 rounds, the program over columns misses at most one optimum, and the bound is tight for half of them."""
    found, tight = 0, 0
    for seed in range(20):
        view = synergy.view(mix(6, [servers(2, gpus=4, cpus=12.0, memory_gb=250.0)], seed=seed))
        value, bound = proved(view, "synergy.servers")
        whole = best_on_servers(view, view.runnable, True)
        found += value >= whole * (1 - 1e-6)
        tight += bound <= whole * (1 + 1e-6)
    assert found >= 19
    assert tight >= 10


def test_200_jobs_are_within_one_percent() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    loose = {"synergy.servers": 37.66, "synergy.servers.queue": 59.56}  # LP1's, with one machine per GPU type
    for method in PROBLEMS:
        value, bound = proved(view, method, rel_gap=0.005)
        assert bound <= value * 1.01
        assert bound < loose[method] * 0.995


def test_the_statement_and_the_arrays_are_one_program() -> None:
    view = synergy.view(mix(6, [servers(2, gpus=4, cpus=12.0, memory_gb=250.0)], seed=3))
    for rule in (FLOORED, QUEUED):
        columns = ServerColumns(ServerPricing(view, rule))
        columns.add_shares(view)
        columns.priced(SolveOptions())
        form, _ = columns.program()
        model = build(build_servers, view, rule)
        assert len(model.COLUMNS) == len(columns.columns)
        exact = SolveOptions(rel_gap=0.0)
        assert solve(model, exact).objective == pytest.approx(Session(form, exact).run().objective)


def test_a_cluster_whose_servers_are_too_large_is_left_to_the_user() -> None:
    view = synergy.view(instances.load("gen/synergy-128?servers=1&gpus_per_server=128"))
    assert too_large(view, FLOORED) is not None
    assert too_large(synergy.view(instances.load("gen/synergy-128")), FLOORED) is None


def test_a_known_decision_is_kept_if_no_program_is_solved() -> None:
    view = synergy.view(instances.load("paper/synergy-example"))
    best = models.get("synergy.servers").run(view)
    known = Seed("synergy.opt", best.decision, best.solution.objective)
    again = models.get("synergy.servers").run(view, SolveOptions(seeds=[known]))
    assert again.decision is best.decision
    assert again.solution.status == "optimal"
    assert models.get("synergy.servers?seeded=false").run(view, SolveOptions(seeds=[known])).decision is not known


@given(
    st.lists(st.sampled_from((0.0, 0.25, 1 / 3, 1.0, 20.83, 62.5, 125.0, 187.5)), min_size=1, max_size=5),
    st.integers(1, 4),
    st.sampled_from((3.0, 16.0, 250.0)),
)
def test_steps_admit_what_fits_and_nothing_else(amounts: list[float], gpus: int, room: float) -> None:
    """Sets that fit always do so in steps; others do not, except by less than a step of each part."""
    own = np.array(amounts)
    steps = steps_of(own, gpus, room)
    taken = stepped(own, steps, room)
    for size in range(gpus + 1):
        for parts in map(list, combinations_with_replacement(range(len(own)), size)):
            if own[parts].sum() <= room * (1 + 1e-9):
                assert taken[parts].sum() <= steps
            else:
                assert taken[parts].sum() > steps or (steps < FINEST and own[parts].sum() < room * (1 + gpus / steps))


@given(st.integers(1, 8), st.lists(st.integers(0, 8), min_size=1, max_size=6))
def test_gangs_are_gathered_whole_first(gang: int, places: list[int]) -> None:
    assume(sum(places) > 0)
    places[0] += -sum(places) % gang
    found = list(gathered(list(enumerate(places)), gang))
    assert all(sum(n for _, n in parts) == gang for parts in found)
    used = np.zeros(len(places), int)
    for parts in found:
        for server, n in parts:
            used[server] += n
    assert used.tolist() == places
    assert sum(len(parts) == 1 for parts in found) >= sum(n // gang for n in places)


def test_a_gang_is_split_where_that_is_better() -> None:
    """Three gangs of two GPUs on two servers with three: one has to be split, with half of its CPUs on each."""
    table = matrix((1.0, 2.0), (10.0,), [[1.0], [2.0]])
    jobs = [job(gpus=2, rates={"V100": 1.0}, sensitivity=table) for _ in range(3)]
    view = synergy.view(instance(jobs, [servers(2, gpus=3, cpus=6.0, memory_gb=30.0)]))
    value, bound = proved(view, "synergy.servers")
    assert value == pytest.approx(bound) == pytest.approx(3.0)
    decision = models.get("synergy.servers").run(view).decision
    assert sorted(np.bincount(decision.job).tolist()) == [1, 1, 2]


def test_a_round_with_three_gangs_on_servers_of_two_gpus() -> None:
    """Gangs of 3, 2 and 2 GPUs have to share servers; a round with their shares is always among the columns."""
    table = matrix((1.0, 4.0), (20.0, 50.0), [[1.0, 1.0], [1.0, 1.5]])
    jobs = [job(gpus=gpus, rates={"V100": 1.0}, sensitivity=table) for gpus in (3, 2, 3)]
    view = synergy.view(instance(jobs, [servers(4, gpus=2, cpus=8.0, memory_gb=100.0)]))
    columns = ServerColumns(ServerPricing(view, FLOORED))
    columns.add_shares(view)
    form, _ = columns.program()
    assert Session(form, SolveOptions()).run().objective == pytest.approx(3.0)
    assert proved(view, "synergy.servers")[0] == pytest.approx(best_on_servers(view, view.runnable, True))


def test_a_certificate_with_a_changed_number_proves_less_or_nothing() -> None:
    view = synergy.view(instances.load("gen/50jobs"))
    for method, problem in PROBLEMS.items():
        outcome = models.get(method).run(view, SolveOptions(rel_gap=0.01))
        proof = prove(problem, view, outcome, SolveOptions())
        assert proof is not None
        proof |= {"problem": problem}
        bound = certified(proof, view.instance.plain)
        one = 1 / proof["unit"]  # a charge of one fair share
        for changed in (
            {"charges": [c + round(9 * one) * (k == 0) for k, c in enumerate(proof["charges"])]},
            {"charges": [c + round(one) * (k % 2) for k, c in enumerate(proof["charges"])]},
            {"steps": [[1, 1] for _ in proof["steps"]]},
        ):
            assert certified(proof | changed, view.instance.plain) > bound
        if method == "synergy.servers":  # those that may be left out fill the servers here without any charges
            assert certified(proof | {"charges": [0 for _ in proof["charges"]]}, view.instance.plain) > bound
        else:
            with pytest.raises(RefusedError, match="negative"):
                certified(proof | {"charges": [-1 for _ in proof["charges"]]}, view.instance.plain)
        for wrong in (
            {"charges": proof["charges"][1:]},
            {"steps": proof["steps"][1:]},
            {"steps": [[0, 1] for _ in proof["steps"]]},
            {"steps": [[10**6, 10**6] for _ in proof["steps"]]},
            {"slot_s": 1.0},
        ):
            with pytest.raises(RefusedError):
                certified(proof | wrong, view.instance.plain)


@given(small(jobs=5, chips=("V100", "K80"), arrivals=(0.0, 200.0, 900.0)))
@settings(max_examples=examples(10))
def test_prices_over_time_bound_every_run(case: instances.Instance) -> None:
    view = synergy.view(case)
    outcome = models.get("synergy.jct_intervals").run(view)
    proof = prove("synergy.run", view, outcome, SolveOptions())
    assert proof is not None
    bound = certified(proof | {"problem": "synergy.run"}, case.plain)
    assert bound == pytest.approx(outcome.solution.bound, rel=1e-6, abs=1e-6)
    for method in ("synergy.tune.srtf", "synergy.greedy.fifo", "synergy.refill.fifo"):
        decision = HEURISTICS.get(method).run(view, Context(np.random.default_rng(0), models.oracle))
        verdict = judge(case, decision, "synergy.run")
        assert verdict.violations == ()
        assert bound <= verdict.objective * (1 + 1e-9)


def test_prices_over_time_are_tighter_than_one_machine() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    machine, prices = (models.get(f"synergy.{name}").run(view).solution.bound for name in ("jct", "jct_intervals"))
    assert prices > 1.005 * machine

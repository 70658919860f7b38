"""Whole runs by columns over rounds: against brute force, and certificates with changed numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from synergy_cases import instance, job, matrix, servers, small
from synergy_rounds import best_run, tiny

from schedgap import instances, models
from schedgap.certificates import RefusedError, certified
from schedgap.harness.check import judge
from schedgap.heuristics import HEURISTICS, Context
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.models.engine.solve import Seed, SolveOptions
from schedgap.models.provers.registry import prove
from schedgap.models.registry import Outcome
from schedgap.models.synergy.columns import SLICE, RoundPricing, RunSearch, too_large

METHOD, PROBLEM = "synergy.columns", "synergy.run"


def proof_of(view: synergy.SynergyView, outcome: Outcome) -> dict[str, Any]:
    """Return the certificate of a bound."""
    proof = prove(PROBLEM, view, outcome, SolveOptions())
    assert proof is not None
    return proof | {"problem": PROBLEM}


def solved(view: synergy.SynergyView, options: SolveOptions | None = None) -> tuple[float, float, Outcome]:
    """Return the certified bound and the checked objective of a run, and the outcome."""
    outcome = models.get(METHOD).run(view, options)
    bound = certified(proof_of(view, outcome), view.instance.plain)
    assert bound == pytest.approx(outcome.solution.bound, rel=1e-6, abs=1e-6)
    verdict = judge(view.instance, outcome.decision, PROBLEM)
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(outcome.solution.objective)
    assert bound <= verdict.objective * (1 + 1e-9)
    return bound, verdict.objective, outcome


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.0, 40.0, 150.0])), min_size=1, max_size=3
    )
)
@settings(max_examples=12)
def test_the_best_run_lies_between_bound_and_schedule(given_jobs: list[tuple[int, int, float]]) -> None:
    """There is one server, so that the best run on one machine per GPU type is the best one on servers."""
    works, gpus, submit_s = (list(x) for x in zip(*given_jobs, strict=True))
    view = synergy.view(tiny([100 * w for w in works], gpus, submit_s))
    best = best_run(view, 8)
    bound, value, _ = solved(view)
    assert bound <= best * (1 + 1e-9)
    assert best == math.inf or value >= best * (1 - 1e-9)


@given(small(jobs=5, chips=("V100", "K80"), arrivals=(0.0, 200.0, 900.0)))
@settings(max_examples=examples(5))
def test_rounds_bound_every_run(case: Instance) -> None:
    view = synergy.view(case)
    bound, value, _ = solved(view)
    over_intervals = models.get("synergy.jct_intervals").run(view).solution.bound
    assert bound >= over_intervals - 2e-3 * abs(value)
    for method in ("synergy.tune.srtf", "synergy.greedy.fifo", "synergy.refill.fifo"):
        decision = HEURISTICS.get(method).run(view, Context(np.random.default_rng(0), models.oracle))
        assert bound <= judge(case, decision, PROBLEM).objective * (1 + 1e-9)


def test_200_jobs_are_within_two_percent() -> None:
    view = synergy.view(instances.load("gen/200jobs"))
    pricing = RoundPricing(view)
    found = pricing.priced(SolveOptions())
    search = RunSearch(view, pricing, found.prices, 0)
    search.search(20_000, (0.05, 0.0))
    proof = proof_of(view, Outcome(models.get("synergy.jct").run(view).solution, None, evidence=found))
    bound = certified(proof, view.instance.plain)
    verdict = judge(view.instance, search.schedule, PROBLEM)
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(search.value)
    assert bound > 7060  # 6,928 s without whole rounds
    assert verdict.objective <= bound * 1.02


def test_a_short_job_holds_its_gpu_for_the_whole_round() -> None:
    """Four jobs of a tenth of a round on two GPUs: the second pair waits for the next round, unlike in a fluid."""
    view = synergy.view(tiny([10] * 4, [2] * 4, [0.0] * 4))
    fluid = models.get("synergy.jct_intervals").run(view).solution.bound
    bound, value, _ = solved(view)
    assert fluid < 20
    assert bound == pytest.approx(value, rel=0.01)
    assert value == pytest.approx(best_run(view, 5))


def test_a_gang_that_fits_on_no_server_is_split() -> None:
    table = matrix((1.0, 2.0), (10.0,), [[1.0], [2.0]])
    jobs = [job(gpus=3, iterations=600, rates={"V100": 1.0}, sensitivity=table) for _ in range(2)]
    view = synergy.view(instance(jobs, [servers(3, gpus=2, cpus=4.0, memory_gb=30.0)], slot_s=100.0))
    _, value, outcome = solved(view)
    assert value == pytest.approx(100.0)
    assert outcome.solution.status == "optimal"
    assert set(np.bincount(outcome.decision.job)) == {2}


def test_the_search_has_as_many_rounds_as_it_needs() -> None:
    """A gang with all GPUs, and jobs that would fill the rounds that the fluid needs."""
    view = synergy.view(tiny([400] * 6, [3] * 6, [0.0] * 6))
    pricing = RoundPricing(view)
    pricing.rounds = 2
    search = RunSearch(view, pricing, np.zeros((pricing.held.shape[1], 2)), 0)
    assert len(search.rooms.free) > 2
    assert judge(view.instance, search.schedule, PROBLEM).objective == pytest.approx(search.value)


def test_limits_and_known_decisions() -> None:
    view = synergy.view(instances.load("gen/20jobs"))
    _, value, outcome = solved(view, SolveOptions(time_limit_s=0.2))
    again = models.get(METHOD).run(view, SolveOptions(rel_gap=0.5))
    assert again.solution.status == "gap left"
    assert again.solution.termination.endswith(" 0 moves")
    short = models.get(METHOD).run(view, SolveOptions(nodes=1, rel_gap=0.0)).solution
    assert (short.status, short.termination.endswith(f" {SLICE} moves")) == ("gap left", True)
    known = Seed("synergy.opt", outcome.decision, value)
    seeded = models.get(METHOD).run(view, SolveOptions(time_limit_s=0.2, seeds=[replace_value(known)]))
    assert seeded.decision is outcome.decision
    assert models.get(f"{METHOD}?seeded=false").run(view, SolveOptions(rel_gap=0.5, seeds=[known])).decision is not (
        outcome.decision
    )


def replace_value(seed: Seed) -> Seed:
    """Return a known decision that claims to be better than any other."""
    return Seed(seed.method, seed.decision, 0.0)


def test_long_runs_are_left_to_the_user() -> None:
    assert too_large(synergy.view(instances.load("gen/200jobs"))) is None
    assert "too many for columns" in str(too_large(synergy.view(instances.load("gen/2000jobs?jobs=20000"))))


def test_a_certificate_with_a_changed_number_proves_less_or_nothing() -> None:
    view = synergy.view(instances.load("gen/20jobs"))
    proof = proof_of(view, models.get(METHOD).run(view, SolveOptions(rel_gap=0.5)))
    plain = view.instance.plain
    bound = certified(proof, plain)
    dear = max(range(len(proof["prices"])), key=lambda r: sum(proof["prices"][r]))
    for factor in (0.5, 0.9, 1.1, 2.0):
        prices = [[round(p * factor) if r == dear else p for p in row] for r, row in enumerate(proof["prices"])]
        assert certified(proof | {"prices": prices}, plain) < bound
    later = [edge + (k > 0) for k, edge in enumerate(proof["rounds"])]
    assert certified(proof | {"rounds": later}, plain) < bound
    for wrong, reason in (
        ({"prices": proof["prices"][1:]}, "few"),
        ({"prices": [row[1:] for row in proof["prices"]]}, "few"),
        ({"prices": [[-1 for _ in row] for row in proof["prices"]]}, "negative"),
        ({"rounds": [edge + 0.5 for edge in proof["rounds"]]}, "whole numbers"),
        ({"rounds": proof["rounds"][::-1]}, "go on"),
        ({"rounds": [edge + 10**6 for edge in proof["rounds"]]}, "go on"),
        ({"rounds": [*proof["rounds"][:-1], 10**9]}, "too many"),
        ({"slot_s": 1.0}, "slots"),
        ({"edges": [0, 1]}, "has no 'edges'"),
    ):
        with pytest.raises(RefusedError, match=reason):
            certified(proof | wrong, plain)

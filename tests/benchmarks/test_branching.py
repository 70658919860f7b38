"""Branch and price gives the optima of HiGHS on many random instances, and its gaps are measured against goals."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from branched import EXACT
from test_hadar_forked import optimum

from schedgap import instances, models
from schedgap.harness.check import judge_asked
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.registry import PAPERS
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.engine.solve.session import peak_mb

COUNT = int(os.environ.get("BENCH_INSTANCES", "2000"))
"""Number of random instances on which each model is tried."""

PAIRS: dict[str, str | None] = {**EXACT, "hadar.forked.columns": None}
"""Each model that branches and prices, with the whole model of the same problem; ``None`` for copies of jobs."""

CLOSE = 2e-6
"""Optima that differ by at most this fraction count as equal; HiGHS solves to this gap."""

LARGEST = 600
"""Most jobs times servers times slots for which the MILP over copies is solved."""


def right_answer(model: str, view: Any) -> tuple[str, float | None] | None:
    """Return status and optimum of the whole model of the same problem; ``None`` if that model does not apply."""
    if PAIRS[model] is None:
        if view.size * view.servers.size * view.slots > LARGEST:
            return None
        return "optimal", optimum(view)
    exact = models.get(PAIRS[model])
    if exact.skip(view) or exact.too_large(view):
        return None
    solution = exact.run(view).solution
    return solution.status, solution.objective


def mistake(model: str, view: Any, right: tuple[str, float | None]) -> str | None:
    """Solve an instance for up to a minute; return what is wrong with the answer, ``None`` if nothing is."""
    spec = models.get(model)
    outcome = spec.run(view, SolveOptions(time_limit_s=60))
    found, (status, value) = outcome.solution, right
    if found.status != status:
        return f"{found.status} and not {status}: {found.objective} against {value}, bound {found.bound}"
    if value is None:
        return None
    verdict = judge_asked(view, outcome.decision, spec.problem, ())
    if verdict.violations:
        return f"violated: {verdict.violations[0]}"
    same = all(x == pytest.approx(value, rel=CLOSE, abs=CLOSE) for x in (found.objective, verdict.objective))
    return None if same else f"{found.objective}, verified {verdict.objective}, and not {value}"


@pytest.mark.parametrize("model", PAIRS)
def test_random_instances_are_proved(bench, model: str) -> None:  # type: ignore[no-untyped-def]
    """On random instances, status and optimum equal those of HiGHS, and the decision has that value."""
    spec, rng = models.get(model), np.random.default_rng(7)
    tried, wrong = 0, []

    def run() -> None:
        nonlocal tried
        for number in range(COUNT):
            try:
                view = PAPERS.get(spec.paper).view(RANDOM.get(spec.paper).draw(rng))
            except NotApplicableError:
                continue
            right = None if spec.skip(view) else right_answer(model, view)
            if right is not None:
                tried += 1
                said = mistake(model, view, right)
                wrong.extend([f"number {number}: {said}"] if said else [])

    seconds = bench.time(run, rounds=1)
    note = f"{tried - len(wrong)} of {tried}" + "".join(f"; {said}" for said in wrong[:5])
    bench.line(f"{model}: like {PAIRS[model] or 'a MILP'} on random instances", seconds, None, "all", note)
    assert tried
    assert not wrong


class Goal(NamedTuple):
    """What a model should reach on an instance: a gap after some seconds, within some memory."""

    instance: str
    model: str
    gap: float
    seconds: float
    most_mb: float = np.inf


MOLDABLE = [model for model in PAIRS if not model.startswith("hadar.")]
GANGS = ["hadar.p2.columns", "hadar.p2.columns.complete"]
HUGE = "gen/2000jobs?jobs=20000&servers_per_type=500"

GOALS = [
    *(Goal("gen/20jobs", model, 1e-6, 60) for model in PAIRS),  # proved, up to the rounding of bounds
    *(Goal("gen/50jobs", model, 0.001, 60) for model in PAIRS),
    *(Goal("gen/200jobs", model, 0.0005, 60) for model in GANGS),
    *(Goal("gen/200jobs", model, 0.01, 60) for model in MOLDABLE),
    Goal("gen/200jobs", "hadar.forked.columns", 0.05, 60),
    *(Goal(f"gen/zhou-{arch}", f"zhou.{arch}.columns", 0.03, 120) for arch in ("ps", "ra")),
    *(Goal("gen/200jobs", f"zhou.{arch}.interrupted", 0.05, 60) for arch in ("ps", "ra")),
    *(Goal("gen/200jobs", f"synergy.{name}", 0.01, 60) for name in ("servers", "servers.queue")),
    Goal("gen/200jobs", "synergy.columns", 0.03, 60),
    Goal("gen/hadar-480", "hadar.p2.columns", 0.02, 60),
    Goal("gen/2000jobs", "hadar.p2.columns", 0.0005, 22),
    Goal(HUGE, "hadar.p2.columns", 0.003, 600, most_mb=8000),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: f"{goal.instance}-{goal.model}")
def test_gaps_against_the_goals(bench, goal: Goal) -> None:  # type: ignore[no-untyped-def]
    """Measure the gap of a model after the goal's seconds, without decisions of heuristics to start from."""
    spec = models.get(goal.model)
    view = PAPERS.get(spec.paper).view(instances.load(goal.instance))
    reached(bench, goal, lambda: spec.run(view, SolveOptions(time_limit_s=goal.seconds)).solution)


def reached(bench: Any, goal: Goal, run: Callable[[], Any]) -> None:
    """Run a model, and record the gap that it reaches beside the goal."""
    found: list[Any] = []
    began = time.process_time()
    seconds = bench.time(lambda: found.append(run()), rounds=1)
    used_s, solution = time.process_time() - began, found[-1]
    known = solution.objective is not None and solution.bound is not None
    gap = abs(solution.bound - solution.objective) / abs(solution.bound) if known else np.inf
    busy = f"{used_s:.0f} s of computing at a load of {os.getloadavg()[0]:.0f}"
    note = f"{solution.objective} of {solution.bound}, {solution.nodes} nodes, {busy}, at most {peak_mb():.0f} MB"
    bench.gap(f"{goal.model}, {goal.instance}", seconds, gap, goal.gap, note, enough=peak_mb() <= goal.most_mb)

"""Branch and price: against HiGHS alone on many random instances, and gaps after a minute."""

from __future__ import annotations

import numpy as np
import pytest

from schedgap import instances, models
from schedgap.harness.verify import VERIFIERS
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.registry import PAPERS
from schedgap.models.solve import SolveOptions

INSTANCES = {"hadar": 2000, "zhou": 500, "admission": 500}
"""Random instances by paper."""

PAIRS = [
    ("hadar.p2.columns", "hadar.p1"),
    ("hadar.p2.columns.complete", "hadar.p1.complete"),
    ("zhou.ps.columns", "zhou.ps.schedules.offline"),
    ("zhou.ps.columns.maxweight", "zhou.ps.schedules"),
    ("zhou.ra.columns", "zhou.ra.schedules.offline"),
    ("zhou.ra.columns.maxweight", "zhou.ra.schedules"),
    ("admission.columns", "admission.offline"),
    ("admission.columns.from_arrival", "admission.offline.from_arrival"),
]


@pytest.mark.parametrize(("model", "alone"), PAIRS)
def test_random_instances_are_proved(model: str, alone: str) -> None:
    """The optimum is that of the other model, every time, and the decision is worth it."""
    spec, exact = models.get(model), models.get(alone)
    rng = np.random.default_rng(7)
    for _ in range(INSTANCES[spec.paper]):
        try:
            view = PAPERS.get(spec.paper).view(RANDOM.get(spec.paper).draw(rng))
        except NotApplicableError:
            continue
        if spec.skip(view) or exact.skip(view) or exact.too_large(view):
            continue
        right, outcome = exact.run(view).solution, spec.run(view, SolveOptions(time_limit_s=60))
        assert outcome.solution.status == right.status
        if right.objective is not None:
            assert outcome.solution.objective == pytest.approx(right.objective, rel=2e-6, abs=2e-6)
            verdict = VERIFIERS.get(spec.paper).check(view, outcome.decision, spec.problem, ())
            assert verdict.objective == pytest.approx(right.objective, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("name", ["gen/50jobs", "gen/200jobs"])
@pytest.mark.parametrize("model", [model for model, _ in PAIRS])
def test_gaps_after_a_minute(bench, name: str, model: str) -> None:  # type: ignore[no-untyped-def]
    """What is open after 60 s, without the decisions of heuristics."""
    spec = models.get(model)
    view = PAPERS.get(spec.paper).view(instances.load(name))
    found = []
    seconds = bench.time(lambda: found.append(spec.run(view, SolveOptions(time_limit_s=60)).solution), rounds=1)
    solution = found[-1]
    open_ = abs(solution.bound - solution.objective) / abs(solution.bound)
    goal = "≤ 0.1 %" if name == "gen/50jobs" else "≤ 0.05 %" if spec.paper == "hadar" else "≤ 1 %"
    note = f"gap {100 * open_:.3f} % ({goal}), {solution.nodes} nodes"
    bench.line(f"{model}, {name}: gap after 60 s", seconds, None, goal, note)

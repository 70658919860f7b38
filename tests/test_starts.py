"""Models that start from known decisions: the solver's first incumbent is the best of these."""

from __future__ import annotations

import contextlib

import pytest

from schedgap import instances
from schedgap.harness.studies.compare.methods import related, seeds
from schedgap.instances.errors import NotApplicableError
from schedgap.models import MODELS, ModelSpec
from schedgap.models.engine.solve import Seed, SolveOptions

STARTED = [spec for spec in MODELS if spec.start is not None]
LISTED = {"zhou.ps.schedules.offline", "zhou.ra.schedules.offline"}
"""Models that list only some schedules, with which not every heuristic's decision can be expressed."""


def known(spec: ModelSpec) -> list[Seed]:
    """Return the decisions of the problem's heuristics on the model's example, the best one last."""
    view, made = spec.view(instances.load(spec.example)), []
    for heuristic in related(spec):
        with contextlib.suppress(NotApplicableError):
            made.append((heuristic.id, heuristic.decide(view.instance)))
    sign = 1 if spec.sense == "max" else -1
    return sorted(seeds(spec, view, made), key=lambda seed: sign * seed.objective)


@pytest.mark.parametrize("spec", STARTED, ids=lambda spec: spec.id)
def test_the_search_starts_from_the_best_known_decision(spec: ModelSpec) -> None:
    assert spec.start is not None
    view, decisions = spec.view(instances.load(spec.example)), known(spec)
    assert decisions
    begun = spec.run(view, SolveOptions(seeds=decisions)).solution
    assert begun.objective == pytest.approx(spec.run(view, SolveOptions()).solution.objective, rel=1e-6)
    if spec.id not in LISTED:
        first, best = begun.trace[0].incumbent, decisions[-1].objective
        assert first is not None
        assert (first >= best if spec.sense == "max" else first <= best) or first == pytest.approx(best, rel=1e-6)


def test_a_decision_that_a_model_does_not_list_is_no_start() -> None:
    spec = MODELS.get("zhou.ps.offline")
    view, decisions = spec.view(instances.load(spec.example)), known(spec)
    late = decisions[-1].decision
    late = type(late)(**vars(late) | {"start": late.start + 1_000_000})
    assert spec.start is not None
    assert spec.start(view, spec.build(view), late) is None

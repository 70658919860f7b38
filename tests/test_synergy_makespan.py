"""The fluid bound on the time at which the last job of a run ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from schedgap import models
from schedgap.heuristics import HEURISTICS, Context
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.models import MODELS
from tests import synergy_cases as cases


@settings(max_examples=30, deadline=None)
@given(cases.small(jobs=6, chips=("V100", "K80"), arrivals=(0.0, 400.0, 2000.0)))
def test_no_scheduler_ends_before_the_fluid(instance: Instance) -> None:
    view = synergy.view(instance)
    bound = MODELS.get("synergy.makespan_fluid").run(view).solution.bound
    assert bound is not None
    for name in ("proportional.fifo", "tune.srtf", "greedy.las", "tetris.static"):
        schedule = HEURISTICS.get(f"synergy.{name}").run(view, Context(np.random.default_rng(0), models.oracle))
        ends_s = (schedule.round.max() + 1) * view.slot_s
        assert bound <= ends_s * (1 + 1e-6)


def test_the_fluid_fills_the_scarce_resource() -> None:
    """Two jobs that want all CPUs of the server take as long side by side as one after the other."""
    table = cases.matrix((1.0, 2.0, 4.0), (10.0,), [[1.0], [2.0], [4.0]])
    jobs = [cases.job(gpus=1, iterations=4000, rates={"V100": 1.0}, sensitivity=table) for _ in range(2)]
    view = synergy.view(cases.instance(jobs, [(1, "V100", 2, 4.0, 20.0)]))
    assert MODELS.get("synergy.makespan_fluid").run(view).solution.objective == pytest.approx(2000.0)

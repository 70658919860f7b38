"""Branch and price against HiGHS on P1, on thousands of random instances: too long for every run of the tests."""

from __future__ import annotations

import numpy as np
import pytest

from schedgap import models
from schedgap.harness.verify import VERIFIERS
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.random_instances import FAMILIES
from schedgap.instances.registry import PAPERS
from schedgap.models.solve import SolveOptions

INSTANCES = 2000


@pytest.mark.parametrize("suffix", ["", ".complete"])
def test_hadar_is_proved_on_random_instances(suffix: str) -> None:
    """The optimum is P1's, every time, and the decision is worth it."""
    spec, exact = models.get(f"hadar.p2.columns{suffix}"), models.get(f"hadar.p1{suffix}")
    rng = np.random.default_rng(7)
    for _ in range(INSTANCES):
        try:
            view = PAPERS.get("hadar").view(FAMILIES.get("hadar").draw(rng))
        except NotApplicableError:
            continue
        if spec.skip(view) or exact.skip(view):
            continue
        right, outcome = exact.run(view).solution, spec.run(view, SolveOptions(time_limit_s=60))
        assert outcome.solution.status == right.status
        if right.objective is not None:
            assert outcome.solution.objective == pytest.approx(right.objective, rel=2e-6, abs=2e-6)
            verdict = VERIFIERS.get("hadar").check(view, outcome.decision, spec.problem, ())
            assert verdict.objective == pytest.approx(right.objective, rel=2e-6, abs=2e-6)

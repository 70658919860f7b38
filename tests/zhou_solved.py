"""Helpers for tests of Zhou's models: they solve exactly, and check the decisions of registered models."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest

from schedgap import models
from schedgap.harness.check import judge
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou
from schedgap.instances.views.zhou import Architecture, ZhouView
from schedgap.models import Outcome
from schedgap.models.engine.solve import SolveOptions, solve

EXACT = SolveOptions(rel_gap=0.0)
BOTH = ("ps", "ra")


def optimum(model: pyo.ConcreteModel) -> float:
    """Solve a model to optimality and return the optimum."""
    found = solve(model, EXACT)
    assert found.status == "optimal"
    assert found.objective is not None
    return found.objective


def architecture(case: Instance, name: str) -> Architecture:
    """Return the architecture ``"ps"`` or ``"ra"`` of an instance."""
    return zhou.view(case).architectures[name]


def run(method: str, view: ZhouView, **given: object) -> Outcome:
    """Run a registered model, check its decision, and return the outcome."""
    spec = models.get(method)
    outcome = spec.run(view, SolveOptions(rel_gap=0.0, **given))  # type: ignore[arg-type]
    if outcome.decision is not None:
        verdict = judge(view.instance, outcome.decision, spec.problem, spec.claims)
        assert not verdict.violations
        assert verdict.objective == pytest.approx(outcome.solution.objective, rel=1e-6, abs=1e-9)
    return outcome

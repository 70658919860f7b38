"""What all optima of a program have in common, and whether an allocation is Pareto-efficient."""

from __future__ import annotations

from functools import partial

import pyomo.environ as pyo

from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import View, efficiency
from schedgap.models.oef.printed import build_sharing_incentive, decode, prefer
from schedgap.models.registry import MODELS, solve_built
from schedgap.models.solve import SolveOptions


def pareto_gain(view: View, devices: Array) -> tuple[float, Array]:
    """Return the largest total gain that hurts nobody, and an allocation ``(v, k)`` that achieves it (§2.3.1).

    The gain on `devices` ``(v, k)``, which must lie within capacity, is 0 (up to solver tolerance) exactly where they
    are Pareto-efficient.
    """
    now = efficiency(view.speedups, devices)
    build = partial(build_sharing_incentive, least=now)
    outcome = solve_built(build, decode, view, SolveOptions(method="simplex"))
    if outcome.solution.objective is None:
        raise ValueError(f"the allocation exceeds the capacity: {outcome.solution.status}")
    return float(outcome.solution.objective - now.sum()), outcome.decision.devices


def least_over_optima(model: str, view: View, worth: Array) -> float:
    """Return the least Σ ``worth[l, j]``·x_l^j over all optimal allocations of a model.

    What this finds does not hang on the vertex that a solver, or a second objective, picks. The model is one linear
    program (``oef.cooperative.full``, not the one with lazy rows); `worth` is ``(v, k)``.

    Raises
    ------
    ValueError
        If the model has no optimum on this view.
    """

    def preferring(v: View) -> pyo.ConcreteModel:
        m = MODELS.get(model).build(v)
        prefer(m, -worth)
        return m

    outcome = solve_built(preferring, decode, view, SolveOptions(method="simplex"))
    if outcome.solution.status != "optimal":
        raise ValueError(f"{model} has no optimum here: {outcome.solution.status}")
    return float((worth * outcome.decision.devices).sum())

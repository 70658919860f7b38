"""What all optima of a program have in common, and whether an allocation is Pareto-efficient."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import View, efficiency
from schedgap.models.oef.printed import (
    decode,
    in_equal_splits,
    maximise_efficiency,
    prefer,
    shares,
)
from schedgap.models.registry import MODELS, solve_built
from schedgap.models.solve import (
    SolveOptions,
)


def build_pareto(view: View, devices: Array) -> pyo.ConcreteModel:
    """Return the LP of the largest total gain over `devices` that hurts nobody (§2.3.1, Pareto efficiency)."""
    m = shares(view)
    now = efficiency(view.speedups, devices)
    m.now = pyo.Param(m.TENANTS, initialize=dict(enumerate(now.tolist())))

    @m.Constraint(m.TENANTS)
    def nobody_hurt(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) >= m.now[l]

    in_equal_splits(m, m.nobody_hurt, view)
    return maximise_efficiency(m)


def pareto_gain(view: View, devices: Array) -> tuple[float, Array]:
    """Return the largest total gain that hurts nobody, and an allocation that achieves it.

    Parameters
    ----------
    view
        Speedups and devices.
    devices
        ``(v, k)`` allocation to improve; it must lie within capacity.

    Returns
    -------
    gain, better
        0 (up to solver tolerance) exactly where `devices` is Pareto-efficient; `better` has shape ``(v, k)``.
    """
    outcome = solve_built(lambda v: build_pareto(v, devices), decode, view, SolveOptions(method="simplex"))
    if outcome.solution.objective is None:
        raise ValueError(f"the allocation exceeds the capacity: {outcome.solution.status}")
    return float(outcome.solution.objective - efficiency(view.speedups, devices).sum()), outcome.decision.devices


def least_over_optima(model: str, view: View, worth: Array) -> float:
    """Return the least Σ ``worth[l, j]``·x_l^j over all optimal allocations of a model.

    What this finds does not hang on the vertex that a solver, or a second objective, picks.

    Parameters
    ----------
    model
        Id of a model that is one linear program (``oef.cooperative.full``, not the one with lazy rows).
    view
        Speedups and devices.
    worth
        ``(v, k)`` worth of a device.

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

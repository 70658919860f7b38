"""A small problem that solvers do not finish while a test waits."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo


def market_split(n: int = 50, m: int = 6) -> pyo.ConcreteModel:
    """Return an equality knapsack with slack (Cornuéjols and Dawande 1998), whose bound of 1 does not improve.

    Four rows of 30 variables are too few: CBC solves them in 6 s.
    """
    weights = np.random.default_rng(1).integers(0, 100, (m, n)).tolist()
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Binary)
    model.over = pyo.Var(range(m), domain=pyo.NonNegativeIntegers, bounds=(0, 100 * n))
    model.under = pyo.Var(range(m), domain=pyo.NonNegativeIntegers, bounds=(0, 100 * n))
    model.split = pyo.ConstraintList()
    for i, row in enumerate(weights):
        halved = sum(w * model.x[j] for j, w in enumerate(row)) + model.over[i] - model.under[i]
        model.split.add(halved == sum(row) // 2)
    model.off = pyo.Objective(expr=sum(model.over[i] + model.under[i] for i in range(m)) + 1)
    return model

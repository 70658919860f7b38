"""A second, independent statement of the OEF linear programs, on plain arrays and ``scipy.optimize.linprog``.

Variables are ``x[l, j]`` row by row, then (where there is one) the common level. Functions take speedups ``W`` ``(n,
k)``, devices ``m`` ``(k,)`` and, where weights matter, ``weight`` ``(n,)``. They return shares ``X`` ``(n, k)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation, OefView


def lp(
    W: Array,
    m: Array,
    cost: Array,
    upper: tuple[Array, Array] | None = None,
    equal: tuple[Array, Array] | None = None,
) -> Array:
    """Maximise `cost` within the capacities and other rows by dual simplex; return all variables."""
    n, k = W.shape
    capacity = np.zeros((k, cost.size))
    capacity[:, : n * k] = np.tile(np.eye(k), n)
    A, b = (capacity, m) if upper is None else (np.vstack([capacity, upper[0]]), np.concatenate([m, upper[1]]))
    A_eq, b_eq = equal if equal is not None else (None, None)
    result = linprog(-cost, A_ub=A, b_ub=b, A_eq=A_eq, b_eq=b_eq, method="highs-ds")
    assert result.status == 0, result.message
    return np.asarray(result.x)


def own(W: Array, columns: int) -> Array:
    """Return the ``(n, columns)`` rows whose product with the variables is the efficiency of each tenant."""
    n, k = W.shape
    rows = np.zeros((n, columns))
    for u in range(n):
        rows[u, u * k : (u + 1) * k] = W[u]
    return rows


def efficiency(W: Array, m: Array) -> Array:
    return lp(W, m, W.ravel()).reshape(W.shape)


def maxmin(W: Array, m: Array, weight: Array | None = None) -> Array:
    share = np.ones(len(W)) if weight is None else np.asarray(weight, float)
    return np.outer(share / share.sum(), m)


def gavel(W: Array, m: Array, row_cap: bool = False) -> Array:
    """Return shares with the largest least ratio of efficiency to that of the equal split.

    With `row_cap`, a tenant gets at most one device.
    """
    n, k = W.shape
    equal = np.einsum("lj,lj->l", W, maxmin(W, m))
    rows = -own(W, n * k + 1)
    rows[:, -1] = equal
    bound = np.zeros(n)
    if row_cap:
        rows = np.vstack([rows, own(np.ones((n, k)), n * k + 1)])
        bound = np.concatenate([bound, np.ones(n)])
    return lp(W, m, np.eye(n * k + 1)[-1], (rows, bound))[:-1].reshape(n, k)


def noncooperative(W: Array, m: Array, weight: Array | None = None) -> Array:
    """Return shares that give all tenants the same efficiency per weight, as large as possible."""
    n, k = W.shape
    rows = own(W, n * k + 1)
    rows[:, -1] = -(np.ones(n) if weight is None else np.asarray(weight, float))
    return lp(W, m, np.eye(n * k + 1)[-1], equal=(rows, np.zeros(n)))[:-1].reshape(n, k)


def envy_rows(W: Array, weight: Array | None = None) -> Array:
    """Return the ``(n(n−1), nk)`` rows ``w_l·x_i/π_i − w_l·x_l/π_l``, which are at most 0 if nobody envies anybody."""
    n, k = W.shape
    share = np.ones(n) if weight is None else np.asarray(weight, float)
    rows = []
    for u in range(n):
        for i in range(n):
            if i != u:
                row = np.zeros((n, k))
                row[i], row[u] = W[u] / share[i], -W[u] / share[u]
                rows.append(row.ravel())
    return np.array(rows)


def cooperative(W: Array, m: Array, weight: Array | None = None) -> Array:
    """Return shares of the largest total efficiency among those without envy."""
    if len(W) == 1:
        return efficiency(W, m)
    rows = envy_rows(W, weight)
    return lp(W, m, W.ravel(), (rows, np.zeros(len(rows)))).reshape(W.shape)


def replicated(solve: Callable[[Array, Array], Array], W: Array, m: Array, weight: NDArray[np.int64]) -> Array:
    """Return weighted shares as the paper defines them: a tenant of weight π counts as π tenants."""
    owner = np.repeat(np.arange(len(W)), weight)
    shares = np.zeros_like(W)
    np.add.at(shares, owner, solve(W[owner], m))
    return shares


def pareto_gain(W: Array, m: Array, X: Array) -> tuple[float, Array]:
    """Return by how much the total can grow without loss for any tenant, and shares that reach it."""
    now = np.einsum("lj,lj->l", W, X)
    better = lp(W, m, W.ravel(), (-own(W, W.size), -now)).reshape(W.shape)
    return float(np.sum(W * better) - now.sum()), better


SOLVE: dict[str, Callable[[OefView], Array]] = {
    "oef.efficiency": lambda v: efficiency(v.speedups, v.capacity),
    "oef.maxmin": lambda v: v.equal_split,
    "oef.gavel": lambda v: gavel(v.speedups, v.capacity),
    "oef.gavel?row_cap=true": lambda v: gavel(v.speedups, v.capacity, row_cap=True),
    "oef.noncooperative": lambda v: noncooperative(v.speedups, v.capacity, v.weight),
    "oef.cooperative": lambda v: cooperative(v.speedups, v.capacity, v.weight),
}


def oracle(model: str, view: Any) -> Allocation:
    """Solve a model by this module, in place of ``models.oracle``."""
    return Allocation(SOLVE[model](view))


def mechanism(model: str) -> Callable[[OefView], Allocation]:
    """Return a function that solves a model on a view by this module."""
    return lambda view: oracle(model, view)

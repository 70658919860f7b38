"""OEF's linear programs and those it is compared with, as printed; what is least over all optima; Pareto efficiency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation, OefView, efficiency
from schedgap.models.engine.solve import TIES, Solution, SolveOptions, counted
from schedgap.models.registry import MODELS, Outcome, solve_built, total


def shares(view: OefView) -> pyo.ConcreteModel:
    """Build the part that all programs share: the devices of each tenant, within capacity (4)."""
    m = pyo.ConcreteModel()
    m.TENANTS = pyo.RangeSet(0, view.size - 1)
    m.TYPES = pyo.RangeSet(0, len(view.gpu_types) - 1)
    m.w = pyo.Param(m.TENANTS, m.TYPES, initialize=_table(view.speedups))
    m.m = pyo.Param(m.TYPES, initialize=view.capacity.tolist())
    m.pi = pyo.Param(m.TENANTS, initialize=view.weight.tolist())
    m.x = pyo.Var(m.TENANTS, m.TYPES, domain=pyo.NonNegativeReals)

    @m.Constraint(m.TYPES)
    def capacity(m: Any, j: int) -> Any:
        return sum(m.x[l, j] for l in m.TENANTS) <= m.m[j]

    counted(m, ((m.x[l, j], view.equal_split[l, j]) for l in m.TENANTS for j in m.TYPES))
    counted(m, ((m.capacity[j], m.m[j]) for j in m.TYPES))
    prefer(m, assortative(view))
    return m


def in_equal_splits(m: pyo.ConcreteModel, rows: Any, view: OefView) -> None:
    """Let the solver count a row per tenant in units of its equal split, so that tolerances mean the same for all."""
    counted(m, ((rows[l], view.split_efficiency[l]) for l in m.TENANTS))


def prefer(m: pyo.ConcreteModel, worth: Array) -> None:
    """Make the model prefer, among several optima, the one with the largest Σ ``worth[l, j]``·x_l^j."""
    m.del_component(TIES)
    m.add_component(TIES, pyo.Suffix(direction=pyo.Suffix.LOCAL))
    getattr(m, TIES).update(zip(m.x.values(), worth.ravel().tolist(), strict=True))


def assortative(view: OefView) -> Array:
    """Return the values ``(v, k)`` of devices in the second objective, which matches fast types with large speedups.

    Tenants are ranked by their speedup on the fastest type, then on the next one, then by their order. A device of the
    j-th slowest type has the value ``√rank · ∛j``: the sum is largest if both increase together, which is the staircase
    of Theorem 5.2. Ratios of roots, unlike those of ranks, do not coincide with ratios of speedups, so the best vertex
    is unique.
    """
    rank = np.empty(view.size)
    rank[np.lexsort((-np.arange(view.size), *view.speedups.T))] = np.arange(1, view.size + 1) / view.size
    return np.outer(np.sqrt(rank), np.cbrt(np.arange(1, len(view.gpu_types) + 1)))


def _table(matrix: Array) -> dict[tuple[int, int], float]:
    return {at: float(x) for at, x in np.ndenumerate(matrix)}


def maximise_efficiency(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Add the objective (4), (9a), (10a): total efficiency."""
    m.efficiency = pyo.Objective(
        rule=lambda m: sum(m.w[l, j] * m.x[l, j] for l in m.TENANTS for j in m.TYPES), sense=pyo.maximize
    )
    return m


@dataclass(frozen=True)
class Constraints:
    """What a program requires of every allocation beyond capacity; by default nothing.

    Parameters
    ----------
    epsilon
        Part ε of what another's devices are worth to a tenant that it may lack, per weight: 0 forbids envy, 1 nothing.
    sigma
        Share σ of its equal split's efficiency that every tenant has: 1 is the sharing incentive, 0 nothing.
    equal
        Whether all tenants have the same efficiency per weight.

    Raises
    ------
    ValueError
        If a number is not between 0 and 1.
    """

    epsilon: float = 1.0
    sigma: float = 0.0
    equal: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("epsilon", "sigma"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be between 0 and 1")


def build_fair(view: OefView, required: Constraints) -> pyo.ConcreteModel:
    r"""Build the program of which (4), (8), (9) and (10) are special cases: the largest total, as fair as required.

    .. math:: \max \sum_l \sum_j w_l^j x_l^j

    and, as far as required, with :math:`\varepsilon, \sigma \in [0, 1]`:

    .. math:: \frac{1}{\pi_l} \sum_j w_l^j x_l^j \ge \frac{1 - \varepsilon}{\pi_i} \sum_j w_l^j x_i^j
        \quad \forall l \ne i \label{no_envy}
    .. math:: \sum_j w_l^j x_l^j \ge \sigma \cdot e_l \quad \forall l \label{at_least_split}
    .. math:: \sum_j w_l^j x_l^j = \pi_l \cdot E \quad \forall l \label{equal_efficiency}

    *What follows.* The optimum T(ε, σ) does not fall with ε and does not rise with σ. For fixed ε it is concave in σ,
    which is on the right-hand side only. In ε, a coefficient, it need be neither concave nor convex: with one tenant
    that is n² times as fast on the second of two devices, and n − 1 that are equally fast on both, the first holds
    :math:`2 / (1 + (n - 1)(1 - \varepsilon))` of the fast device until it has all of it, convex and then constant.

    *Shares of envy and of the equal split.* An optimum allocates all devices, since what is left over, divided by
    weight, adds as much to a tenant's own bundle as to any other's per weight. Then :math:`\sum_i` of the envy rows
    gives everybody at least :math:`(1 - \varepsilon) e_l`: ε-envy implies the share :math:`\sigma = 1 - \varepsilon`
    of the sharing incentive, as envy-freeness implies all of it (Theorem 5.1).
    """
    m = shares(view)
    if required.epsilon < 1:
        _no_envy(m, view, required.epsilon)
    if required.sigma > 0:
        _at_least(m, view, required.sigma * view.split_efficiency)
    if required.equal:
        _equal_efficiency(m)
    return maximise_efficiency(m)


def _no_envy(m: pyo.ConcreteModel, view: OefView, epsilon: float) -> None:
    """Add the rows by which nobody prefers ``1 − epsilon`` of another's share, per weight."""
    n = view.size
    m.PAIRS = pyo.Set(dimen=2, initialize=[(l, i) for l in range(n) for i in range(n) if l != i])
    m.part = pyo.Param(initialize=1 - epsilon)

    @m.Constraint(m.PAIRS)
    def no_envy(m: Any, l: int, i: int) -> Any:
        own = sum(m.w[l, j] * m.x[l, j] for j in m.TYPES)
        return m.pi[i] * own - m.part * m.pi[l] * sum(m.w[l, j] * m.x[i, j] for j in m.TYPES) >= 0

    counted(m, ((m.no_envy[l, i], view.split_efficiency[l] * view.weight[i]) for l, i in m.PAIRS))


def _at_least(m: pyo.ConcreteModel, view: OefView, least: Array) -> None:
    """Add the rows by which every tenant has at least its efficiency of `least` ``(v,)``."""
    m.split = pyo.Param(m.TENANTS, initialize=least.tolist())

    @m.Constraint(m.TENANTS)
    def at_least_split(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) >= m.split[l]

    in_equal_splits(m, m.at_least_split, view)


def _equal_efficiency(m: pyo.ConcreteModel) -> None:
    """Add the rows by which all tenants have the same efficiency per weight, whatever it is."""
    m.E = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.TENANTS)
    def equal_efficiency(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) == m.pi[l] * m.E


def build_efficiency(view: OefView) -> pyo.ConcreteModel:
    r"""Build (4): the largest total efficiency within capacity, whichever tenants get it.

    .. math:: \max \sum_l \sum_j w_l^j x_l^j \tag{4}

    Duals: at an optimum each type goes to the tenant with the highest speedup on it, and this speedup is its price.
    """
    return build_fair(view, Constraints())


def build_maxmin(view: OefView) -> pyo.ConcreteModel:
    r"""Build the max-min LP over devices: the largest fraction of the equal split that all tenants can have.

    - ``s`` :math:`s \ge 0`: fraction of the equal split that every tenant has.

    .. math:: \max s
    .. math:: x_l^j = s \cdot m_j \cdot \pi_l / \sum_i \pi_i \quad \forall l, j \label{equal_split}

    Duals: one more device adds at most the dual of its capacity row to s; types with price 0 are not scarce.
    """
    m = shares(view)
    m.split = pyo.Param(m.TENANTS, m.TYPES, initialize=_table(view.equal_split))
    m.s = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.TENANTS, m.TYPES)
    def equal_split(m: Any, l: int, j: int) -> Any:
        return m.x[l, j] == m.s * m.split[l, j]

    m.least = pyo.Objective(rule=lambda m: m.s, sense=pyo.maximize)
    return m


def build_gavel(view: OefView, *, row_cap: bool = False) -> pyo.ConcreteModel:
    r"""Build Gavel's max-min LP: the worst-off tenant, relative to its equal split, is as well off as possible.

    - ``z`` :math:`z \ge 0`: the least efficiency, as a multiple of that with the equal split.

    .. math:: \max z
    .. math:: \sum_j w_l^j x_l^j \ge z \cdot e_l \quad \forall l \label{at_least}

    and with `row_cap`, as in Gavel (OSDI 2020, §4.1), at most one device per tenant:

    .. math:: \sum_j x_l^j \le 1 \quad \forall l \label{at_most_one_device}

    Duals: those of the rows of z, times :math:`e_l`, add up to 1; they show whose share is the bottleneck.

    *Errata.* In words, the paper describes the program without the cap, but (3) prints the optimum of the one with the
    cap: 1.09, 1.44, 1.8. The program as described gives every tenant 54/49 = 1.102 times its equal split. The paper
    ranks Gandiva_fair above Gavel in total efficiency; so do the rounded numbers, 4.35 and 4.33, but the exact totals
    are 4.356 and, with the cap, 4.364.
    """
    m = shares(view)
    m.split = pyo.Param(m.TENANTS, initialize=view.split_efficiency.tolist())
    m.z = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.TENANTS)
    def at_least(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) - m.z * m.split[l] >= 0

    in_equal_splits(m, m.at_least, view)
    if row_cap:

        @m.Constraint(m.TENANTS)
        def at_most_one_device(m: Any, l: int) -> Any:
            return sum(m.x[l, j] for j in m.TYPES) <= 1

    m.least = pyo.Objective(rule=lambda m: m.z, sense=pyo.maximize)
    return m


def gavel(view: OefView, options: SolveOptions, *, row_cap: bool = False) -> Outcome:
    """Solve the max-min LP, then maximise total efficiency at its ratio, whatever vertex the solver returns."""
    first = solve_built(lambda v: build_gavel(v, row_cap=row_cap), decode, view, options).solution
    if first.status != "optimal" or first.objective is None:
        return Outcome(first, None)
    ratio = first.objective * (1 - 1e-9)

    def at_ratio(v: OefView) -> pyo.ConcreteModel:
        m = build_gavel(v, row_cap=row_cap)
        m.least.deactivate()
        m.z.setlb(ratio)
        return maximise_efficiency(m)

    second = solve_built(at_ratio, decode, view, replace(options, basis=first.basis))
    times = total(first.times, second.solution.times)
    return Outcome(replace(second.solution, times=times), second.decision)


def build_sharing_incentive(view: OefView, least: Array | None = None) -> pyo.ConcreteModel:
    r"""Build the LP of largest total efficiency with at least the equal split for every tenant (§3.1, Theorem 3.3).

    The paper prints the rows for (6) without a number; (8) is the row of the slowest tenant, as an equation.

    .. math:: \max \sum_l \sum_j w_l^j x_l^j
    .. math:: \sum_j w_l^j x_l^j \ge e_l \quad \forall l \tag{8} \label{at_least_split}

    Duals: that of (8) is what the total gains at the margin, per unit by which tenant l may have less than its equal
    split. It need not be unique, and it is not what the row costs: that is what the total gains if the row is dropped
    (``harness explain oef.sharing_incentive --drop at_least_split[0]``).
    """
    if least is None:
        return build_fair(view, Constraints(sigma=1.0))
    # With other efficiencies ``(v,)`` as `least`, the optimum shows whether these are Pareto-efficient.
    m = shares(view)
    _at_least(m, view, least)
    return maximise_efficiency(m)


def build_noncooperative(view: OefView) -> pyo.ConcreteModel:
    r"""Build (9a)–(9c): the largest efficiency, per weight, that all tenants can have equally.

    - ``E`` :math:`E \ge 0`: efficiency per weight of every tenant. It replaces the equations between all pairs: n rows,
      not n².

    .. math:: \max \sum_l \sum_j w_l^j x_l^j \tag{9a}
    .. math:: \sum_j w_l^j x_l^j = \pi_l \cdot E \quad \forall l \tag{9c} \label{equal_efficiency}

    Duals: that of (9c) is what the total gains at the margin, per unit by which tenant l may have less than the others.

    *Errata.* Theorem 5.4, strategy-proofness: no over-report gains, but under-reports do in most random instances. With
    speedups (1, 2) and (1, 5) and one device of each type, tenant 2 gets 3.0 instead of 2.143 by reporting 3. Tenants
    with several job types also gain by over-reports (``oef.multi.strategy-proof`` in the audit). Theorem 5.2, only
    adjacent types: it needs ratios of speedups in the same order for all tenants. The optimum does not give the sharing
    incentive.
    """
    return build_fair(view, Constraints(equal=True))


def build_cooperative(view: OefView) -> pyo.ConcreteModel:
    r"""Build (10a)–(10c): the largest total efficiency at which no tenant prefers another's share, per weight.

    .. math:: \max \sum_l \sum_j w_l^j x_l^j \tag{10a}
    .. math:: \frac{1}{\pi_l} \sum_j w_l^j x_l^j \ge \frac{1}{\pi_i} \sum_j w_l^j x_i^j \quad \forall l \ne i
        \tag{10c} \label{no_envy}

    Duals: that of (10c) is what the total gains at the margin, per unit by which l may envy i. It need not be unique,
    and it is not what the row costs. On expression (1), the row by which u2 does not envy u3 has optimal duals from 0
    to 3, and the optimum without it is the same: ``harness explain oef.cooperative --drop no_envy[1,2]``.

    At the optimum all devices are allocated, so envy-freeness implies the sharing incentive (Theorem 5.1), also with
    weights.

    *Errata.* Theorem 5.3, Pareto efficiency, holds among envy-free allocations only. With speedups (1, 1.5, 2), (1, 2,
    5), (1, 3, 8) and one device of each type, the total can grow by 0.067 without hurting anybody; two types suffice
    (1.3, 2.5, 2.6 and 3.9 on two devices of each). Envy-freeness and sharing incentive hold between job types: a tenant
    with several job types can envy another tenant, and can have less than with its best use of an equal split. The
    support can exceed n + k − 1, and Theorem 5.2 (only adjacent types) fails in a few per cent of cases.
    """
    return build_fair(view, Constraints(epsilon=0.0))


def decode(view: OefView, model: pyo.ConcreteModel, solution: Solution) -> Allocation:
    """Return the allocation of an incumbent, with solver noise below zero set to zero."""
    devices = solution.array(model.x, (view.size, len(view.gpu_types)))
    return Allocation(np.maximum(devices, 0.0))


def pareto_gain(view: OefView, devices: Array) -> tuple[float, Array]:
    """Return the largest total gain that hurts nobody, and an allocation ``(v, k)`` that achieves it (§2.3.1).

    The gain over `devices` ``(v, k)``, which must lie within capacity, is 0 (up to solver tolerance) if and only if
    they are Pareto-efficient.
    """
    now = efficiency(view.speedups, devices)
    build = partial(build_sharing_incentive, least=now)
    outcome = solve_built(build, decode, view, SolveOptions(method="simplex"))
    if outcome.solution.objective is None:
        raise ValueError(f"the allocation exceeds the capacity: {outcome.solution.status}")
    return float(outcome.solution.objective - now.sum()), outcome.decision.devices


def least_over_optima(model: str, view: OefView, worth: Array) -> float:
    """Return the least Σ ``worth[l, j]``·x_l^j over all optimal allocations of a model.

    The result does not depend on the vertex that a solver, or a second objective, picks. `model` must be one linear
    program (``oef.cooperative.full``, not the one with lazy rows); `worth` is ``(v, k)``. Raises `ValueError` if the
    model has no optimum on this view.
    """

    def preferring(v: OefView) -> pyo.ConcreteModel:
        m = MODELS.get(model).build(v)
        prefer(m, -worth)
        return m

    outcome = solve_built(preferring, decode, view, SolveOptions(method="simplex"))
    if outcome.solution.status != "optimal":
        raise ValueError(f"{model} has no optimum here: {outcome.solution.status}")
    return float((worth * outcome.decision.devices).sum())

r"""OEF: efficiency with fairness (Mo, Xu, Lau, Middleware 2024), and the fair-share LPs it is compared with.

- :math:`l, i`: tenants.
- :math:`j`: GPU types, from slowest to fastest.
- :math:`w_l^j`: speedup of tenant l on type j, 1 on the slowest.
- :math:`m_j`: devices of type j.
- :math:`\pi_l`: weight of tenant l. The paper replicates tenants instead (§4.2.3,
  :func:`schedgap.instances.views.oef.replicated`), with equal optima.
- :math:`e_l = \sum_j w_l^j m_j \pi_l / \sum_i \pi_i`: efficiency of tenant l with the equal split, by weight.
- ``x`` :math:`x_l^j \ge 0`: devices of type j that tenant l has, fractions allowed.

All programs share the capacity rows:

.. math:: \sum_l x_l^j \le m_j \quad \forall j \tag{4b, 9b, 10b} \label{capacity}

The dual of a capacity row is the price of a type: what one more device of it would add to the objective.

*Ties.* The paper takes any optimum. Where there are several, which differ in what single tenants get, the one of the
largest second objective is returned (:func:`assortative`): fast types go to large speedups. In (9) everybody's
efficiency is the same in all optima; what a lie is worth to the liar is not, see :func:`least_over_optima`.

*Slips in the text.* The coefficient 4 after (6) is 5, “8 %” is 7.1 %, 0.0495 is 0.495.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.oef import ALLOCATION, ENVY_FREE, EQUAL, SHARING, Allocation, View, efficiency, merged
from schedgap.models.registry import MODELS, ModelSpec, Outcome, solve_built, total
from schedgap.models.solve import (
    TIES,
    Session,
    Solution,
    SolveOptions,
    TracePoint,
    build,
    compile_model,
    counted,
    cross_check,
)

FULL_LIMIT = 150
"""Tenants up to which the full envy-free LP (n(n−1) rows) runs unasked: about a second."""

PRINTED_LIMIT = 12
"""Tenants up to which (10) is solved as printed, in some milliseconds; lazy rows have the same optimum."""

ENVY_TOLERANCE = 1e-9
"""Envy, relative to what the tenant has from an equal split, below which a row counts as satisfied."""


def shares(view: View) -> pyo.ConcreteModel:
    """Return what all programs share: devices within capacity (4b)."""
    m = pyo.ConcreteModel()
    m.TENANTS = pyo.RangeSet(0, view.size - 1)
    m.TYPES = pyo.RangeSet(0, len(view.gpu_types) - 1)
    m.w = pyo.Param(m.TENANTS, m.TYPES, initialize=_table(view.speedups))
    m.m = pyo.Param(m.TYPES, initialize=dict(enumerate(view.capacity.tolist())))
    m.pi = pyo.Param(m.TENANTS, initialize=dict(enumerate(view.weight.tolist())))
    # Upper bounds make the bound of an LP stopped early finite; at twice the capacity they never bind, and the
    # capacity rows keep their whole price.
    m.x = pyo.Var(m.TENANTS, m.TYPES, bounds=lambda m, l, j: (0, 2 * m.m[j]))

    @m.Constraint(m.TYPES)
    def capacity(m: Any, j: int) -> Any:
        return sum(m.x[l, j] for l in m.TENANTS) <= m.m[j]

    prefer(m, assortative(view))
    return m


def in_equal_splits(m: pyo.ConcreteModel, rows: Any, view: View) -> None:
    """Let the solver count a row per tenant in equal splits: its tolerance then means the same to everybody."""
    counted(m, ((rows[l], view.split_efficiency[l]) for l in m.TENANTS))


def prefer(m: pyo.ConcreteModel, worth: Array) -> None:
    """Say which of the optima is wanted: the one of the largest Σ ``worth[l, j]``·x_l^j."""
    m.del_component(TIES)
    m.add_component(TIES, pyo.Suffix(direction=pyo.Suffix.LOCAL))
    getattr(m, TIES).update(zip(m.x.values(), worth.ravel().tolist(), strict=True))


def assortative(view: View) -> Array:
    """Return what a device is worth in the second objective, ``(v, k)``: it matches fast types with large speedups.

    Tenants are ranked by their speedup on the fastest type, then on the next one, then by their order. A device of the
    j-th slowest type is worth ``√rank · ∛j``: the sum is largest where both go together, which is the staircase of
    Theorem 5.2, and roots, unlike ranks themselves, are in no ratio that speedups have, so that one vertex is best.
    """
    rank = np.empty(view.size)
    rank[np.lexsort((-np.arange(view.size), *view.speedups.T))] = np.arange(1, view.size + 1) / view.size
    return np.outer(np.sqrt(rank), np.cbrt(np.arange(1, len(view.gpu_types) + 1)))


def _table(matrix: Array) -> dict[tuple[int, int], float]:
    return {(l, j): float(matrix[l, j]) for l in range(matrix.shape[0]) for j in range(matrix.shape[1])}


def maximise_efficiency(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Add the objective (4a), (9a), (10a): total efficiency."""
    m.efficiency = pyo.Objective(
        rule=lambda m: sum(m.w[l, j] * m.x[l, j] for l in m.TENANTS for j in m.TYPES),
        sense=pyo.maximize,
    )
    return m


def build_efficiency(view: View) -> pyo.ConcreteModel:
    r"""Return (4a) and (4b): the largest total efficiency within capacity, whoever gets it.

    .. math:: \max \sum_l \sum_j w_l^j x_l^j \tag{4a}

    Duals: at an optimum each type goes to whoever has the highest speedup on it, which is its price.
    """
    return maximise_efficiency(shares(view))


def build_maxmin(view: View) -> pyo.ConcreteModel:
    r"""Return max-min fairness over devices: the largest part of the equal split that everybody can have.

    - ``s`` :math:`s \ge 0`: part of the equal split that everybody has.

    .. math:: \max s
    .. math:: x_l^j = s \cdot m_j \cdot \pi_l / \sum_i \pi_i \quad \forall l, j \label{equal_split}

    Duals: that of a capacity row is what one more device would add to s; types without a price are not scarce.
    """
    m = shares(view)
    m.split = pyo.Param(m.TENANTS, m.TYPES, initialize=_table(view.equal_split))
    m.s = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.TENANTS, m.TYPES)
    def equal_split(m: Any, l: int, j: int) -> Any:
        return m.x[l, j] == m.s * m.split[l, j]

    m.least = pyo.Objective(rule=lambda m: m.s, sense=pyo.maximize)
    return m


def build_gavel(view: View, *, row_cap: bool = False) -> pyo.ConcreteModel:
    r"""Return Gavel's max-min LP: the worst-off tenant, measured against its equal split, is as well off as possible.

    - ``z`` :math:`z \ge 0`: the least efficiency, in parts of the equal split's.

    .. math:: \max z \tag{3}
    .. math:: \sum_j w_l^j x_l^j \ge z \cdot e_l \quad \forall l \tag{3} \label{at_least}

    and with `row_cap`, as in Gavel (OSDI 2020, §4.1), at most one device per tenant:

    .. math:: \sum_j x_l^j \le 1 \quad \forall l \tag{3} \label{at_most_one_device}

    Duals: those of the rows of z, times :math:`e_l`, add up to 1; they say whose share is the bottleneck.

    *Errata.* The paper describes the program without the cap and prints the optimum of the one with it: 1.09, 1.44,
    1.8, where the program as described gives everybody 54/49 = 1.102 times the equal split. It ranks Gandiva_fair above
    Gavel in total efficiency; it has 4.356, Gavel 4.364 with the cap.
    """
    m = shares(view)
    m.split = pyo.Param(m.TENANTS, initialize=dict(enumerate(view.split_efficiency.tolist())))
    m.z = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.TENANTS)
    def at_least(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) >= m.z * m.split[l]

    in_equal_splits(m, m.at_least, view)
    if row_cap:

        @m.Constraint(m.TENANTS)
        def at_most_one_device(m: Any, l: int) -> Any:
            return sum(m.x[l, j] for j in m.TYPES) <= 1

    m.least = pyo.Objective(rule=lambda m: m.z, sense=pyo.maximize)
    return m


def gavel(view: View, options: SolveOptions, *, row_cap: bool = False) -> Outcome:
    """Solve (3), and then, at its ratio, maximise total efficiency, so that no solver's choice of vertex shows."""
    first = solve_built(lambda v: build_gavel(v, row_cap=row_cap), decode, view, options).solution
    if first.status != "optimal" or first.objective is None:
        return Outcome(first, None)
    ratio = first.objective * (1 - 1e-9)

    def at_ratio(v: View) -> pyo.ConcreteModel:
        m = build_gavel(v, row_cap=row_cap)
        m.least.deactivate()
        m.z.setlb(ratio)
        return maximise_efficiency(m)

    second = solve_built(at_ratio, decode, view, options)
    times = total(first.times, second.solution.times)
    return Outcome(replace(second.solution, times=times), second.decision)


def build_sharing_incentive(view: View) -> pyo.ConcreteModel:
    r"""Return (8): the largest total efficiency at which nobody is worse off than with the equal split (Theorem 3.3).

    .. math:: \max \sum_l \sum_j w_l^j x_l^j
    .. math:: \sum_j w_l^j x_l^j \ge e_l \quad \forall l \tag{8} \label{at_least_split}

    Duals: that of (8) is what tenant l's right to its equal split costs all tenants together.
    """
    m = shares(view)
    m.split = pyo.Param(m.TENANTS, initialize=dict(enumerate(view.split_efficiency.tolist())))

    @m.Constraint(m.TENANTS)
    def at_least_split(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) >= m.split[l]

    in_equal_splits(m, m.at_least_split, view)
    return maximise_efficiency(m)


def build_noncooperative(view: View) -> pyo.ConcreteModel:
    r"""Return (9a)–(9c): the largest efficiency that all tenants can have alike, by weight.

    - ``E`` :math:`E \ge 0`: efficiency per weight of everybody. One E stands for an equation of every pair: n rows, not
      n².

    .. math:: \max \sum_l \sum_j w_l^j x_l^j \tag{9a}
    .. math:: \sum_j w_l^j x_l^j = \pi_l \cdot E \quad \forall l \tag{9c} \label{equal_efficiency}

    Duals: that of (9c) is the price of equality; it shows who would free devices if it could have less.

    *Errata.* Theorem 5.4, strategy-proofness: no over-report gains, but under-reports do in most random instances. With
    speedups (1, 2) and (1, 5) and one device of each type, tenant 2 gets 3.0 instead of 2.143 by reporting 3. Tenants
    with several job types gain by over-reports, too (``oef.multi.strategy-proof`` in the audit). Theorem 5.2, only
    adjacent types: it needs ratios of speedups that are ordered alike for all tenants. The optimum is not
    sharing-incentive.
    """
    m = shares(view)
    m.E = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.TENANTS)
    def equal_efficiency(m: Any, l: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for j in m.TYPES) == m.pi[l] * m.E

    return maximise_efficiency(m)


def build_cooperative(view: View) -> pyo.ConcreteModel:
    r"""Return (10a)–(10c): the largest total efficiency at which nobody prefers another tenant's share, per weight.

    .. math:: \max \sum_l \sum_j w_l^j x_l^j \tag{10a}
    .. math:: \frac{1}{\pi_l} \sum_j w_l^j x_l^j \ge \frac{1}{\pi_i} \sum_j w_l^j x_i^j \quad \forall l \ne i
        \tag{10c} \label{no_envy}

    Duals: that of (10c) is what keeping l from envying i costs in total efficiency. With equal weights envy-freeness
    implies the sharing incentive.

    *Errata.* Theorem 5.3, Pareto efficiency, holds among envy-free allocations only. With speedups (1, 1.5, 2), (1, 2,
    5), (1, 3, 8) and one device of each type the total can grow by 0.067 without hurting anybody; two types suffice
    (1.3, 2.5, 2.6 and 3.9 on two devices of each). Envy-freeness and sharing incentive hold between job types: a tenant
    with several of them can envy another one, and can have less than with an equal split of which it makes the best
    use. The support can exceed n + k − 1, and Theorem 5.2 (only adjacent types) fails in a few per cent of cases.
    """
    m = shares(view)
    n = view.size
    m.PAIRS = pyo.Set(dimen=2, initialize=[(l, i) for l in range(n) for i in range(n) if l != i])

    @m.Constraint(m.PAIRS)
    def no_envy(m: Any, l: int, i: int) -> Any:
        own = sum(m.w[l, j] * m.x[l, j] for j in m.TYPES)
        return m.pi[i] * own >= m.pi[l] * sum(m.w[l, j] * m.x[i, j] for j in m.TYPES)

    counted(m, ((m.no_envy[l, i], view.split_efficiency[l] * view.weight[i]) for l, i in m.PAIRS))
    return maximise_efficiency(m)


def decode(view: View, model: pyo.ConcreteModel, solution: Solution) -> Allocation:
    """Return the allocation of an incumbent; solver noise below zero becomes zero."""
    devices = solution.array(model.x, (view.size, len(view.gpu_types)))
    return Allocation(np.maximum(devices, 0.0))


def cooperative(view: View, options: SolveOptions) -> Outcome:
    """Solve (10) as printed for few tenants, and otherwise with equals merged and rows (10c) added when violated.

    Of 1000 tenants, 2 % of the rows are needed; sizes are those of the full program. Real traces have few models and
    many tenants: the 567 virtual tenants of 20,000 Philly jobs have 53 different rows of speedups, which takes 0.06 s
    instead of 58 s.
    """
    if view.size <= PRINTED_LIMIT:
        return solve_built(build_cooperative, decode, view, options)
    return merged_cooperative(view, options)


def merged_cooperative(view: View, options: SolveOptions) -> Outcome:
    """Solve (10) on the merged tenants (:func:`schedgap.instances.views.oef.merged`), and decide for all of them."""
    small, group = merged(view)
    outcome = lazy_cooperative(small, options)
    part = view.weight / small.weight[group]
    decision = Allocation(outcome.decision.devices[group] * part[:, None])
    return Outcome(_second_opinion(view, outcome.solution, options), decision)


def lazy_cooperative(view: View, options: SolveOptions) -> Outcome:
    """Solve (10) by lazy rows: neighbours in speedup space first, then each tenant's worst envies until none is left.

    Every master is a relaxation of (10), so its optimum bounds the problem at all times. Tenants with similar speedups
    envy each other first: starting from the nearest neighbours in log-speedup space needs half the rounds and a third
    of the rows of starting from neighbours in a one-dimensional order (1000 tenants, 10 types: 21,600 of 999,000 rows).

    Where time runs out, the equal split, which nobody envies, is the incumbent.
    """
    began = clock.now()
    model = build(build_efficiency, view)
    build_s = clock.now() - began
    form = compile_model(model)
    compile_s = clock.now() - began - build_s
    session = Session(form, replace(options, mip_start=None, basis=None))
    envy = _EnvyRows(view, {id(v): c for c, v in enumerate(form.columns)}, model)
    trace: list[TracePoint] = []
    parts: list[Solution] = []
    optimum: Solution | None = None
    while True:
        left = None if options.time_limit_s is None else options.time_limit_s - (clock.now() - began)
        solution = session.run(None if left is None else max(left, 1e-3))
        parts.append(solution)
        if optimum is None:
            trace.append(TracePoint(clock.now() - began, None, solution.bound))
        if solution.status != "optimal":
            break
        added = envy.nearest() if len(parts) == 1 else envy.worst(decode(view, model, solution).devices)
        if added[2].shape[0]:
            session.add_rows(*added)
        elif optimum is None:
            optimum = solution
            session.keep_optima(optimum)
        else:
            break
    solution = session.at(solution, optimum) if optimum else solution
    times = replace(total(*(p.times for p in parts)), build_s=build_s)
    solution = replace(
        solution,
        times=replace(times, transfer_s=times.transfer_s + compile_s),
        iterations=sum(p.iterations or 0 for p in parts),
        trace=(*trace, TracePoint(clock.now() - began, solution.objective, solution.bound)),
    )
    if solution.status == "optimal":
        return Outcome(solution, decode(view, model, solution))
    return _unfinished(view, solution, [p.bound for p in parts if p.bound is not None], envy.columns)


def _second_opinion(view: View, solution: Solution, options: SolveOptions) -> Solution:
    """Compare with CBC on the full model (10), where that was asked for."""
    if not options.cross_check:
        return solution
    return replace(solution, cross_check=cross_check(build(build_cooperative, view), solution, options))


def _unfinished(view: View, solution: Solution, bounds: list[float], columns: NDArray[np.int64]) -> Outcome:
    """Return the equal split as incumbent and the best relaxation as bound; why the master ended is kept."""
    split = Allocation(view.equal_split)
    values = np.zeros(solution.size.columns)
    values[columns] = split.devices
    out_of_time = solution.status == "time limit without incumbent"
    solution = replace(
        solution,
        status="time limit with incumbent" if out_of_time else solution.status,
        objective=float(view.split_efficiency.sum()),
        bound=min(bounds) if bounds else None,
        column_values=values,
        basis=None,
    )
    return Outcome(solution, split)


class _EnvyRows:
    """The rows (10c) that are in the master, and those still missing, each in units of the tenant's equal split."""

    NEAREST = 4
    PER_TENANT = 4

    def __init__(self, view: View, column_of: dict[int, int], model: pyo.ConcreteModel) -> None:
        n, k = view.speedups.shape
        self.view = view
        self.columns = np.array([column_of[id(v)] for v in model.x.values()]).reshape(n, k)
        self.width = len(column_of)
        self.relative = view.speedups / view.split_efficiency[:, None]
        self.present = np.eye(n, dtype=bool)

    def nearest(self) -> tuple[Array, Array, sp.csr_array]:
        """Rows between each tenant and its nearest neighbours, in both directions."""
        n = self.view.size
        points = np.log(self.view.speedups)
        _, near = KDTree(points).query(points, k=min(self.NEAREST + 1, n))
        wanted = np.zeros((n, n), dtype=bool)
        wanted[np.repeat(np.arange(n), near.reshape(n, -1).shape[1]), near.ravel()] = True
        return self._rows((wanted | wanted.T) & ~self.present)

    def worst(self, devices: Array) -> tuple[Array, Array, sp.csr_array]:
        """Rows of each tenant's largest envies that are not in the master yet; none if the allocation is envy-free."""
        value = self.relative @ (devices / self.view.weight[:, None]).T * self.view.weight[:, None]
        envy = np.where(self.present, 0.0, value - np.diag(value)[:, None])
        keep = min(self.PER_TENANT, self.view.size)
        top = np.argpartition(-envy, keep - 1, axis=1)[:, :keep]
        wanted = np.zeros_like(self.present)
        np.put_along_axis(wanted, top, True, axis=1)
        return self._rows(wanted & (envy > ENVY_TOLERANCE))

    def _rows(self, wanted: NDArray[np.bool_]) -> tuple[Array, Array, sp.csr_array]:
        l, i = np.nonzero(wanted)
        self.present[l, i] = True
        other = self.view.weight[l] / self.view.weight[i]
        data = np.concatenate([self.relative[l], -self.relative[l] * other[:, None]], axis=1)
        columns = np.concatenate([self.columns[l], self.columns[i]], axis=1)
        starts = np.arange(len(l) + 1) * columns.shape[1]
        rows = sp.csr_array((data.ravel(), columns.ravel(), starts), shape=(len(l), self.width))
        return np.zeros(len(l)), np.full(len(l), np.inf), rows


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


def _full_is_large(view: View) -> str | None:
    if view.size <= FULL_LIMIT:
        return None
    rows = view.size * (view.size - 1)
    return f"{rows:,} envy rows, more than {FULL_LIMIT} tenants; oef.cooperative solves the same LP by lazy rows"


def _register(name: str, build_model: Callable[[View], pyo.ConcreteModel], source: str, **fields: Any) -> None:
    defaults = {"problem": ALLOCATION.id, "kind": "exact", "method": "simplex", "example": "paper/oef-eq1"}
    MODELS.register(
        ModelSpec(id=f"oef.{name}", paper="oef", build=build_model, decode=decode, source=source, **defaults | fields)
    )


_register("efficiency", build_efficiency, "OEF §2.3.2, eq. (4)")
_register(
    "noncooperative",
    build_noncooperative,
    "OEF §4.2.1, eq. (9)",
    problem=EQUAL.id,
    claims=("equal_efficiency",),
)
_register(
    "sharing_incentive",
    build_sharing_incentive,
    "OEF §3.1, eq. (8), Theorem 3.3",
    problem=SHARING.id,
    claims=("sharing_incentive",),
)
_register(
    "cooperative",
    build_cooperative,
    "OEF §4.2.2, eq. (10), Theorem 5.1; equals merged, lazy rows",
    problem=ENVY_FREE.id,
    claims=("envy_free", "sharing_incentive"),
    procedure=cooperative,
)
_register(
    "cooperative.full",
    build_cooperative,
    "OEF §4.2.2, eq. (10), all n(n−1) rows",
    problem=ENVY_FREE.id,
    claims=("envy_free", "sharing_incentive"),
    too_large=_full_is_large,
)
_register(
    "maxmin",
    build_maxmin,
    "OEF §2.3.3, max-min fairness",
    problem=SHARING.id,
    kind="baseline",
    claims=("sharing_incentive",),
)
_register(
    "gavel",
    build_gavel,
    "OEF §2.4, Gavel in words; Gavel, OSDI 2020, §4.1",
    problem=SHARING.id,
    kind="baseline",
    procedure=gavel,
    claims=("sharing_incentive",),
    parameters=(
        Parameter(
            "row_cap",
            "at most one device per tenant, Σ_j x_l^j ≤ 1, as in Gavel and in the printed allocation (3); with fewer "
            "tenants than devices the others stay idle, and nobody need have an equal split",
            changes={True: {"problem": ALLOCATION.id, "claims": ()}},
        ),
    ),
    variants=("row_cap=true",),
)

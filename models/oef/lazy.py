"""How (10), and any program with rows of envy, is solved for many tenants.

Equal tenants are merged, and envy rows are added when they are violated. The optimum is that of
:func:`.printed.build_fair`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.oef import Allocation, OefView, merged, unmerged
from schedgap.models.engine.solve import Session, Solution, SolveOptions, TracePoint, build, checked, compile_model
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.oef.envy import Envy, envied, neighbours, parts, settled
from schedgap.models.oef.leximin import breaking_ties
from schedgap.models.oef.printed import Constraints, build_cooperative, build_fair, decode
from schedgap.models.registry import Outcome, solve_built, total

PRINTED_LIMIT = 12
"""Most tenants with which (10) is solved as printed, in a few milliseconds; lazy rows have the same optimum."""

ENVY_TOLERANCE = 1e-9
"""Largest envy, as a fraction of the tenant's efficiency with an equal split, at which a row counts as satisfied."""


def cooperative(view: OefView, options: SolveOptions, *, ties: str = "assortative") -> Outcome:
    """Solve (10) as printed for few tenants; otherwise merge equal tenants and add rows (10c) when violated.

    Few of the rows are needed; the reported sizes are those of the full program. Merging helps with real traces, which
    have many tenants and few models: the 567 virtual tenants of 20,000 Philly jobs have 53 different rows of speedups.
    """

    def solved(v: OefView, options: SolveOptions) -> Outcome:
        if v.size <= PRINTED_LIMIT:
            return solve_built(build_cooperative, decode, v, options)
        return merged_cooperative(v, options)

    return breaking_ties(build_cooperative, solved, view, options, ties=ties)


def merged_cooperative(view: OefView, options: SolveOptions) -> Outcome:
    """Solve (10) for merged tenants (:func:`schedgap.instances.views.oef.merged`), and divide their devices again."""
    small, group = merged(view)
    outcome = lazy_fair(small, options)
    decision = Allocation(unmerged(view, group, outcome.decision.devices))
    return Outcome(checked(outcome.solution, options, build_cooperative, view), decision, evidence=outcome.evidence)


def envy_of(view: OefView, duals: Array) -> Envy:
    """Return the multipliers of merged tenants from those ``(v, v)`` of all pairs in (10c) as printed.

    Merged tenants have the same efficiency per weight as their members, so that the rows of the members add up.
    """
    small, group = merged(view)
    between = np.zeros((small.size, small.size))
    np.add.at(between, (group[:, None], group), np.maximum(duals, 0.0) * np.outer(view.weight, view.weight))
    np.fill_diagonal(between, 0.0)
    pairs = np.argwhere(between > 0)
    return Envy(pairs, between[tuple(pairs.T)])


class Known(NamedTuple):
    """What is known from a program of the same tenants that is a little more or less strict, to start from.

    Attributes
    ----------
    pairs
        ``(m, 2)`` envy rows of its last master.
    basis, rows
        Optimal basis of that master, and its number of rows.
    """

    pairs: Ints
    basis: Any
    rows: int

    @classmethod
    def of(cls, outcome: Outcome) -> Known | None:
        """Return what an outcome of :func:`lazy_fair` tells, if it is optimal."""
        solution = outcome.solution
        if solution.status != "optimal" or solution.row_duals is None:
            return None
        return cls(outcome.evidence.pairs, solution.basis, len(solution.row_duals))


FREE_OF_ENVY = Constraints(epsilon=0.0)
"""What (10) requires."""


def lazy_fair(
    view: OefView, options: SolveOptions, required: Constraints = FREE_OF_ENVY, known: Known | None = None
) -> Outcome:
    """Solve a program with envy rows by lazy rows, (10) by default.

    The first rows are those between tenants with similar speedups, or those `known`; then each tenant's worst envies
    follow. Every master is a relaxation of the program, so its optimum is always a bound. Tenants with similar speedups
    envy each other first, so the first rows are those between nearest neighbours in log-speedup space; with two types,
    these are enough for (10) (:func:`.envy.neighbours`).

    If time runs out, the last master's allocation is settled, so that nobody envies anybody (:func:`.envy.settled`).
    """
    began = clock.now()
    model = build(build_fair, view, replace(required, epsilon=1.0))
    build_s = clock.now() - began
    form = compile_model(model)
    compile_s = clock.now() - began - build_s
    session = Session(form, replace(options, mip_start=None, basis=None))
    part = 1 - required.epsilon
    envy = _EnvyRows(view, form, part)
    if known is not None and part:
        session.add_rows(*envy.again(known.pairs))
        if known.rows == envy.before + len(known.pairs):
            session.start_at(known.basis)
    trace: list[TracePoint] = []
    solutions: list[Solution] = []
    optimum: Solution | None = None
    devices = view.equal_split
    while True:
        solution = session.run(options.since(began).time_limit_s)
        solutions.append(solution)
        if optimum is None:
            trace.append(TracePoint(clock.now() - began, None, solution.bound))
        if solution.status != "optimal":
            break
        devices = decode(view, model, solution).devices
        rows = envy.nearest() if len(solutions) == 1 and known is None else envy.worst(devices)
        if not rows[2].shape[0]:  # the checker allows less than the solver's tolerance of rows
            solution, _ = session.refined(solution)
            if optimum is None:
                trace[-1] = trace[-1]._replace(bound=solution.bound)
            devices = decode(view, model, solution).devices
            rows = envy.worst(devices)
        if rows[2].shape[0]:
            session.add_rows(*rows)
        elif optimum is None:
            optimum = solution
            session.keep_optima(optimum)
        else:
            break
    solution = session.at(solution, optimum) if optimum else solution
    times = replace(total(*(s.times for s in solutions)), build_s=build_s)
    solution = replace(
        solution,
        times=replace(times, transfer_s=times.transfer_s + compile_s),
        iterations=sum(s.iterations or 0 for s in solutions),
        trace=(*trace, TracePoint(clock.now() - began, solution.objective, solution.bound)),
    )
    if solution.status == "optimal":
        return Outcome(solution, decode(view, model, solution), evidence=envy.multipliers(solution))
    return _ended(view, envy, solution, solutions, devices)


def _ended(
    view: OefView, envy: _EnvyRows, solution: Solution, solutions: Sequence[Solution], devices: Array
) -> Outcome:
    """Settle the last relaxation, whose optimum is the best bound; keep the reason why the master ended."""
    devices = settled(view, devices)
    values = np.zeros(solution.size.columns)
    values[envy.columns] = devices
    out_of_time = solution.status == "time limit without incumbent"
    solution = replace(
        solution,
        status="time limit with incumbent" if out_of_time else solution.status,
        objective=float((view.speedups * devices).sum()),
        bound=min((s.bound for s in solutions if s.bound is not None), default=None),
        column_values=values,
        basis=None,
    )
    master = next((s for s in reversed(solutions) if s.status == "optimal"), None)
    evidence = None if master is None else envy.multipliers(master)
    return Outcome(solution, Allocation(devices), evidence=evidence)


class _EnvyRows:
    """Keeps track of which rows (10c) are in the master; each row is in units of the tenant's equal split.

    The rows of the `form` come first. `part` is the part of another's bundle that a tenant may not prefer to its own, 1
    if no envy is allowed.
    """

    NEAREST = 4
    PER_TENANT = 4

    def __init__(self, view: OefView, form: StandardForm, part: float) -> None:
        place = {id(one): at for at, one in enumerate(form.columns)}
        row = {id(one): at for at, one in enumerate(form.rows)}
        self.view, self.part, self.before, self.width = view, part, len(form.rows), len(form.columns)
        self.columns = np.array([place[id(v)] for v in form.model.x.values()]).reshape(view.speedups.shape)
        split = form.model.component("at_least_split")
        self.split_rows = [] if split is None else [row[id(one)] for one in split.values()]
        self.relative = view.speedups / view.split_efficiency[:, None]
        self.worth = parts(view).worth
        self.pairs = np.zeros((0, 2), np.int64)

    def multipliers(self, solution: Solution) -> Envy:
        """Return the multipliers of the rows that the master had when this optimum was found.

        These were then the last rows of the master, to which others may have been added since.
        """
        duals = solution.row_duals
        assert duals is not None
        own = duals[self.before :]
        pairs = self.pairs[: len(own)]
        scale = self.view.weight[pairs[:, 0]] / self.view.split_efficiency[pairs[:, 0]]
        split = np.maximum(-duals[self.split_rows], 0.0) if self.split_rows else None
        return Envy(pairs, np.maximum(-own, 0.0) * scale, split)

    def again(self, pairs: Ints) -> tuple[Array, Array, sp.csr_array]:
        """Return the rows of these pairs ``(m, 2)``, in their order."""
        return self._rows(pairs @ (self.view.size, 1))

    def nearest(self) -> tuple[Array, Array, sp.csr_array]:
        """Return the rows between each tenant and its nearest neighbours, in both directions, if any are needed."""
        if not self.part:
            return self._rows(np.zeros(0, np.int64))
        return self._rows(neighbours(self.view, self.NEAREST))

    def worst(self, devices: Array) -> tuple[Array, Array, sp.csr_array]:
        """Return the rows that the master lacks for each tenant's largest envies; none if there is no envy."""
        most = self.PER_TENANT
        while True:
            l, i, _ = envied(self.worth, devices / self.view.equal_split, most, ENVY_TOLERANCE, self.part)
            new = np.setdiff1d(l * self.view.size + i, self.pairs @ (self.view.size, 1))
            # Rows that the master has may be violated within the solver's tolerance, and hide others.
            if len(new) or np.bincount(l, minlength=1).max(initial=0) < most:
                return self._rows(new)
            most *= 2

    def _rows(self, new: Ints) -> tuple[Array, Array, sp.csr_array]:
        """Return the rows of these pairs, as numbers ``l·n + i``."""
        l, i = np.divmod(new, self.view.size)
        self.pairs = np.concatenate([self.pairs, np.column_stack((l, i))])
        other = self.view.weight[l] / self.view.weight[i]
        data = np.concatenate([self.relative[l], -self.part * self.relative[l] * other[:, None]], axis=1)
        columns = np.concatenate([self.columns[l], self.columns[i]], axis=1)
        starts = np.arange(len(l) + 1) * columns.shape[1]
        rows = sp.csr_array((data.ravel(), columns.ravel(), starts), shape=(len(l), self.width))
        return np.zeros(len(l)), np.full(len(l), np.inf), rows

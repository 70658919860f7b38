"""The solution procedure of ILP1, on arrays: first its LP, then the integer program over columns near the LP's optimum.

Pyomo takes about 15 ms to build and compile a model of any size, longer than the solve; tests compare its statement and
the arrays, row by row.

The optimum is that of the statement, :func:`~schedgap.models.synergy.throughput.build_round` with integers. It is also
the first half of LP2, whose demands are therefore those of the registered ``synergy.ilp1`` (on several types,
``synergy.hetero.ilp1``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Bools, Ints
from schedgap.instances.views.synergy import IDEAL, Schedule, SynergyView
from schedgap.models.registry import Outcome, total
from schedgap.models.solve import Session, Solution, SolveOptions, StandardForm, checked
from schedgap.models.solve.form import RowBlocks
from schedgap.models.synergy import throughput
from schedgap.models.synergy.configurations import capacity, units

FEW = 150
"""Columns up to which HiGHS solves the integer program directly, in less time than LP and rounding take."""

FRACTION = 1e-6
"""Distance from a whole number at which a column of the LP counts as fractional."""


def round_form(view: SynergyView, chosen: throughput.RoundChoices) -> StandardForm:
    """Return the integer model of a round in which every job runs at its floor or above: eq. (1)–(5) with GPU rows."""
    group, held, at = chosen.classes, chosen.held, chosen.at
    gpu_type = held.gpu_type[at]
    types = np.unique(gpu_type)
    place, columns, rows = np.searchsorted(types, gpu_type), np.arange(len(at)), RowBlocks()
    amount = (held.amount(view) / units(view)[held.gpu_type])[at]
    room = (capacity(view) / units(view))[types].T
    for r in range(3):
        rows.add(np.full(len(types), -np.inf), room[r], (amount[:, r], place, columns))
    rows.add(group.count, group.count, (1.0, chosen.owner, columns))
    gain = group.weight[chosen.owner] * held.rate[at]
    return rows.form(gain, integer=np.ones(len(at), bool), maximise=True)


def ideal_round(view: SynergyView, options: SolveOptions) -> tuple[Solution, Schedule | None]:
    """Solve ILP1 (or its extension to several GPU types) for ``c*`` and ``m*`` of every runnable job."""
    began = clock.now()
    chosen = throughput.choices(view, throughput.FLOORED)
    form = round_form(view, chosen)
    build_s = clock.now() - began
    solution = whole_numbers(form, chosen.owner, options)
    solution = replace(solution, times=replace(solution.times, build_s=build_s))
    if solution.column_values is None:
        return solution, None
    return solution, throughput.held_by(view, chosen, np.rint(solution.column_values).astype(np.int64))


def whole_numbers(form: StandardForm, owner: Ints, options: SolveOptions) -> Solution:
    """Solve a maximisation integer program whose LP has few fractional columns; `owner` ``(q,)`` is each one's class.

    With two resources and one choice per class, a vertex of the LP is fractional in a few classes only. First, these
    classes choose again among all columns, the others among those that the LP chose; a result within the gap of the LP
    is optimal. Otherwise, columns whose reduced cost alone exceeds the remaining difference are left out: no better
    solution has them. The time limit applies to each of up to three solves.
    """
    if len(owner) <= FEW:
        return _solved(form, options)
    relaxed = Session(replace(form, integer=np.zeros(len(owner), bool)), replace(options, method="simplex")).run()
    if relaxed.status == "infeasible":
        return relaxed
    if relaxed.status != "optimal" or relaxed.column_values is None or relaxed.column_duals is None:
        return _solved(form, options)
    open_classes = owner[np.abs(relaxed.column_values - np.rint(relaxed.column_values)) > FRACTION]
    rounded = _within(form, (relaxed.column_values > FRACTION) | np.isin(owner, open_classes), options)
    top, value = float(relaxed.objective or 0.0), rounded.objective
    if value is not None and top - value <= options.rel_gap * abs(value):
        return replace(rounded, status="optimal", bound=top, times=total(relaxed.times, rounded.times))
    kept = np.ones(len(owner), bool)
    if value is not None:
        kept = np.abs(relaxed.column_duals) <= (top - value) * (1 + 1e-6) + 1e-6 * abs(top)
    last = _within(form, kept, options)
    return replace(last, times=total(relaxed.times, rounded.times, last.times))


def _solved(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve without HiGHS's feasibility jump, which takes two thirds of the 8 ms for a program of about 80 columns."""
    session = Session(form, options)
    session.set_option("mip_heuristic_run_feasibility_jump", False)
    return session.run()


def _within(form: StandardForm, kept: Bools, options: SolveOptions) -> Solution:
    """Solve with the columns in `kept` only; the others are 0."""
    smaller = replace(
        form,
        cost=form.cost[kept],
        matrix=form.matrix[:, np.flatnonzero(kept)],
        lower=form.lower[kept],
        upper=form.upper[kept],
        integer=form.integer[kept],
    )
    solution = _solved(smaller, options)
    if solution.column_values is None:
        return solution
    values = np.zeros(len(kept))
    values[kept] = solution.column_values
    return replace(solution, column_values=values)


def solve_ideal(view: SynergyView, options: SolveOptions) -> Outcome:
    """Solve ILP1 on arrays: first the relaxation, then the few classes that are fractional in it choose again.

    Columns that are left out cannot be in a better solution. The reported sizes are those of the whole program.
    """
    solution, decision = ideal_round(view, options)
    return Outcome(checked(solution, options, throughput.build_round, view, throughput.FLOORED), decision)


for _name, _skip, _source in (
    ("ilp1", throughput.mixed_cluster, "section 4.1, eq. (1)–(5) with integers"),
    ("hetero.ilp1", throughput.one_type, "A.2, eq. (22)–(25) with (5) on each GPU type, GPU rows, integers"),
):
    throughput.register(_name, throughput.FLOORED, IDEAL, _source, _skip, procedure=solve_ideal)

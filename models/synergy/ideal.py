"""How ILP1 is solved: first its LP, then the integer program over the columns that can be in an optimum.

The program is built as arrays: Pyomo takes about 15 ms to build and compile a model of any size, longer than the solve.
Tests compare the arrays with the statement in Pyomo (:func:`~schedgap.models.synergy.throughput.build_round` with
integers) row by row.

LP2 begins with this program, too: the CPUs and memory that its jobs demand are those of the registered ``synergy.ilp1``
(on several types, ``synergy.hetero.ilp1``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Bools, Ints
from schedgap.instances.views.synergy import IDEAL, SynergySchedule, SynergyView
from schedgap.models.engine.solve import Session, Solution, SolveOptions, StandardForm, checked
from schedgap.models.engine.solve.form import RowBlocks
from schedgap.models.registry import Outcome, total
from schedgap.models.synergy import throughput
from schedgap.models.synergy.configurations import capacity, units

FEW = 150
"""Most columns with which HiGHS solves the integer program directly, since that is faster than LP and rounding."""

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


def ideal_round(view: SynergyView, options: SolveOptions) -> tuple[Solution, SynergySchedule | None]:
    """Solve ILP1, or its extension to several GPU types: find CPUs ``c*`` and memory ``m*`` of every runnable job."""
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
    """Solve an integer program, to be maximised, whose LP has few fractional columns.

    `owner` ``(q,)`` is the class of jobs of each column. With two resources and one choice per class, a vertex of the
    LP is fractional in a few classes only. First, these classes choose again among all of their columns, and the others
    among the columns that the LP chose; if the result is within the gap of the LP's optimum, it is optimal. Otherwise,
    columns whose reduced cost alone exceeds the remaining difference are left out: no better solution has them. The
    time limit applies to each of up to three solves.
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
    """Solve an integer program without HiGHS's feasibility jump, which takes most of the time of small programs."""
    session = Session(form, options)
    session.set_option("mip_heuristic_run_feasibility_jump", False)
    return session.run()


def _within(form: StandardForm, kept: Bools, options: SolveOptions) -> Solution:
    """Solve the program over the columns in `kept` only, with all other columns 0."""
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
    """Solve ILP1: first its relaxation, then the few classes of jobs that are fractional there choose again.

    Columns that are left out cannot be in a better solution. The reported sizes are those of the whole program.
    """
    solution, decision = ideal_round(view, options)
    return Outcome(checked(solution, options, throughput.build_round, view, throughput.FLOORED), decision)


for _name, _skip, _source in (
    ("ilp1", throughput.mixed_cluster, "section 4.1, eq. (1)–(5) with integers"),
    ("hetero.ilp1", throughput.one_type, "A.2, eq. (22)–(25) with (5) on each GPU type, GPU rows, integers"),
):
    throughput.register(_name, throughput.FLOORED, IDEAL, _source, _skip, procedure=solve_ideal)

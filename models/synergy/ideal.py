"""ILP1 as it is solved: as arrays, first its LP, then only the columns near the LP's optimum, where these are enough.

The optimum is that of the statement, :func:`~schedgap.models.synergy.throughput.build_round` with integers. It is also
the first half of LP2, whose demands are thus those of the registered ``synergy.ilp1`` (on several types
``synergy.hetero.ilp1``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Bools, Ints
from schedgap.instances.views.synergy import IDEAL, Schedule, View
from schedgap.models.registry import MODELS, ModelSpec, Outcome, total
from schedgap.models.solve import Session, Solution, SolveOptions, StandardForm, build, cross_check
from schedgap.models.synergy.arrays import round_form
from schedgap.models.synergy.throughput import (
    FLOORED,
    build_round,
    choices,
    decode_round,
    held_by,
    mixed_cluster,
    one_type,
)

FEW = 150
"""Columns up to which HiGHS solves the integer program at once: about 10 ms, as little as LP and rounding take."""

FRACTION = 1e-6
"""Distance from a whole number at which a column of the LP counts as fractional."""


def ideal_round(view: View, options: SolveOptions) -> tuple[Solution, Schedule | None]:
    """Solve ILP1 (with several GPU types, its extension): ``c*`` and ``m*`` of every runnable job."""
    began = clock.now()
    chosen = choices(view, FLOORED)
    form = round_form(view, chosen)
    build_s = clock.now() - began
    solution = whole_numbers(form, chosen.owner, options)
    solution = replace(solution, times=replace(solution.times, build_s=build_s))
    if solution.column_values is None:
        return solution, None
    return solution, held_by(view, chosen, np.rint(solution.column_values).astype(np.int64))


def whole_numbers(form: StandardForm, owner: Ints, options: SolveOptions) -> Solution:
    """Solve an integer program whose LP has few fractional columns, to maximise.

    With two resources and one choice per class a vertex of the LP is fractional in a few classes only. First these
    classes choose again, the others among what the LP chose; if that is within the gap of the LP, it is optimal.
    Otherwise columns whose reduced cost alone loses more than what is open are left out: no better solution has them.

    Parameters
    ----------
    form
        The integer program.
    owner
        ``(q,)`` class of each column.
    options
        Limits; the time limit applies to each of up to three solves.
    """
    if len(owner) <= FEW:
        return Session(form, options).run()
    relaxed = Session(replace(form, integer=np.zeros(len(owner), bool)), replace(options, method="simplex")).run()
    if relaxed.status == "infeasible":
        return relaxed
    if relaxed.status != "optimal" or relaxed.column_values is None or relaxed.column_duals is None:
        return Session(form, options).run()
    open_classes = owner[np.abs(relaxed.column_values - np.rint(relaxed.column_values)) > FRACTION]
    near = _within(form, (relaxed.column_values > FRACTION) | np.isin(owner, open_classes), options)
    top, reached = float(relaxed.objective or 0.0), near.objective
    if reached is not None and top - reached <= options.rel_gap * abs(reached):
        return replace(near, status="optimal", bound=top, times=total(relaxed.times, near.times))
    kept = np.ones(len(owner), bool)
    if reached is not None:
        kept = np.abs(relaxed.column_duals) <= (top - reached) * (1 + 1e-6) + 1e-6 * abs(top)
    found = _within(form, kept, options)
    return replace(found, times=total(relaxed.times, near.times, found.times))


def _within(form: StandardForm, kept: Bools, options: SolveOptions) -> Solution:
    """Solve with some of the columns; the others are 0."""
    smaller = replace(
        form,
        cost=form.cost[kept],
        matrix=form.matrix[:, np.flatnonzero(kept)],
        lower=form.lower[kept],
        upper=form.upper[kept],
        integer=form.integer[kept],
    )
    found = Session(smaller, options).run()
    if found.column_values is None:
        return found
    values = np.zeros(len(kept))
    values[kept] = found.column_values
    return replace(found, column_values=values)


def solve_ideal(view: View, options: SolveOptions) -> Outcome:
    """Solve ILP1 as arrays: the relaxation first, then the few classes whose shares are fractional choose again.

    What is left out cannot be in a better solution. The sizes are those of the whole program.
    """
    solution, found = ideal_round(view, options)
    if options.cross_check:
        second = cross_check(build(build_round, view, FLOORED), solution, options)
        solution = replace(solution, cross_check=second)
    return Outcome(solution, found)


for _name, _skip, _example, _source in (
    ("ilp1", mixed_cluster, "paper/synergy-example", "section 4.1, eq. (1)–(5) with integers"),
    ("hetero.ilp1", one_type, "gen/20jobs", "A.2, eq. (22)–(25) with (5) on each GPU type, GPU rows, integers"),
):
    MODELS.register(
        ModelSpec(
            id=f"synergy.{_name}",
            paper="synergy",
            problem=IDEAL.id,
            kind="exact",
            build=partial(build_round, rule=FLOORED),
            decode=decode_round,
            source=f"Synergy {_source}",
            procedure=solve_ideal,
            skip=_skip,
            example=_example,
        )
    )

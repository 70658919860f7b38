"""P2 by column generation: a certified bound and a schedule near it, at sizes where P1 has millions of binaries.

Capacities are the GPUs of a type in a slot, blocks are jobs, columns are schedules; :mod:`models.columns` does the
work, :mod:`models.hadar.pricing` finds the schedules. The bound holds for P1 as well, which is the same problem.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from instances import clock
from instances.views.hadar import COMPLETE, UTILITY, Schedule, View, placed
from models.columns import Columns, Generated, Packed, Packing, PackingOptions, generate, pack, solve_in_phases
from models.columns import statement as master
from models.hadar.common import somebody_rejected
from models.hadar.pricing import Pricing
from models.registry import MODELS, ModelSpec, Outcome, no_reason
from models.solve import SolveOptions

LARGEST = 40_000_000
"""Jobs times slots up to which it runs unasked: utilities and prices of all of them are kept in memory."""

BOUND_SHARE = 0.6
"""Share of the time limit that the bound may take; the rest is for the schedule."""


def packing(view: View, complete: bool = False) -> Packing:
    """Return the packing problem of a view: row ``r·T + t`` is type ``r`` in slot ``t``.

    Parameters
    ----------
    view
        GPUs, slots, jobs.
    complete
        Whether every job completes.
    """
    capacity = np.repeat(view.capacity, view.slots).astype(float)
    return Packing(capacity, view.size, complete, floor=0.0)


def build_master(view: View, complete: bool = False) -> pyo.ConcreteModel:
    """Return the LP of P2 over the schedules that column generation found."""
    problem = packing(view, complete)
    return master(problem, generate(problem, Pricing(view, complete)).columns)


def columns(view: View, options: SolveOptions, complete: bool = False) -> Outcome:
    """Solve P2: bound by column generation, schedule by ruin and recreate.

    Parameters
    ----------
    view
        What is to be scheduled.
    options
        Limits, gap, seed.
    complete
        Whether every job completes.

    Returns
    -------
    Outcome
        Its prices are ``(k, T)``: what one more GPU of a type in a slot would add to the bound at most.
    """
    began = clock.now()
    problem = packing(view, complete)
    pricing = Pricing(view, complete)

    def packer(generated: Generated, effort: PackingOptions) -> Packed:
        return pack(problem, pricing.insert, generated, effort, options)

    built_s = clock.now() - began
    answer = solve_in_phases(problem, pricing, packer, PackingOptions(), options, share=BOUND_SHARE, built_s=built_s)
    found = answer.packed is not None and answer.solution.objective is not None
    decision = decode(view, answer.packed.columns) if answer.packed and found else None
    return Outcome(answer.solution, decision, answer.generated.prices.reshape(-1, view.slots))


def decode(view: View, chosen: Columns) -> Schedule:
    """Return the schedule of chosen columns, with GPUs put onto servers."""
    use = chosen.use.tocoo()
    gpus = np.rint(use.data).astype(np.int64)
    cell = use.row.astype(np.int64)
    return placed(view, chosen.block[use.col], cell % view.slots, cell // view.slots, gpus)


def too_large(view: View) -> str | None:
    """Return why column generation runs only on request, or ``None``."""
    size = view.size * view.slots
    return f"{view.size:,} jobs in {view.slots:,} slots, more than {LARGEST:,} together" if size > LARGEST else None


for _complete, _problem in ((False, UTILITY), (True, COMPLETE)):
    MODELS.register(
        ModelSpec(
            id="hadar.p2.columns.complete" if _complete else "hadar.p2.columns",
            paper="hadar",
            problem=_problem.id,
            kind="exact",
            build=partial(build_master, complete=_complete),
            decode=lambda view, model, solution: None,
            source="Hadar §III-B, eq. (2), by column generation" + (", every job completes" if _complete else ""),
            procedure=partial(columns, complete=_complete),
            skip=somebody_rejected if _complete else no_reason,
            too_large=too_large,
        )
    )

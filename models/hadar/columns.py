"""P2 by branch and price, at sizes where P1 has millions of binaries.

Capacities are the GPUs of a type in a slot, blocks are jobs, columns are schedules; :mod:`schedgap.models.columns` does
the work, :mod:`schedgap.models.hadar.pricing` finds the schedules. The bound holds for P1 as well, which is the same
problem.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.views.hadar import COMPLETE, UTILITY, Schedule, View, placed
from schedgap.models.columns import Choice, Columns, PackingOptions, PackingProblem, generate, solve_in_phases
from schedgap.models.columns import statement as master
from schedgap.models.hadar.common import somebody_rejected
from schedgap.models.hadar.pricing import Pricing
from schedgap.models.registry import MODELS, SEEDED, ModelSpec, Outcome, no_reason
from schedgap.models.solve import SolveOptions

LARGEST = 40_000_000
"""Jobs times slots up to which it runs unasked: utilities and prices of all of them are kept in memory."""

BOUND_SHARE = 0.6
"""Share of the time limit that the bound may take; the rest is for the schedule."""


def build_master(view: View, complete: bool = False) -> pyo.ConcreteModel:
    """Return the LP of P2 over the schedules that column generation found."""
    pricing = Pricing(view, complete)
    return master(pricing.packing, generate(pricing.anything, pricing).columns)


def columns(view: View, options: SolveOptions, complete: bool = False, *, seeded: bool = True) -> Outcome:
    """Solve P2 by branch and price.

    Parameters
    ----------
    view
        What is to be scheduled.
    options
        Limits, gap, seed, known decisions.
    complete
        Whether every job completes.
    seeded
        Whether it starts from known decisions.

    Returns
    -------
    Outcome
        Its prices are ``(k, T)``: what one more GPU of a type in a slot would add to the bound at most.
    """
    began = clock.now()
    pricing = Pricing(view, complete)
    posed = PackingProblem(
        packing=pricing.packing,
        oracle=pricing,
        real=pricing.packing,
        insert=pricing.insert,
        expand=lambda prices: prices,
        effort=PackingOptions(),
        read=partial(read, view, pricing),
        share=BOUND_SHARE,
    )
    answer = solve_in_phases(posed, options, clock.now() - began, seeded)
    decision = answer.decision(lambda packed: decode(view, packed.columns))
    return Outcome(answer.solution, decision, answer.generated.prices.reshape(-1, view.slots))


def read(view: View, pricing: Pricing, decision: Schedule) -> dict[int, Choice]:
    """Return the columns of a decision, by job."""
    row = view.servers.gpu_type[decision.server] * view.slots + decision.slot
    shape = view.size, len(view.capacity) * view.slots
    held = sp.csr_array((decision.gpus.astype(float), (decision.job, row)), shape)
    last = np.zeros(view.size, np.int64)
    np.maximum.at(last, decision.job, decision.slot)
    found = {}
    for job in np.unique(decision.job).tolist():
        mine = slice(held.indptr[job], held.indptr[job + 1])
        found[job] = Choice(float(pricing.worth[job, last[job]]), held.indices[mine].astype(np.int64), held.data[mine])
    return found


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
            parameters=(SEEDED,),
        )
    )

"""The steps of the admission algorithm as a primal–dual algorithm, and its final prices as a dual solution.

The text prices workers and parameter servers of all servers together, so a cell is a resource of the whole cluster in a
slot. It proves no ratio. Its prices are like Zhou's (11), with θ in the place of λ, so Definition 1 is that of
:mod:`schedgap.heuristics.zhou.duality`, with the natural logarithm of the largest θ as α: small steps need no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from schedgap.heuristics.admission.online import Desk, price
from schedgap.heuristics.duals import PriceRun, Purchase, follow
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.moldable import Runs
from schedgap.instances.views.admission import AdmissionView


def steps(view: AdmissionView, runs: Runs, *, theta: float = 1.0) -> PriceRun:
    """Return the steps of a decision, in the order in which jobs were admitted, at the prices η.

    What all workers of a type cost is their number times the price, although the price depends on the share of the
    workers of all types that are in use.
    """
    desk, m = Desk(view, theta=theta), view.machines
    divisor, base = (np.repeat(each.ravel(), view.slots) for each in (desk.divisor, desk.bases))
    capacity = np.repeat(m.total, view.slots)

    def posted(cells: Ints, used: Array) -> Array:
        return price(base[cells], used, divisor[cells])

    def place(cell: int) -> str:
        return f"{m.resources[cell // view.slots]}, slot {cell % view.slots}"

    found, start, used = follow(purchases(view, runs), capacity, posted, unit=1.0)
    final = posted(np.arange(capacity.size), used).reshape(-1, view.slots)
    rows = np.broadcast_to(final, (view.classes.size, *final.shape))
    return PriceRun(found, start, math.log(desk.bases.max()), None, "", rows, place)


def purchases(view: AdmissionView, runs: Runs) -> Iterator[Purchase]:
    """Yield what each admitted job gets, in the order of a decision; a cell is a resource of all servers in a slot."""
    for run, job in enumerate(runs.job.tolist()):
        mine = runs.run == run
        held = {
            int(runs.worker_type[run]): runs.workers[mine].sum(),
            len(view.machines.resources) - 1: runs.ps[mine].sum(),
        }
        when = np.arange(runs.start[run], runs.start[run] + runs.slots[run])
        cells = np.concatenate([resource * view.slots + when for resource in held])
        amounts = np.repeat(np.array([*held.values()], float), when.size)
        worth = float(view.utility(job)[runs.start[run] + runs.slots[run]])
        yield Purchase(job, worth, cells, amounts)

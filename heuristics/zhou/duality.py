r"""The dual of Zhou et al.'s weight problem at the final prices of A_maxweight: what a run shows of Theorem 3.

Theorem 3 says that A_maxweight gets at least :math:`1/(2 \log \lambda)` of the largest weight, if a job's weight is
between the *sum* of what it consumes and F times that sum. Its proof needs the prices (11), with all payoffs, to solve
the dual (9): a resource that has run out must cost more than any job weighs. With the bound on the sum, this does not
follow. A job whose weight is due to memory, of which there is plenty, may weigh more than a GPU costs when all GPUs
are taken, and the theorem fails (``family/zhou-memory``). Awerbuch, Azar and Plotkin (FOCS 1993) bound the weight by F
times what a job takes of *each* resource that it uses.

So result rows state the ratio where the run shows it. For any prices, the payoffs of all jobs and what the capacities
cost solve (9), so their sum D is at least the optimum. Where :math:`D \le 2 \log \lambda \cdot P`, for the weight P of
the run, the ratio holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from schedgap.heuristics.duals import PriceRun, Purchase, follow
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.moldable import Ledger
from schedgap.instances.views.zhou import Architecture, ZhouSchedule


def loads(a: Architecture, schedule: ZhouSchedule) -> Array:
    """Return the ``(h, R, τ − 1)`` resources in use in slots 1 … τ − 1."""
    m, taken = a.machines, held(a, schedule)
    begin = schedule.start[schedule.run] - 1
    change = np.zeros((m.size, a.deadline, taken.shape[1]))
    np.add.at(change, (schedule.server, begin), taken)
    np.add.at(change, (schedule.server, begin + schedule.slots[schedule.run]), -taken)
    used = np.cumsum(change, axis=1)[:, :-1].transpose(0, 2, 1)
    return np.where(used > ROUNDING * m.capacity[:, :, None], used, 0.0)


def steps(a: Architecture, schedule: ZhouSchedule, *, f: float = 1.0) -> PriceRun:
    """Return the steps of A_maxweight, in the order in which it schedules jobs, at the prices (11).

    The proof of Theorem 3 goes on from λ^x − 1 ≤ x·log λ, for jobs that take x ≤ 1/log λ of a server: α of Definition 1
    is log λ, to base 2, and that of Lemma 1 is twice as much, since a job's weight is at least the sum of what it
    consumes, and at least what it pays.
    """
    a = a.believed(f)
    m, slots = a.machines, a.deadline - 1
    capacity = np.repeat(m.capacity.ravel(), slots)

    def price(cells: Ints, used: Array) -> Array:
        return a.price(used, capacity[cells])

    def place(cell: int) -> str:
        server, resource = divmod(cell // slots, len(m.resources))
        return f"{m.resources[resource]} of server {m.names[server]}, slot {cell % slots + 1}"

    found, start, used = follow(purchases(a, schedule), capacity, price, unit=1.0)
    final = price(np.arange(capacity.size), used).reshape(*m.capacity.shape, slots)
    log = math.log2(a.price_base)
    rows = np.array([final[m.kind == kind].mean(axis=0) for kind in range(a.classes.size)])
    promise = "Theorem 3" if a.meets_assumptions.all() else ""
    return PriceRun(found, start, log, 2 * log if promise else None, promise, rows, place)


def purchases(a: Architecture, schedule: ZhouSchedule) -> Iterator[Purchase]:
    """Yield what each job gets, in the order of a schedule; a cell is a resource of a server in a slot."""
    slots = a.deadline - 1
    taken = held(a, schedule)
    for run, job in enumerate(schedule.job.tolist()):
        mine = np.flatnonzero(schedule.run == run)
        entry, resource = np.nonzero(taken[mine] > 0)
        cells = (schedule.server[mine][entry] * taken.shape[1] + resource) * slots
        when = np.arange(schedule.start[run] - 1, schedule.start[run] - 1 + schedule.slots[run])
        amounts = np.repeat(taken[mine][entry, resource], when.size)
        yield Purchase(job, float(a.weight[job]), (cells[:, None] + when).ravel(), amounts)


def held(a: Architecture, schedule: ZhouSchedule) -> Array:
    """Return the ``(e, R)`` resources that each entry of a schedule holds."""
    m = a.machines
    taken = schedule.workers[:, None] * m.worker[schedule.worker_type[schedule.run]]
    return taken + schedule.ps[:, None] * m.ps[schedule.ps_type[schedule.run]] if a.id == "ps" else taken


def dual_objective(a: Architecture, used: Array) -> float:
    """Return the objective of (9) at the prices (11) of these loads, with the largest payoff of each job.

    No schedule by τ has more weight. Cheapest schedules are found by the exact placement.
    """
    price = a.prices(used)
    ledger = Ledger(a.machines, a.options, a.deadline - 1)
    ledger.post(price)
    runs = [(float(weight), ledger.find(job, 0, limit=float(weight))) for job, weight in enumerate(a.weight)]
    payoffs = sum(weight - run.cost for weight, run in runs if run)
    return float(payoffs + (price * a.machines.capacity[:, :, None]).sum()) * (1 + ROUNDING)


def shown(a: Architecture, schedule: ZhouSchedule, *, f: float = 1.0, trust: float = 0.0) -> Guarantee | None:
    """Return the ratio ``2 log λ`` of Theorem 3 if the dual shows it, or what it shows instead.

    It is ``None`` unless all jobs meet the theorem's assumptions as printed, with the F for which `f` takes it. With
    `trust` in predicted prices, the ratio is ``2 log λ / (1 − trust)`` (:mod:`schedgap.heuristics.advice`).
    """
    a = a.believed(f)
    if trust == 1.0 or not a.meets_assumptions.all():
        return None
    reached, ratio = float(a.weight[schedule.job].sum()), a.gamma / (1.0 - trust)
    most = dual_objective(a, loads(a, schedule))
    if most <= ratio * reached:
        return Guarantee(f"2 log λ{'/(1 − trust)' if trust else ''} = {ratio:.1f}", ratio)
    return Guarantee(f"none shown: dual {most / reached:.3g} P" if reached else "none shown: no job completes")

"""Planning one round of Hadar (Algorithm 2): FIND_ALLOC for one job, DP_allocation for a queue.

**FIND_ALLOC.** For each type as the slowest one, by descending rate (line 25), there are two candidates on GPUs of that
rate or more: the allocation on the fewest servers (chosen one by one, the one with most room first, then the cheapest)
and the cheapest allocation. Ties between servers go to the faster one, so labels of types have no effect. All GPUs that
a job takes on a server cost the server's price before it takes them (the paper's ``k(t) · w(t)``). A job that holds an
allocation until it completes has one of the payoffs::

    μ_j = U_j(f̂) − (cost of a round + comm_cost)                    payoff="round": line 31
    μ_j = U_j(f̂) − rounds left · (cost of a round + comm_cost)      payoff="lifetime": (4) and (8)

with ``f̂`` its last slot at the rate of its slowest type, and ``comm_cost = β · (servers − 1) · mean price``, which the
paper leaves undefined. A packed candidate over several servers also pays it, although line 28 prints none. The
candidate of highest payoff is taken if that is positive.

The paper prints both payoffs. Line 31, the sentence below (8) ("minimizing a cost function at each round") and §IV-B
("the number of GPUs left unused is minimized") are about the cost of one round: ``payoff="round"``, the default. (3a),
(4), (8) and ``t^max`` in (7) are about the cost of a lifetime; Theorem 2 needs that, so ``payoff="lifetime"`` carries
its guarantee.

**DP_allocation.** ``V(i, state) = max(μ_i + V(i + 1, state after), V(i + 1, state))``, computed forward: each job
generates the states (GPUs taken by server) after taking or skipping it, and equal states are merged. Up to
:data:`EXACT_QUEUE` jobs, no state is dropped. For longer queues, the best `beam` states are kept, including the one
that took every job it could, so the result is never worse than that of ``beam=1``, the greedy plan. The paper's
recursion keeps all states. Those that skipped the first jobs, of highest payoff, are dropped by the beam, and with them
all plans of many small jobs (``family/hadar-skipped``). ``second=True`` also tries the jobs of a greedy plan by payoff
per GPU, and takes the better plan.

A schedule completes by the horizon (1c): a job that would end later has utility 0.

**Departures from the text.** One is not a setting: branches are compared by payoff, because line 20 compares costs and
so always prefers to take nothing (:mod:`schedgap.heuristics.hadar.algorithm2`, where Algorithm 2 stands as one reads
it). The others are fields of :class:`Planning`, for these reasons:

=====================  =============================================================================================
setting                why it is not the default
=====================  =============================================================================================
``payoff="lifetime"``  (4) and (8), which Theorem 2 is about: GPUs idle although jobs wait, since a long job that pays
                       for all its rounds cannot afford the last GPUs of a server
``alloc="cost"``       lines 28 to 31 as printed: the cheapest allocation whatever its rate, never of higher payoff
``keep=False``         line 6 as printed, which passes the plan no allocations: jobs move for nothing
``order="arrival"``    the queue in order of arrival; a beam then favours jobs by label
``order="density"``    not the paper's: payoff per GPU and round
``stop=True``          line 7 as printed: a job without an allocation drops all later ones
``beam=1``             not the paper's: greedy
``second=True``        plans of larger payoff make worse runs: a job's utility of a lifetime counts against the cost of
                       one round, so that many small jobs look better than the large ones that they keep waiting
=====================  =============================================================================================

What each setting changes on ``gen/hadar-480`` is in ``docs/experiments.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from schedgap.heuristics.hadar.prices import ExtremePrices
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import HadarView
from schedgap.instances.workload import Servers

if TYPE_CHECKING:
    from schedgap.heuristics.hadar._kernels import HadarHosts, Queue

Payoff = Literal["round", "lifetime"]
Alloc = Literal["payoff", "cost"]
Order = Literal["payoff", "density", "arrival"]
Search = Literal["exact", "beam", "greedy"]

EXACT_QUEUE = 12
"""Most jobs in a queue that is planned exactly; there are up to 2^n states after n jobs, and 12 jobs take 1 ms."""

BEAM = 16
"""Number of states that the beam search keeps after each job."""

MEMO_STATES = 1 << 18
"""Most states after one job for which :meth:`Planner.memo_entries` counts the entries of the memo."""


@dataclass(frozen=True, eq=False)
class RoundToPlan:
    """The jobs to plan in a round and the GPUs that they hold.

    `jobs` ``(q,)`` are in the queue, ascending, with `remaining` ``(q,)`` iterations left. `used` ``(h,)`` GPUs are
    taken by jobs that are not planned. `held` ``(entries, 3)`` lists the GPUs that the queue holds: row in `jobs`,
    server and GPUs, ascending by row.
    """

    jobs: Ints
    remaining: Array
    slot: int
    used: Ints
    held: Ints


@dataclass(frozen=True, eq=False)
class PlanningQueue:
    """The jobs of a round in the order in which they are planned.

    `queue` holds the data of the jobs of `around` for compiled functions; `order` are the rows of the jobs that fit, in
    the order of planning, and `lean` the same rows by payoff per GPU.
    """

    around: RoundToPlan
    queue: Queue
    order: Ints
    lean: Ints


@dataclass(frozen=True)
class GangPlan:
    """A round's plan by DP_allocation: the GPUs of the chosen jobs, and the sum of their payoffs.

    `entries` ``(entries, 3)`` are job, server and GPUs. `search` is ``"exact"`` if no state was dropped, ``"greedy"``
    for a beam of one state, otherwise ``"beam"``; `states` counts the visited pairs of job and state, which a recursion
    would keep in a memo.
    """

    entries: Ints
    payoff: float
    search: Search
    states: int


@dataclass(frozen=True)
class Planning:
    """Settings of the planning; the module says what the paper prints, and why a setting is not the default.

    Attributes
    ----------
    payoff
        Whether a job pays for one round or for all that it still needs.
    alloc
        Whether FIND_ALLOC takes the allocation of highest payoff or of least cost.
    keep
        Whether a running job keeps its GPUs if they are free and none are found of higher payoff and earlier end.
    order
        Order of the queue.
    stop
        Whether the first job without an allocation ends the planning.
    beam, exact
        Number of states kept if the queue is longer than `exact` jobs.
    second
        Whether a queue whose states do not fit in the beam is also planned by payoff per GPU; the better plan is taken.
    beta, communication
        Communication cost for each server of a gang beyond its first: `beta` times the mean price of its GPUs, plus
        `communication` in units of utility, as in P1.
    """

    payoff: Payoff = "round"
    alloc: Alloc = "payoff"
    keep: bool = True
    order: Order = "payoff"
    stop: bool = False
    beam: int = BEAM
    exact: int = EXACT_QUEUE
    second: bool = False
    beta: float = 0.0
    communication: float = 0.0


class Planner:
    """A planner for Hadar's rounds: it holds the prices and plans one round at a time, in the slots of one view."""

    def __init__(self, view: HadarView, prices: ExtremePrices, how: Planning = Planning()) -> None:
        self.view, self.how = view, how
        self.reprice(prices)

    def reprice(self, prices: ExtremePrices) -> None:
        """Replace the prices of GPUs in later plans."""
        self.hosts = price_list(self.view.servers, prices)

    def find_alloc(self, around: RoundToPlan, row: int) -> tuple[Ints, float]:
        """Return the best ``(entries, 3)`` allocation of one job of the queue and its payoff, ``-inf`` if none fits."""
        from schedgap.heuristics.hadar._kernels import find, state

        queue, scratch = self.queue(around), np.empty((4, self.hosts.gpus.size), np.int64)
        states = state(self.hosts, queue, around.used)
        count, _, payoff = find(self.hosts, queue, row, states, 0, scratch)
        job = np.full(count, around.jobs[row])
        return np.column_stack((job, scratch[0, :count], scratch[1, :count])), float(payoff)

    def line_up(self, around: RoundToPlan) -> PlanningQueue:
        """Sort the queue of a round for planning, by the setting `order`; ties go by arrival, then index."""
        from schedgap.heuristics.hadar._kernels import payoffs

        queue = self.queue(around)
        payoff, rounds = payoffs(self.hosts, queue, around.used)
        keys = {"payoff": -payoff, "density": -payoff / (queue.gpus * rounds), "arrival": np.zeros(payoff.size)}
        # A job that fits nowhere now fits nowhere later in this round; it stays in line only if it stops the others.
        lasting = (payoff > -np.inf) | self.how.stop

        def sorted_by(key: Array) -> Ints:
            rows = np.lexsort((around.jobs, self.view.arrival[around.jobs], key))
            found: Ints = rows[lasting[rows]]
            return found

        return PlanningQueue(around, queue, sorted_by(keys[self.how.order]), sorted_by(-payoff / queue.gpus))

    def dp_allocation(self, line: PlanningQueue) -> GangPlan:
        """Plan a queue by DP_allocation; the plan has the largest total payoff if the queue is short enough.

        With the setting `second`, if a beam dropped states, the jobs that a greedy plan by payoff per GPU takes replace
        a plan of lower payoff.
        """
        from schedgap.heuristics.hadar._beam import search

        beam, rows, used = self.how.beam, line.order, line.around.used
        width = 2**rows.size if rows.size <= self.how.exact and beam > 1 else beam
        chosen, payoff, states, dropped = search(self.hosts, line.queue, rows, used, width)
        how: Search = "greedy" if beam == 1 else "beam" if dropped else "exact"
        if how == "beam" and self.how.second:
            small, _, looked, _ = search(self.hosts, line.queue, line.lean, used, 1)
            fewer = rows[np.isin(rows, line.lean[small])]
            taken, total, again, _ = search(self.hosts, line.queue, fewer, used, 1)
            states += looked + again
            if total > payoff:
                rows, chosen, payoff = fewer, taken, total
        return GangPlan(self._placed(line, rows[chosen], used), float(payoff), how, int(states))

    def leftovers(self, line: PlanningQueue, plan: GangPlan, all_jobs: bool = False) -> Ints:
        """Give the GPUs that a plan leaves idle to jobs outside the plan; return their ``(entries, 3)`` allocations.

        Jobs of highest payoff come first. Only jobs of utility 0 get GPUs, unless `all_jobs` is set or the cluster
        would be empty.
        """
        used = line.around.used.copy()
        np.add.at(used, plan.entries[:, 1], plan.entries[:, 2])
        outside = np.ones(line.around.jobs.size, bool)
        outside[np.searchsorted(line.around.jobs, plan.entries[:, 0])] = False
        if used.any() and not all_jobs:
            outside &= line.queue.worth.max(axis=1) <= 0
        return self._placed(line, line.order[outside[line.order]], used)

    def _placed(self, line: PlanningQueue, rows: Ints, used: Ints) -> Ints:
        """Place the jobs in `rows` of a queue one after another; return their ``(entries, 3)`` allocations."""
        from schedgap.heuristics.hadar._kernels import place

        entries: Ints = place(self.hosts, line.queue, rows, used)
        entries[:, 0] = line.around.jobs[entries[:, 0]]
        return entries

    def memo_entries(self, around: RoundToPlan) -> int:
        """Return the number of entries that the exact dynamic program puts into its memo (Theorem 1: polynomial)."""
        from schedgap.heuristics.hadar._beam import search

        line = self.line_up(around)
        width = min(2**line.order.size, MEMO_STATES)
        _, _, states, dropped = search(self.hosts, line.queue, line.order, around.used, width)
        if dropped:
            raise ValueError(f"more than {MEMO_STATES} states after one of {line.order.size} jobs")
        return int(states)

    def queue(self, around: RoundToPlan) -> Queue:
        """Return the jobs of a round with the data from which compiled functions compute their payoffs."""
        from schedgap.heuristics.hadar._kernels import Queue, worths

        view, jobs = self.view, around.jobs
        rounds = view.rounds(jobs, around.remaining)
        waited, left = around.slot - view.arrival[jobs], view.slots - around.slot
        rate = np.where(np.isfinite(rounds), view.workload.rates[jobs], 0.0)
        held = around.held if self.how.keep else around.held[:0]
        return Queue(
            gpus=view.workload.gpus[jobs],
            rate=rate,
            by_rate=np.argsort(-rate, axis=1, kind="stable"),
            worth=worths(view.utilities, jobs, waited, rounds, left, view.slot_s),
            rounds=rounds,
            paid=rounds if self.how.payoff == "lifetime" else np.ones(rounds.shape),
            held=np.searchsorted(held[:, 0], np.arange(jobs.size + 1)),
            held_server=held[:, 1].copy(),
            held_gpus=held[:, 2].copy(),
            beta=self.how.beta,
            communication=self.how.communication,
            by_cost=self.how.alloc == "cost",
            stop=self.how.stop,
        )


def price_list(servers: Servers, prices: ExtremePrices) -> HadarHosts:
    """Return the servers with their prices for every number of GPUs taken."""
    from schedgap.heuristics.hadar._kernels import HadarHosts

    kinds, kind = np.unique(np.column_stack((servers.gpu_type, servers.gpus)), axis=0, return_inverse=True)
    lists = [prices.price(r, np.arange(gpus + 1), max(gpus, 1)) for r, gpus in kinds.tolist()]
    first = np.cumsum([0, *map(len, lists)])
    machine = np.zeros(0, np.int64) if servers.host is None else servers.host
    return HadarHosts(servers.gpu_type, servers.gpus, machine, first[kind.ravel()], np.concatenate(lists))


AS_PRINTED = Planning(alloc="cost", keep=False, order="arrival", stop=True)
"""Settings with which FIND_ALLOC runs as printed.

It takes the cheapest allocation whatever its rate, and its payoff subtracts the cost of one round from the utility of a
lifetime (lines 28 to 31). A job without an allocation ends the planning (lines 7 and 8).
"""

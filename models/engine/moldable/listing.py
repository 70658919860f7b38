"""Closing a node by enumeration: once few schedules on real servers remain, solve the MILP over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.instances.arrays import ROUNDING, Bools, Ints
from schedgap.instances.errors import TooManyError
from schedgap.models.engine.columns import Choice, Columns, Domain, Generated, Packer, choose
from schedgap.models.engine.moldable.generation import MoldablePricing
from schedgap.models.engine.moldable.jobs import MoldableJobs, Scheduled, columns_of
from schedgap.models.engine.moldable.placements import Placement, schedules
from schedgap.models.engine.solve import SolveOptions

LESS = 0.75
"""After too many schedules were found, enumeration is tried again once the slack is below this fraction of that."""

NODES = 1000
"""Node limit of the MILP over enumerated columns, if the node could be branched on instead."""

LAST = 20
"""Factor on the limits of enumeration for a node that cannot be branched on: only enumeration can close it."""

LARGE = 1e300
"""Values below −LARGE mean infeasible."""


class Listing:
    """Closes domains in which few schedules on real servers remain, by solving the MILP over them.

    Parameters
    ----------
    jobs, pricing
        Jobs and servers, and the relaxation's pricing.
    solver
        Gap, seed and threads.
    packer
        The primal heuristic, which gets the solutions found.
    """

    def __init__(self, jobs: MoldableJobs, pricing: MoldablePricing, solver: SolveOptions, packer: Packer) -> None:
        self.jobs, self.pricing, self.solver, self.packer = jobs, pricing, solver, packer
        self.enough = np.inf

    def __call__(self, domain: Domain, relaxation: Generated, cutoff: float, last: bool) -> tuple[float, bool]:
        """Return a bound on the solutions in a domain, and whether a solution attains it.

        See :data:`schedgap.models.engine.columns.Close`.
        """
        slack = max(relaxation.bound - cutoff, 0.0) * (1 + ROUNDING) + ROUNDING * abs(relaxation.bound)
        if not last and slack > self.enough:
            return np.inf, False
        listed = self.within(domain, relaxation, slack, last)
        bound, done = (np.inf, False) if listed is None else self.chosen(domain, listed, last)
        self.enough = self.enough if done else LESS * slack
        return bound, done

    def chosen(self, domain: Domain, listed: list[tuple[int, Choice]], last: bool) -> tuple[float, bool]:
        """Solve the MILP and offer its solution to the packer; return the bound, and whether a solution attains it."""
        real = replace(domain, packing=self.packer.packing)
        if len({job for job, _ in listed} | set(np.flatnonzero(~domain.must).tolist())) < self.jobs.size:
            return -np.inf, True
        if not listed:
            return 0.0, True
        ends = [c.found.end if isinstance(c, Scheduled) else self.jobs.slots + 1 for _, c in listed]
        columns = Columns.of(len(real.packing.capacity), [(j, c.value, c.rows, c.amounts) for j, c in listed], ends)
        left, nodes = self.packer.budget.left_wall_s, None if last else NODES
        left_s = None if left == np.inf else max(left if last else left / 2, 0.1)
        limits = replace(self.solver, time_limit_s=left_s, nodes=nodes, cross_check=False)
        solution = choose(real, columns, limits)
        all_scheduled = True
        if solution.column_values is not None:
            chosen = [listed[c] for c in np.flatnonzero(solution.column_values > 0.5)]
            scheduled = {job: choice for job, choice in chosen if isinstance(choice, Scheduled)}
            all_scheduled = len(scheduled) == len(chosen)
            self.packer.offer(scheduled)
        if solution.status == "infeasible":
            return -np.inf, True
        return np.inf if solution.bound is None else solution.bound, solution.status == "optimal" and all_scheduled

    def within(
        self, domain: Domain, relaxation: Generated, slack: float, last: bool
    ) -> list[tuple[int, Choice]] | None:
        """Enumerate the schedules whose profit is at most `slack` below the best of their job; ``None`` if too many.

        A job that ends after all slots uses no capacity. That counts as one more schedule of the job, worth no less
        than any schedule that it stands for.
        """
        jobs, grid = self.jobs, self.pricing.grid
        prices = grid.expand(jobs, relaxation.prices).reshape(*jobs.machines.capacity.shape, jobs.slots)
        paid = np.concatenate([np.zeros((*prices.shape[:2], 1)), prices.cumsum(axis=2)], axis=2)
        least = np.maximum(self.pricing(relaxation.prices, domain).most - slack, -LARGE)
        o, m = jobs.options, jobs.machines

        def wanted(option: int, placement: Placement, begin: Ints) -> Bools:
            server, workers, ps = np.array(placement).T
            use = workers[:, None] * m.worker[o.worker_type[option]]
            if o.ps_type[option] >= 0:
                use = use + ps[:, None] * m.ps[o.ps_type[option]]
            end, job = begin + o.slots[option], o.job[option]
            cost = np.einsum("hr,hrt->t", use, paid[server][:, :, end] - paid[server][:, :, begin])
            return np.asarray(domain.worth[job, end] - cost >= least[job])

        try:
            ends = np.minimum(domain.last, jobs.slots)
            kept = schedules(m, o, jobs.earliest, ends, wanted, times=LAST if last else 1)
        except TooManyError:
            return None
        nothing = np.zeros(0, np.int64), np.zeros(0)
        late = [] if jobs.beyond is None else np.flatnonzero(domain.worth[:, -1] >= least).tolist()
        return [*columns_of(jobs, 0, kept), *((j, Choice(float(jobs.worth[j, -1]), *nothing)) for j in late)]

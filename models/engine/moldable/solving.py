"""Branch and price for moldable jobs: bounds over classes of servers, schedules on real servers."""

from __future__ import annotations

from schedgap.instances.arrays import Array
from schedgap.instances.moldable import Runs, classes
from schedgap.models.engine.columns import Branch, PackingOptions, PackingProblem, solve_in_phases
from schedgap.models.engine.moldable.annealing import Annealer
from schedgap.models.engine.moldable.generation import MoldablePricing
from schedgap.models.engine.moldable.jobs import CapacityGrid, MoldableJobs, columns_of, runs
from schedgap.models.engine.moldable.listing import Listing
from schedgap.models.engine.solve import Solution, SolveOptions

HOT, COLD = 0.1, 0.002
"""First and last temperature of the annealing; the first hardly matters."""

RUINED = 20
"""Most jobs that a move removes."""

BOUND_SHARE = 0.7
"""Fraction of the time limit that the root bound may take; the rest is for the schedule."""

NEAR = 5e-4
"""Gap at which the root bound over windows of slots is good enough; a gap of 1e-4 takes twice as long."""

SCARCER = (0.9, 0.85)
"""Fractions of the capacities for which relaxations guide the search for least costs, too: runs leave parts of servers
empty, and jobs wait for them. Where jobs may be left out instead, this only takes time."""


def solve(
    jobs: MoldableJobs, options: SolveOptions, sense: int, first_slot: int, seeded: bool = True
) -> tuple[Solution, Runs | None, Array, Branch | None]:
    """Return the solution, the schedule, and the prices ``(k·R, T)`` and the tree that prove the bound.

    Parameters
    ----------
    jobs
        Jobs and servers.
    options
        Limits, gap, seed, known decisions.
    sense
        1 if values are maximised, −1 if costs are minimised.
    first_slot
        Number of the first slot in decisions.
    seeded
        Whether to start from the known decisions.
    """
    grid = CapacityGrid(classes(jobs.machines), jobs.slots)
    pricing = MoldablePricing(jobs, grid)
    packing = pricing.domain.packing
    problem = PackingProblem(
        packing=packing,
        oracle=pricing,
        packer=lambda bound, prices, effort: Annealer(jobs, grid, bound, prices, effort),
        effort=PackingOptions(hot=HOT, cold=COLD, ruined=RUINED),
        read=lambda decision: dict(columns_of(jobs, first_slot, decision)),
        share=BOUND_SHARE,
        near=NEAR if packing.series > 1 else 0.0,
        whole=False,
        close=lambda packer: Listing(jobs, pricing, options, packer),
        sense=sense,
        scarcer=SCARCER if sense < 0 else (),
    )
    answer = solve_in_phases(problem, options, seeded=seeded)
    decision = answer.decision(lambda packed: runs(packed, first_slot))
    prices = grid.by_slot(answer.generated.prices).reshape(-1, jobs.slots)
    return answer.solution, decision, prices, answer.root

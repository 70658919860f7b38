"""Branch and price for elastic jobs: bounds over classes of servers, schedules on real servers."""

from __future__ import annotations

from schedgap.instances.arrays import Array
from schedgap.instances.elastic import Runs, classes
from schedgap.models.columns import Branch, PackingOptions, PackingProblem, solve_in_phases
from schedgap.models.elastic.annealing import Annealer
from schedgap.models.elastic.generation import Pricing
from schedgap.models.elastic.jobs import ElasticJobs, Grid, columns_of, runs
from schedgap.models.elastic.listing import Listing
from schedgap.models.solve import Solution, SolveOptions

HOT, COLD = 0.1, 0.002
"""Temperatures of the annealing.

HOT hardly matters. On ``gen/200jobs``, 25 s of moves end 0.91 % and 1.03 % (two seeds) from the first bound of
``zhou.ps.columns.maxweight`` and, with 0.5 instead of 0.1, 0.91 % and 1.04 %; ``admission.columns`` 3.67 % and 3.57 %,
and 3.60 % and 3.72 %; one seed of ``zhou.ps.columns`` 0.79 % and 1.04 %, of ``zhou.ra.columns`` 0.83 % and 0.74 %.
"""

RUINED = 20
"""Most jobs that a move removes: on ``gen/200jobs``, ``admission.columns`` reaches 2814.4 after 30 s of annealing, with
10 jobs 2808.7, and with 5 2790.8; ``zhou.ps.columns`` is 0.07 % closer to its bound after 20 s than with 10."""

BOUND_SHARE = 0.7
"""Fraction of the time limit that the root bound may take; the rest is for the schedule."""

NEAR = 5e-4
"""Gap at which the root bound over windows of slots is good enough.

On ``gen/zhou-ps`` it is 88,198,711 after 13 s of computing, and 88,243,718 at a gap of 1e-4 after 23 s; on
``gen/zhou-ra`` 69,223,514 after 22 s, and 69,266,189 after 49 s."""


def solve(
    jobs: ElasticJobs, options: SolveOptions, sense: int, first_slot: int, seeded: bool = True
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
    grid = Grid(classes(jobs.machines), jobs.slots)
    pricing = Pricing(jobs, grid)
    packing = pricing.domain.packing
    problem = PackingProblem(
        packing=packing,
        oracle=pricing,
        packer=lambda bound, prices, effort: Annealer(jobs, bound, grid.expand(jobs, prices), effort),
        effort=PackingOptions(hot=HOT, cold=COLD, ruined=RUINED),
        read=lambda decision: dict(columns_of(jobs, first_slot, decision)),
        share=BOUND_SHARE,
        near=NEAR if packing.series > 1 else 0.0,
        whole=False,
        close=lambda packer: Listing(jobs, pricing, options, packer),
        sense=sense,
    )
    answer = solve_in_phases(problem, options, seeded=seeded)
    decision = answer.decision(lambda packed: runs(packed, first_slot))
    prices = grid.by_slot(answer.generated.prices).reshape(-1, jobs.slots)
    return answer.solution, decision, prices, answer.root

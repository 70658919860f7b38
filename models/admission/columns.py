"""The admission ILP by column generation: a certified bound, and a schedule near it, for hundreds of jobs.

Capacities are workers and parameter servers of classes of servers in slots; see :mod:`schedgap.models.elastic`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.views.admission import FROM_ARRIVAL, UTILITY, View
from schedgap.models.columns import generate, statement
from schedgap.models.elastic import ElasticJobs, Grid, Pricing, solve, too_large
from schedgap.models.elastic.placements import elastic_schedules
from schedgap.models.registry import MODELS, SEEDED, ModelSpec, Outcome
from schedgap.models.solve import SolveOptions


def admitting(view: View, problem: str) -> ElasticJobs:
    """Return what is scheduled: slots are those of the view, jobs may be rejected."""
    first = view.first_start(problem)
    late = np.full((view.size, view.slots + 1), np.inf)
    for job in range(view.size):
        begin, end = min(int(first[job]) + 1, view.slots), int(view.deadline[job]) + 1
        worth = view.utility(job)
        late[job, begin:end] = -worth[begin:end]
        late[job, :begin] = late[job, begin]
    return ElasticJobs(view.machines, view.options, view.slots, first, late, None)


def build_master(view: View, problem: str) -> pyo.ConcreteModel:
    r"""Return the relaxation of the ILP over the schedules :math:`L_j' \subseteq L_j` that column generation made.

    - :math:`c`: classes of equal servers, which hold :math:`C_{cw}` workers and :math:`C_{cp}` PSs together.
    - :math:`y_{l,c,w}, z_{l,c,p}`: workers and PSs that l has on servers of class c.
    - ``x`` :math:`x_l \ge 0`: share of schedule l.

    .. math:: \max \sum_j \sum_{l \in L_j'} f_j(\hat{t}_l - r_j) \cdot x_l
    .. math:: \sum_{l \colon t \in T(l)} y_{l,c,w} \cdot x_l \le C_{cw}, \quad
        \sum_{l \colon t \in T(l)} z_{l,c,p} \cdot x_l \le C_{cp} \quad \forall c, w, p, t \label{within}
    .. math:: \sum_{l \in L_j'} x_l \le 1 \quad \forall j \label{once}

    Servers of a class are interchangeable: averaging over permutations shows that their rows can be added.

    Duals: prices of workers and PSs by class and slot. At any prices the cost of all capacity and the largest payoff of
    every job add up to a bound on the ILP.
    """
    jobs = admitting(view, problem)
    pricing = Pricing(jobs, Grid(view.classes, jobs.slots))
    return statement(pricing.domain.packing, generate(pricing.domain, pricing).columns)


def columns(view: View, options: SolveOptions, problem: str, *, seeded: bool = True) -> Outcome:
    """Branch and price over classes of servers, and look for a schedule on real ones.

    Returns
    -------
    Outcome
        Its prices are ``(classes·R, slots)``, in utility per worker or parameter server and slot.

    See Also
    --------
    schedgap.models.columns.solve_in_phases : how the search goes on, and what it can prove.
    """
    return Outcome(*solve(admitting(view, problem), options, 1, first_slot=0, seeded=seeded))


def _implied(view: View, problem: str) -> tuple[float, bool]:
    return elastic_schedules(admitting(view, problem))


for _problem, _name in ((UTILITY, ""), (FROM_ARRIVAL, ".from_arrival")):
    MODELS.register(
        ModelSpec(
            id=f"admission.columns{_name}",
            paper="admission",
            problem=_problem.id,
            kind="matheuristic",
            build=partial(build_master, problem=_problem.id),
            source="walk-through, (18a) and its primal, by column generation",
            procedure=partial(columns, problem=_problem.id),
            too_large=lambda view: too_large(view.size, view.machines, view.slots),
            parameters=(SEEDED,),
            example="paper/walkthrough",
            implied=partial(_implied, problem=_problem.id),
        )
    )

"""Zhou's ILP over exponentially many schedules, by column generation: certified bounds where no other model has one."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.moldable import Runs, classes, in_units
from schedgap.instances.moldable.machines import priced_alone
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, ZhouSchedule, ZhouView
from schedgap.models.engine.columns import generate, statement
from schedgap.models.engine.moldable import CapacityGrid, MoldableJobs, MoldablePricing, solve, too_large
from schedgap.models.engine.moldable.placements import moldable_schedules
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.registry import SEEDED, Outcome, model
from schedgap.models.zhou.common import skip

STRETCH = 1.5
"""Number of slots after the last arrival, as a multiple of the slots that the scarcest resource needs for all work."""


def completing(a: Architecture) -> MoldableJobs:
    """Return the jobs of the problem of least weighted completion time; index t stands for slot t + 1.

    The slots suffice for :data:`STRETCH` times the work and for one more run of the longest job, and a few jobs may run
    one after the other. A job may also end later, at the cost of the first end after these slots.
    """
    slots = _slots(a)
    late = a.weight[:, None] * (np.arange(slots + 1) + 1.0)
    return MoldableJobs(in_units(a.machines), a.options, slots, a.arrival - 1, late, a.weight * (slots + 2.0))


FEW = 12
"""Number of jobs up to which there are also slots for all of them one after the other, each alone."""


def _slots(a: Architecture) -> int:
    m, shortest = a.machines, a.options.shortest
    # What no worker and no PS can use does no work: one small server of many may have to run all jobs.
    used = m.count @ np.where(m.usable > 0, m.capacity, 0.0)
    work = np.divide(a.least_slots.sum(axis=0) * m.total, used, out=np.zeros_like(used), where=used > 0)
    together = math.ceil(STRETCH * float(work.max())) + int(shortest.max())
    return int(a.arrival.max()) + (together if a.size > FEW else max(together, int(shortest.sum())))


def weighing(a: Architecture) -> MoldableJobs:
    """Return the jobs of the problem of largest weight: all may run from slot 1 on and must complete by slot τ."""
    slots = max(a.deadline - 1, 1)
    late = np.repeat(-a.weight[:, None], slots + 1, axis=1)
    return MoldableJobs(in_units(a.machines), a.options, slots, np.zeros(a.size, np.int64), late, None)


def build_master(view: ZhouView, arch: str, weight: bool = False) -> pyo.ConcreteModel:
    r"""Build the relaxation over the schedules :math:`\Gamma_j' \subseteq \Gamma_j` that column generation made.

    - :math:`i`: classes of :math:`n_i` equal servers.
    - :math:`c_l`: completion time of schedule l.
    - :math:`f_{l,i,r}^t`: amount of resource r that l takes on servers of class i in slot t.
    - ``x`` :math:`x_l \ge 0`: share of schedule l.

    By default every job completes, which gives a lower bound on the offline optimum that the paper does not have. The
    master maximises the negative of the cost:

    .. math:: \min \sum_j \sum_{l \in \Gamma_j'} w_j \cdot c_l \cdot x_l \tag{2, 15}
    .. math:: \sum_l f_{l,i,r}^t \cdot x_l \le n_i \cdot C_i^r \quad \forall i, r, t \tag{8a, 17a} \label{within}
    .. math:: \sum_{l \in \Gamma_j'} x_l = 1 \quad \forall j \tag{2a} \label{once}

    or, with `weight`, jobs may be left out, and the weight completed by slot τ is maximised:

    .. math:: \max \sum_j \sum_{l \in \Gamma_j'} w_j \cdot x_l \tag{8, 17}
    .. math:: \sum_{l \in \Gamma_j'} x_l \le 1 \quad \forall j \tag{8b, 17b} \label{once}

    Servers of a class are interchangeable: averaging over permutations shows that the rows of equal servers can be
    summed without changing the optimum. A job may complete after the last slot by a column that takes nothing and costs
    the first end after the slots.

    Duals: prices of resources by class and slot go to the pricing problem, the cheapest schedule of every job, which is
    solved exactly. At any prices, its optima less the price of all capacity are a bound.
    """
    a = view.architectures[arch]
    jobs = weighing(a) if weight else completing(a)
    pricing = MoldablePricing(jobs, CapacityGrid(classes(jobs.machines), jobs.slots))
    return statement(pricing.domain.packing, generate(pricing.domain, pricing).columns)


def columns(view: ZhouView, options: SolveOptions, arch: str, weight: bool = False, *, seeded: bool = True) -> Outcome:
    """Branch and price over classes of servers, with smoothed prices, and search for a schedule on the servers.

    Returns
    -------
    Outcome
        Its prices are ``(classes·R, slots)``, in weight times slots (or weight) per unit and slot; those of whole units
        and of all servers together are part of them.

    See Also
    --------
    schedgap.models.engine.columns.solve_in_phases : the phases of the search, and what it can prove.
    """
    a = view.architectures[arch]
    jobs, sense = (weighing(a), 1) if weight else (completing(a), -1)
    solution, runs, prices, root = solve(jobs, options, sense, first_slot=1, seeded=seeded)
    alone = priced_alone(a.machines, prices.reshape(-1, len(jobs.machines.resources), jobs.slots))
    return Outcome(solution, runs and decode(runs), alone.reshape(-1, jobs.slots), root)


def decode(runs: Runs) -> ZhouSchedule:
    """Return runs of moldable jobs as a schedule of Zhou's problems."""
    return ZhouSchedule(**vars(runs))


def _implied(view: ZhouView, arch: str, weight: bool) -> tuple[float, bool]:
    return moldable_schedules((weighing if weight else completing)(view.architectures[arch]))


def beyond(view: ZhouView, arch: str) -> str | None:
    """Return the reason why column generation is left to the user, or ``None``."""
    a = view.architectures[arch]
    return None if a.reason else too_large(a.size, a.machines, _slots(a))


for _arch in ARCHITECTURES:
    for _weight, _name, _equations in ((False, "", "(2) and (15)"), (True, ".maxweight", "(8) and (17)")):
        model(
            f"zhou.{_arch}.columns{_name}",
            problem=f"zhou.{_arch}.{'weight' if _weight else 'completion'}",
            kind="matheuristic",
            source=f"Zhou et al. §5.1, the schedules of (8) and (17), objective of {_equations}",
            procedure=partial(columns, arch=_arch, weight=_weight),
            skip=skip(_arch),
            too_large=partial(beyond, arch=_arch),
            parameters=(SEEDED,),
            implied=partial(_implied, arch=_arch, weight=_weight),
        )(partial(build_master, arch=_arch, weight=_weight))

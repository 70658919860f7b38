"""Zhou's offline problem (2)–(2o), (15) and largest weight by τ (7), (16) as compact MILPs, for tiny instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Ints
from schedgap.instances.moldable import RunOptions, options_of
from schedgap.instances.views.zhou import Architecture, ZhouView
from schedgap.models.engine.moldable import starts
from schedgap.models.engine.solve import counted
from schedgap.models.engine.statements import largest
from schedgap.models.registry import model
from schedgap.models.zhou.common import TINIER, TINY, choices, horizon, refuse_huge, skip
from schedgap.models.zhou.placement import decode, start, statement

LARGEST = 2_500
"""Largest product of choices and servers with which the MILPs run by default: HiGHS takes 15 s for 2,760 with PSs."""


def every_option(a: Architecture) -> RunOptions:
    """Return the options of all jobs, including dominated ones, since the models state the problem as printed."""
    return options_of(a.machines, a.work, a.most, a.rates, prune=False)


def build_offline(a: Architecture) -> pyo.ConcreteModel:
    r"""Build (2) or (15): types, workers, servers and start of every job, for the least weighted completion time.

    .. math:: \min \sum_k w_j \cdot (t^- + d) \cdot x_k \tag{2, 15}

    Every job takes one choice. :func:`~schedgap.models.zhou.common.horizon` proves that finitely many slots suffice.

    Duals (of the relaxation): that of a capacity row is the value of a resource of a server in a slot, in weighted
    slots of completion time.

    See Also
    --------
    statement : the rows.
    """
    m = _model(a, a.arrival, horizon(a))
    m.total = pyo.Objective(
        rule=lambda m: sum(m.weight[m.job[k]] * (m.start[k] + m.slots[k]) * m.x[k] for k in m.CHOICES),
        sense=pyo.minimize,
    )
    counted(m, [(m.total, largest(a.weight))])
    return m


def build_maxweight(a: Architecture, deadline: int | None = None) -> pyo.ConcreteModel:
    r"""Build (7) or (16): which jobs complete by the beginning of slot τ, and how, for the largest total weight.

    Parameters
    ----------
    a
        Servers, and jobs, all of which are available in slot 1.
    deadline
        τ, the architecture's by default.

    Notes
    -----
    .. math:: \max \sum_k w_j \cdot x_k \tag{7, 16}

    Jobs may be left out (7a), and only choices with :math:`t^- + d \le \tau` exist (7b): as in the paper's ranges, slot
    τ itself is never used.

    Duals (of the relaxation): that of a capacity row is the value of a resource of a server in a slot, in weight.

    See Also
    --------
    statement : the rows.
    """
    m = _model(a, np.ones_like(a.arrival), a.deadline if deadline is None else deadline, optional=True)
    m.total = pyo.Objective(rule=lambda m: sum(m.weight[m.job[k]] * m.x[k] for k in m.CHOICES), sense=pyo.maximize)
    counted(m, [(m.total, largest(a.weight[list(m.JOBS)]))])
    return m


def _model(a: Architecture, earliest: Ints, end: int, optional: bool = False) -> pyo.ConcreteModel:
    """Build what both problems share: weights, and the constraints with all resources free in slots 1 to `end` − 1."""
    refuse_huge(a, choices=_count(a, earliest, end), end=end)
    free = np.repeat(a.machines.capacity[:, :, None], end - 1, axis=2)
    m = statement(a, choices(every_option(a), earliest, end), free, optional)
    m.weight = pyo.Param(range(a.size), initialize=dict(enumerate(a.weight.tolist())))
    return m


def _count(a: Architecture, earliest: Ints, end: int) -> int:
    return int(starts(every_option(a), earliest, end).sum())


def _too_large(view: ZhouView, name: str, weight: bool) -> str | None:
    a = view.architectures[name]
    earliest, end = (np.ones_like(a.arrival), a.deadline) if weight else (a.arrival, horizon(a))
    if (size := max(_count(a, earliest, end), end) * a.machines.size) <= LARGEST:
        return None
    what = "columns.maxweight" if weight else "columns"
    return f"{size:,} choices or slots times servers, more than {LARGEST:,}; zhou.{name}.{what} bounds the same optimum"


def _register(name: str, what: str, problem: str, build: Callable[[Architecture], pyo.ConcreteModel], eq: str) -> None:
    model(
        f"zhou.{name}.{what}",
        problem=f"zhou.{name}.{problem}",
        decode=decode,
        start=start,
        source=f"Zhou et al., {eq}",
        skip=skip(name),
        too_large=partial(_too_large, name=name, weight=problem == "weight"),
        example=TINIER if (name, what) == ("ps", "offline") else TINY,
    )(wraps(build)(lambda view: build(view.architectures[name])))


_register("ps", "offline", "completion", build_offline, "§3.3, eq. (2)–(2o)")
_register("ps", "maxweight", "weight", build_maxweight, "§5.1, eq. (7)–(7b)")
_register("ra", "offline", "completion", build_offline, "§6.1, eq. (15)–(15b)")
_register("ra", "maxweight", "weight", build_maxweight, "§6.2, eq. (16)")

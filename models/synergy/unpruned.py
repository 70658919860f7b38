"""ILP1 with the rows of eq. (1)–(5) as printed: a binary for every configuration of every job.

Two things are not printed there: the factors :math:`u_j` in (1), which are 1 in the view with ``raw=True``, and the
limit of section 6 on the CPUs and memory of a gang.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import ROUNDING
from schedgap.instances.views.synergy import IDEAL, SynergySchedule, SynergyView
from schedgap.models.engine.solve import Solution
from schedgap.models.registry import model
from schedgap.models.synergy.configurations import Configurations, capacity, configurations, ideal_schedule
from schedgap.models.synergy.throughput import mixed_cluster

LARGEST = 20_000
"""Most binaries with which the model runs by default; with 30,000 (128 jobs with pipelines) HiGHS takes seconds."""


def build_unpruned(view: SynergyView) -> pyo.ConcreteModel:
    r"""Build ILP1 with a binary for every job and every cell of its table, and (5) as rows.

    It departs from the print in two ways. The objective counts progress in units of each job's fair progress
    (:math:`u_j = 1 / F_j`; the paper's is :math:`u_j = 1`, ``raw=True`` of the view). And cells with more CPUs or
    memory than the servers that the gang needs are left out (section 6; (4) prints a sum over all cells).

    - ``y`` :math:`y_{c,m,j} \in \{0, 1\}`: job j holds :math:`[c,m]`.

    .. math:: \max \sum_j u_j \cdot \sum_{c,m} W_j[c,m] \cdot y_{c,m,j} \tag{1}
    .. math:: \sum_j \sum_{c,m} c \cdot y_{c,m,j} \le C \tag{2} \label{cpus_2}
    .. math:: \sum_j \sum_{c,m} m \cdot y_{c,m,j} \le M \tag{3} \label{memory_3}
    .. math:: \sum_{c,m} y_{c,m,j} = 1 \quad \forall j \tag{4} \label{one_each_4}
    .. math:: \sum_{c,m} W_j[c,m] \cdot y_{c,m,j} \ge F_j \quad \forall j \tag{5} \label{fair_5}

    Duals: none, because of the integers; those of the relaxation are LP1's.
    """
    held = _cells(view)
    kind = view.profiles.kind[view.runnable]
    start, end = np.searchsorted(held.kind, kind), np.searchsorted(held.kind, kind, side="right")
    cells = {j: list(range(a, b)) for j, a, b in zip(view.runnable.tolist(), start.tolist(), end.tolist(), strict=True)}
    pool = int(view.pools.gpus.argmax())
    m = pyo.ConcreteModel()
    m.held = held
    m.JOBS = pyo.Set(initialize=view.runnable.tolist())
    m.CELLS = pyo.RangeSet(0, held.size - 1)
    m.OF = pyo.Set(m.JOBS, initialize=cells)
    m.PAIRS = pyo.Set(dimen=2, initialize=[(j, q) for j, of in cells.items() for q in of])
    m.c = pyo.Param(m.CELLS, initialize=held.cpus.tolist())
    m.m = pyo.Param(m.CELLS, initialize=held.memory_gb.tolist())
    m.W = pyo.Param(m.CELLS, initialize=held.rate.tolist())
    m.weight = pyo.Param(m.JOBS, initialize={j: float(view.weight[j]) for j in m.JOBS})
    fair = view.needs.fair[view.profiles.kind, pool] * (1 - ROUNDING)
    m.fair = pyo.Param(m.JOBS, initialize={j: float(fair[j]) for j in m.JOBS})
    _, cpus, memory_gb = capacity(view)[pool].tolist()
    m.C, m.M = pyo.Param(initialize=cpus), pyo.Param(initialize=memory_gb)
    m.y = pyo.Var(m.PAIRS, domain=pyo.Binary)

    @m.Objective(sense=pyo.maximize)
    def progress_1(m: Any) -> Any:
        return sum(m.weight[j] * m.W[q] * m.y[j, q] for j, q in m.PAIRS)

    @m.Constraint()
    def cpus_2(m: Any) -> Any:
        return sum(m.c[q] * m.y[j, q] for j, q in m.PAIRS) <= m.C

    @m.Constraint()
    def memory_3(m: Any) -> Any:
        return sum(m.m[q] * m.y[j, q] for j, q in m.PAIRS) <= m.M

    @m.Constraint(m.JOBS)
    def one_each_4(m: Any, j: int) -> Any:
        return sum(m.y[j, q] for q in m.OF[j]) == 1

    @m.Constraint(m.JOBS)
    def fair_5(m: Any, j: int) -> Any:
        return sum(m.W[q] * m.y[j, q] for q in m.OF[j]) >= m.fair[j]

    return m


def _cells(view: SynergyView) -> Configurations:
    """Return all configurations of the round's kinds of jobs, including those without progress."""
    return configurations(view, view.needs.able, view.profiles.kind[view.runnable], pruned=False, idle=True)


def _decode(view: SynergyView, model: pyo.ConcreteModel, solution: Solution) -> SynergySchedule:
    chosen = np.array(list(model.y.keys()), np.int64)[solution.array(model.y) > 0.5]
    return ideal_schedule(view, chosen[:, 0], model.held, chosen[:, 1])


def _too_large(view: SynergyView) -> str | None:
    held = _cells(view)
    cells = np.bincount(held.kind, minlength=view.profiles.kinds)[view.profiles.kind[view.runnable]].sum()
    return f"{cells:,} binaries, more than {LARGEST:,}: synergy.ilp1 has the same optimum" if cells > LARGEST else None


model(
    "synergy.ilp1.unpruned",
    problem=IDEAL.id,
    decode=_decode,
    source="Synergy section 4.1, eq. (1)–(5) with binaries, weighted by u_j and within the limit of section 6",
    skip=mixed_cluster,
    too_large=_too_large,
    example="paper/synergy-example",
)(build_unpruned)

"""The largest progress of a round: LP1 and ILP1 (eq. 1–5), on several GPU types (22–25), with a fairness oracle (26).

One builder serves all of these models. Its variables count equal jobs: ``y[q]`` jobs of a class hold configuration q.
Jobs of a class are interchangeable, so a solution corresponds to a solution of the same value in the paper's
``y[c,m,(i,)j]``: an integer count is assigned to the jobs of the class one by one, a fractional count is divided
equally among all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import ROUNDING, Array, Ints, members
from schedgap.instances.registry import Problem
from schedgap.instances.views.synergy import FREE, IDEAL, ORACLE, QUEUE, SynergySchedule, SynergyView
from schedgap.models.engine.solve import Solution, SolveOptions, counted
from schedgap.models.engine.statements import grouped
from schedgap.models.registry import Kind, model, no_decision, no_reason, solve_built
from schedgap.models.synergy.configurations import (
    SMALLEST,
    Configurations,
    RoundClasses,
    capacity,
    classes,
    configurations,
    fitting,
    ideal_schedule,
    units,
)


@dataclass(frozen=True)
class RoundRule:
    """A variant of the model of a round: which rows it has, and whether a job may mix configurations.

    Parameters
    ----------
    floor
        ``floor(view)`` returns the ``(m, k)`` iterations per second that each runnable job must have on a GPU type if
        it runs there; ``None`` for no floor.
    integer, everybody
        True if a job holds one configuration instead of a mix; true if every job has to run.
    queue
        True if the jobs are those of the whole queue instead of the round's.
    gpu_rows, pruned
        True if there are rows for the GPUs of a type (the paper's models lack them; with one type they never bind);
        true if dominated configurations are left out.
    """

    floor: Callable[[SynergyView], Array] | None
    integer: bool
    everybody: bool = True
    queue: bool = False
    gpu_rows: bool = True
    pruned: bool = True

    def jobs(self, view: SynergyView) -> Ints:
        """Return the ``(m,)`` jobs that may run."""
        return view.queue if self.queue else view.runnable


def own_floor(view: SynergyView) -> Array:
    """Return ``(m, k)`` the fair progress of each runnable job on each GPU type, the right-hand side of (5)."""
    return view.needs.fair[view.profiles.kind[view.runnable]]


def equal_split(view: SynergyView) -> Array:
    """Return ``(m,)`` W^Fair of the runnable jobs if each gets 1/n of every GPU type; the paper prints no such oracle.

    For several types, the throughput of "an appropriate definition fair allocation" is in section A.2.2 "given to us by
    an oracle, for each round", which "could be using a heterogeneity and fairness aware scheduler in literature", such
    as Gavel. Here, a job runs the fraction ``G_i / (n g_j)`` of its gang on type i, with proportional CPUs and memory;
    fractions that sum to more than 1 are scaled down to 1. For one type, A.2.2 prints ``W_j[C/n, M/n]``: any gang,
    however many GPUs it has, gets 1/n of the CPUs and memory, whereas (5) gives it a share in proportion to its GPUs.
    For example, let AlexNet on four GPUs share a server with four jobs of AlexNet on one GPU each. By
    ``W_j[C/n, M/n]`` it is due 0.1 of its fair progress, and the others 1.25 of theirs; here it is 0.4 and 1.
    """
    kind = view.profiles.kind[view.runnable]
    gang = view.profiles.gpus[kind].astype(float)
    part = view.pools.gpus / (len(kind) * gang[:, None])
    part /= np.maximum(1.0, part.sum(axis=1, keepdims=True))
    return np.asarray((part * view.needs.fair[kind]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class RoundChoices:
    """The choices in the model of a round: choice q gives jobs of class ``owner[q]`` the configuration ``at[q]``."""

    classes: RoundClasses
    held: Configurations
    owner: Ints
    at: Ints


def choices(view: SynergyView, rule: RoundRule) -> RoundChoices:
    """Return the configurations that the jobs of a rule may hold under it.

    With integers, (5) and (26) remove the configurations below the floor: if a single y is 1, ``Σ W·y ≥ floor`` means
    ``W ≥ floor`` for its configuration. On a GPU type on which a job makes no progress with its share, the floor would
    be 0 and demand nothing; with floors of their own, jobs therefore run only on types on which their share makes
    progress.
    """
    jobs = rule.jobs(view)
    floor = rule.floor(view) if rule.floor else np.zeros((len(jobs), view.types))
    groups = classes(view, jobs, floor)
    where = view.needs.able if rule.floor is own_floor else fitting(view)
    held = configurations(view, where, groups.kind, pruned=rule.pruned, idle=rule.floor is not None)
    start = np.searchsorted(held.kind, groups.kind)
    owner, number = members(np.searchsorted(held.kind, groups.kind, side="right") - start)
    at = start[owner] + number
    if rule.integer:
        enough = held.rate[at] >= groups.floor[owner, held.gpu_type[at]] * (1 - ROUNDING)
        owner, at = owner[enough], at[enough]
    return RoundChoices(groups, held, owner, at)


def build_round(view: SynergyView, rule: RoundRule) -> pyo.ConcreteModel:
    r"""Build the model of a round: the CPUs and memory that its jobs hold if every GPU type is one machine.

    Parameters
    ----------
    view
        Jobs and cluster.
    rule
        The variant: ILP1, with integers, or LP1; (5), (26) or no floor; whether every job runs, or jobs may be left
        out; whether j ranges over the jobs of the round or over the whole queue.

    Notes
    -----
    - ``y`` :math:`y_{c,m,i,j} \ge 0`: fraction of j that holds :math:`[c,m]` on type i; 0 or 1 with integers.

    .. math:: \max \sum_j u_j \cdot \sum_{c,m,i} W_j[c,m,i] \cdot y_{c,m,i,j} \tag{1, 22}
    .. math:: \sum_j \sum_{c,m} c \cdot y_{c,m,i,j} \le C_i \quad \forall i \tag{2, 23} \label{cpus_2}
    .. math:: \sum_j \sum_{c,m} m \cdot y_{c,m,i,j} \le M_i \quad \forall i \tag{3, 24} \label{memory_3}
    .. math:: \sum_j \sum_{c,m} g_j \cdot y_{c,m,i,j} \le G_i \quad \forall i \label{gpus_per_type}
    .. math:: \sum_{c,m,i} y_{c,m,i,j} = 1 \quad \forall j \tag{4, 25} \label{one_each_4}

    or, where jobs may be left out,

    .. math:: \sum_{c,m,i} y_{c,m,i,j} \le 1 \quad \forall j \tag{4, 25} \label{at_most_one_4}

    and with fairness, by the job's share on the type where it runs, or by one value from an oracle for all types:

    .. math:: \sum_{c,m} W_j[c,m,i] \cdot y_{c,m,i,j} \ge F_j[i] \cdot \sum_{c,m} y_{c,m,i,j} \quad \forall i, j
        \tag{5} \label{fair_5}
    .. math:: \sum_{c,m,i} W_j[c,m,i] \cdot y_{c,m,i,j} \ge F_j \quad \forall j \tag{26}

    The paper's models lack rows for the GPUs of a type, which are added here. Equal jobs are counted, not named, and
    configurations are left out if another one has no more CPUs, no more memory and at least the rate: neither changes
    an optimum. A configuration without progress may remain, since a mix can hold it. With integers, (5) and (26) remove
    configurations and need no rows; a job for which (26) leaves none makes the model infeasible. Jobs run on the types
    on which they progress with their share; elsewhere (5) would demand nothing. Rows of (5) are divided by the floor,
    so the share itself has a coefficient of 0, and exist only for jobs that could fall below.

    Duals (of LP1): another CPU and another gigabyte add at most those of (2) and (3) to the round's progress; that of
    (5) is what the round gains at the margin, per unit by which j may have less than its fair progress. The optimum
    bounds every feasible round (Theorem 4.1); without floors, also rounds that promise nobody a fair share; over the
    whole queue, also those of ``synergy.greedy``, DRF and Tetris, which go on with later jobs where one does not fit.
    """
    chosen = choices(view, rule)
    if not chosen.at.size:
        return _nobody(chosen, rule)
    m = _declared(view, chosen, rule)

    @m.Constraint(m.TYPES)
    def cpus_2(m: Any, i: int) -> Any:
        return sum(m.cpus[q] * m.y[q] for q in m.ON[i]) <= m.capacity[1, i]

    @m.Constraint(m.TYPES)
    def memory_3(m: Any, i: int) -> Any:
        return sum(m.memory[q] * m.y[q] for q in m.ON[i]) <= m.capacity[2, i]

    unit = units(view)
    counted(m, ((row[i], float(unit[i, r])) for r, row in ((1, m.cpus_2), (2, m.memory_3)) for i in m.TYPES))
    if rule.everybody:
        m.one_each_4 = pyo.Constraint(m.CLASSES, rule=lambda m, e: sum(m.y[q] for q in m.OF[e]) == m.jobs[e])
    else:
        m.at_most_one_4 = pyo.Constraint(m.CLASSES, rule=lambda m, e: sum(m.y[q] for q in m.OF[e]) <= m.jobs[e])
    if rule.gpu_rows:
        m.gpus = pyo.Param(m.CHOICES, initialize=chosen.held.gpus[chosen.at].tolist())

        @m.Constraint(m.TYPES)
        def gpus_per_type(m: Any, i: int) -> Any:
            return sum(m.gpus[q] * m.y[q] for q in m.ON[i]) <= m.capacity[0, i]

    if rule.floor and not rule.integer:
        _add_floors(m, chosen)
    m.progress = pyo.Objective(rule=lambda m: sum(m.gain[q] * m.y[q] for q in m.CHOICES), sense=pyo.maximize)
    return m


def _declared(view: SynergyView, chosen: RoundChoices, rule: RoundRule) -> pyo.ConcreteModel:
    """Return a model with the sets, the data and the variables of a round."""
    group, held, at = chosen.classes, chosen.held, chosen.at
    gpu_type = held.gpu_type[at]
    amount = held.amount(view)[at]
    room = {(r, i): float(capacity(view)[i, r]) for r in range(3) for i in np.unique(gpu_type).tolist()}
    m = pyo.ConcreteModel()
    m.chosen = chosen
    m.CLASSES = pyo.RangeSet(0, len(group.count) - 1)
    m.CHOICES = pyo.RangeSet(0, len(at) - 1)
    m.OF = pyo.Set(m.CLASSES, initialize=dict.fromkeys(m.CLASSES, ()) | _members(chosen.owner))
    m.TYPES = pyo.Set(initialize=np.unique(gpu_type).tolist())
    m.ON = pyo.Set(m.TYPES, initialize=_members(gpu_type))
    m.jobs = pyo.Param(m.CLASSES, initialize=group.count.tolist())
    m.capacity = pyo.Param(range(3), m.TYPES, initialize=room)
    m.gain = pyo.Param(m.CHOICES, initialize=(group.weight[chosen.owner] * held.rate[at]).tolist())
    m.cpus = pyo.Param(m.CHOICES, initialize=amount[:, 1].tolist())
    m.memory = pyo.Param(m.CHOICES, initialize=amount[:, 2].tolist())
    domain = pyo.NonNegativeIntegers if rule.integer else pyo.NonNegativeReals
    m.y = pyo.Var(m.CHOICES, domain=domain)
    return m


def _nobody(chosen: RoundChoices, rule: RoundRule) -> pyo.ConcreteModel:
    """Build the model of a round in which no job has a configuration that reaches its floor.

    This can happen if the oracle demands too much.
    """
    m = pyo.ConcreteModel()
    m.chosen = chosen
    m.y = pyo.Var([])
    m.running = pyo.Var(bounds=(0, 0))
    m.one_each_4 = pyo.Constraint(expr=m.running >= (int(chosen.classes.count.sum()) if rule.everybody else 0))
    m.progress = pyo.Objective(expr=m.running, sense=pyo.maximize)
    return m


def _add_floors(m: pyo.ConcreteModel, chosen: RoundChoices) -> None:
    """Add (5) for mixes: the progress of a class on a GPU type is at least the floor times its jobs that run there.

    Rows are divided by the floor: the share itself then has a coefficient of exactly 0, and the row can always be met.
    """
    group, held, at = chosen.classes, chosen.held, chosen.at
    floor = group.floor[chosen.owner, held.gpu_type[at]]
    above = held.rate[at] / floor - 1.0
    above[np.abs(above) < SMALLEST] = 0.0
    below = np.unique(np.column_stack((chosen.owner, held.gpu_type[at]))[above < 0], axis=0)
    cells = list(map(tuple, below.tolist()))
    if not cells:
        return
    pairs = zip(chosen.owner.tolist(), held.gpu_type[at].tolist(), strict=True)
    members = grouped((pair, q) for q, pair in enumerate(pairs))
    m.BELOW = pyo.Set(dimen=2, initialize=cells)
    m.MIX = pyo.Set(m.BELOW, initialize={cell: members[cell] for cell in cells})
    m.above_fair = pyo.Param(m.CHOICES, initialize=above.tolist())

    @m.Constraint(m.BELOW)
    def fair_5(m: Any, e: int, i: int) -> Any:
        return sum(m.above_fair[q] * m.y[q] for q in m.MIX[e, i]) >= 0


def _members(owner: Ints) -> dict[int, list[int]]:
    return grouped((e, q) for q, e in enumerate(owner.tolist()))


def decode_round(view: SynergyView, model: pyo.ConcreteModel, solution: Solution) -> SynergySchedule:
    """Return the schedule of the round that an incumbent stands for: the configuration of each job on its GPU type."""
    return held_by(view, model.chosen, np.rint(solution.array(model.y)).astype(np.int64))


def held_by(view: SynergyView, chosen: RoundChoices, times: Ints) -> SynergySchedule:
    """Return the schedule of a round in which `times` ``(q,)`` jobs make each choice; a class chooses job by job."""
    order = np.argsort(chosen.owner, kind="stable")
    owner, at = np.repeat(chosen.owner[order], times[order]), np.repeat(chosen.at[order], times[order])
    group, (_, turn) = chosen.classes, members(np.bincount(owner, minlength=len(chosen.classes.count)))
    first = np.cumsum(group.count) - group.count
    return ideal_schedule(view, group.jobs[first[owner] + turn], chosen.held, at)


def passes(
    view: SynergyView, queue: Sequence[int] | None = None, *, fair: Callable[[SynergyView], Array] = equal_split
) -> list[SynergySchedule]:
    """Return the decisions of repeated passes, each over the GPUs that are still free (A.2, "Improving utilization").

    The paper solves (22)–(26), in which either every job runs or there is no solution, and yet mentions jobs that get
    none. Here each pass may leave jobs out, and the next jobs of the queue get the remaining resources. The result runs
    jobs beyond :attr:`schedgap.instances.views.synergy.SynergyView.runnable`, so it solves no problem of a single
    round, and this is not a registered method.

    Jobs wait in the order of `queue`, by default all jobs that can run, by arrival. ``fair(view)`` returns ``(m,)``
    W^Fair of the runnable jobs of a pass; the view's pools are the remaining resources.
    """
    possible = view.possible
    arrived = possible[np.argsort(view.workload.arrival_s[possible], kind="stable")]
    waiting = [int(j) for j in (arrived if queue is None else queue)]
    rule = RoundRule(lambda v: np.repeat(fair(v)[:, None], v.types, axis=1), integer=True, everybody=False)
    decisions: list[SynergySchedule] = []
    while waiting and view.pools.gpus.any():
        jobs, _ = view.pick(waiting)
        if not jobs.size:
            break
        view = replace(view, runnable=jobs)
        decisions.append(solve_built(partial(build_round, rule=rule), decode_round, view, SolveOptions()).decision)
        tried = set(jobs.tolist())
        waiting = [j for j in waiting if j not in tried]
        taken, pools = decisions[-1], view.pools
        remaining = {
            name: np.maximum(getattr(pools, name) - np.bincount(taken.server, getattr(taken, name), view.types), 0.0)
            for name in ("gpus", "cpus", "memory_gb")
        }
        view = replace(view, pools=replace(pools, **remaining | {"gpus": np.rint(remaining["gpus"]).astype(np.int64)}))
    return decisions


def mixed_cluster(view: SynergyView) -> str | None:
    """Return the reason to skip LP1 on servers with several GPU types, or ``None``."""
    return "servers have GPUs of several types: synergy.hetero.lp1 and .ilp1 count them apart" if view.mixed else None


def one_type(view: SynergyView) -> str | None:
    """Return the reason to skip the extension if there is only one GPU type, or ``None``."""
    return None if view.mixed else "all GPUs are of one type: this is synergy.lp1 (or synergy.ilp1) here"


RELAXED = RoundRule(own_floor, integer=False)
FLOORED = RoundRule(own_floor, integer=True)
OPEN = RoundRule(None, integer=False, everybody=False)
QUEUED = replace(OPEN, queue=True)
# The right-hand side of (26), the same on all types.
WITH_ORACLE = RoundRule(lambda view: np.repeat(equal_split(view)[:, None], view.types, axis=1), integer=True)


def register(
    name: str, rule: RoundRule, problem: Problem, source: str, skip: Callable[[SynergyView], str | None], **more: Any
) -> None:
    """Register the model of a round under a rule; `more` holds other fields of its spec."""
    kind: Kind = "exact" if rule.integer else "relaxation"
    model(
        f"synergy.{name}",
        problem=problem.id,
        kind=kind,
        decode=decode_round if rule.integer else no_decision,
        source=f"Synergy {source}",
        skip=skip,
        example="paper/synergy-example" if skip is mixed_cluster else "gen/20jobs",
        **more,
    )(partial(build_round, rule=rule))


register("lp1", RELAXED, IDEAL, "section 4.1, eq. (1)–(5)", mixed_cluster)
register("hetero.lp1", RELAXED, IDEAL, "A.2, eq. (22)–(25) with (5) on each GPU type and GPU rows", one_type)
register("lp1.queue", QUEUED, QUEUE, "section 4.1, eq. (1)–(4) over all queued jobs, GPU rows", no_reason)
register("lp1.free", OPEN, FREE, "section 4.1, eq. (1)–(4) with jobs left out, GPU rows", no_reason)
register("hetero", WITH_ORACLE, ORACLE, "A.2, eq. (22)–(26) with GPU rows; the oracle is 1/n of every type", no_reason)

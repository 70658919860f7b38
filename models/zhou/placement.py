"""The rows (2a)–(2o), which four of Zhou's problems share: jobs take choices, whose workers and PSs are placed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Ints
from schedgap.instances.moldable import Machines
from schedgap.instances.moldable.machines import fitting
from schedgap.instances.views.zhou import Architecture, ZhouSchedule, ZhouView
from schedgap.models.engine.solve import Solution, counted
from schedgap.models.engine.statements import grouped
from schedgap.models.registry import Start
from schedgap.models.zhou.common import StartChoices


def room(m: Machines, chosen: StartChoices, most: Ints) -> tuple[Ints, Ints]:
    """Return ``(c, h)`` how many workers, and PSs, of each choice fit on each empty server, up to `most` ``(c,)``."""
    workers = np.minimum(m.room[chosen.worker_type], most[:, None])
    if not len(m.ps):
        enough = workers >= chosen.workers[:, None]
        return np.where(chosen.together[:, None] & ~enough, 0, workers), np.zeros_like(workers)
    # No solution needs more PSs than cover all workers.
    useful = np.maximum(1, np.ceil(most * (m.worker_bandwidth[chosen.worker_type] / m.ps_bandwidth[chosen.ps_type])))
    ps = np.minimum(np.stack([fitting(m.capacity, need) for need in m.ps])[chosen.ps_type], useful[:, None])
    taken = chosen.workers[:, None, None] * m.worker[chosen.worker_type][:, None] + m.ps[chosen.ps_type][:, None]
    fits = (taken <= m.capacity * (1 + SLACK)).all(axis=2) & m.able[chosen.worker_type]
    out = chosen.together[:, None] & ~fits
    return np.where(out, 0, workers), np.where(out, 0, ps).astype(np.int64)


def statement(a: Architecture, chosen: StartChoices, free: Array, optional: bool = False) -> pyo.ConcreteModel:
    r"""Build (2a)–(2o), or (15a) and (15b) in a ring, over choices of the jobs, without an objective.

    Parameters
    ----------
    a
        Servers and jobs.
    chosen
        Choices, at least one of each job in the model.
    free
        ``(h, R, T)`` free amounts in slots 1 to T.
    optional
        Whether jobs may be left out (7a): :math:`\le 1` instead of :math:`= 1` in (2a).

    Notes
    -----
    - :math:`R_{k,h}`: room, the most workers (or PSs) of choice k on the empty server h.
    - ``x`` :math:`x_k \in \{0, 1\}`: choice k is taken.
    - ``y`` :math:`y_{k,h} \in \{0, 1, \ldots\}`: workers on server h.
    - ``s`` :math:`s_{k,h} \in \{0, 1, \ldots\}`: PSs on server h (none in a ring).
    - ``one`` :math:`o_{k,h} \in \{0, 1\}`: all is on server h, where :math:`q = 1`.
    - ``has`` :math:`c_{k,h} \in \{0, 1\}`: server h has PSs, where :math:`q = 0`.

    .. math:: \sum_{k \text{ of } j} x_k = 1 \quad \forall j \tag{2a} \label{one_2a}
    .. math:: \sum_h y_{k,h} \ge N_k \cdot x_k \quad \forall k \tag{2f} \label{enough_2f}
    .. math:: \sum_h y_{k,h} \le D_j \cdot x_k \quad \forall k \tag{2g} \label{chunks_2g}
    .. math:: \sum_h s_{k,h} \ge x_k \quad \forall k \tag{2e} \label{server_2e}
    .. math:: \sum_h o_{k,h} = x_k \quad \forall k \colon q = 1 \tag{2d, 15a} \label{server_2d}
    .. math:: y_{k,h} \le R_{k,h} \cdot o_{k,h} \quad \forall k, h \colon q = 1 \tag{2d, 15a} \label{workers_2d}
    .. math:: s_{k,h} \le R_{k,h} \cdot o_{k,h} \quad \forall k, h \colon q = 1 \tag{2d} \label{servers_2d}
    .. math:: \sum_{g \ne h} (y_{k,g} + s_{k,g}) \ge x_k \quad \forall k, h \colon q = 0
        \tag{2d, 15a} \label{elsewhere_2d}
    .. math:: s_{k,h} \le R_{k,h} \cdot c_{k,h} \quad \forall k, h \colon q = 0 \tag{2i} \label{host_2i}
    .. math:: b_m \cdot \sum_{g \ne h} y_{k,g} \le B_p \cdot s_{k,h} + b_m \cdot D_j \cdot (x_k - c_{k,h})
        \quad \forall k, h \colon q = 0 \tag{2i} \label{bandwidth_2i}
    .. math:: \sum_{k \colon t^- \le t < t^- + d} (e_m^r \cdot y_{k,h} + z_p^r \cdot s_{k,h}) \le C_h^r
        \quad \forall h, r, t \tag{2h, 15b} \label{capacity_2h}

    (2a) includes (2b), (2c) and (2j): one choice, hence one type of workers and of PSs, not before the arrival. The
    products of variables in (2f) and (2h) vanish because a choice fixes types, layout, duration and start, and with
    them the number of workers in (2f); for each number of workers only the shortest duration matters. In a ring there
    are no PSs, and (2g) has :math:`N_k` instead of :math:`D_j`: two workers may be slower than one, so their number is
    exact. Where :math:`q = 0`, no server holds everything, and the PSs on a server have the bandwidth for all workers
    on other servers (2i).
    """
    most = a.most[chosen.job]
    workers, ps = room(a.machines, chosen, most)
    m = pyo.ConcreteModel()
    m.CHOICES = pyo.RangeSet(0, chosen.size - 1)
    for field in fields(StartChoices):
        values = getattr(chosen, field.name).tolist()
        setattr(m, field.name, pyo.Param(m.CHOICES, initialize=dict(enumerate(values)), within=pyo.Any))
    m.most = pyo.Param(m.CHOICES, initialize=dict(enumerate(np.minimum(most, workers.sum(axis=1)).tolist())))
    m.JOBS = pyo.Set(initialize=np.unique(chosen.job).tolist())
    m.OF_JOB = pyo.Set(m.JOBS, initialize=grouped(zip(chosen.job.tolist(), m.CHOICES, strict=True)))
    m.PLACES = pyo.Set(dimen=2, initialize=list(map(tuple, np.argwhere(workers > 0).tolist())))
    m.HOSTS = pyo.Set(dimen=2, initialize=list(map(tuple, np.argwhere(ps > 0).tolist())))
    m.AT = pyo.Set(m.CHOICES, initialize=grouped(m.PLACES))
    m.room_y = pyo.Param(m.PLACES, initialize={(k, h): int(workers[k, h]) for k, h in m.PLACES})
    m.room_s = pyo.Param(m.HOSTS, initialize={(k, h): int(ps[k, h]) for k, h in m.HOSTS})
    m.x = pyo.Var(m.CHOICES, domain=pyo.Binary)
    m.y = pyo.Var(m.PLACES, domain=pyo.NonNegativeIntegers, bounds=lambda m, k, h: (0, m.room_y[k, h]))
    m.s = pyo.Var(m.HOSTS, domain=pyo.NonNegativeIntegers, bounds=lambda m, k, h: (0, m.room_s[k, h]))

    @m.Constraint(m.JOBS)
    def one_2a(m: Any, j: int) -> Any:
        total = sum(m.x[k] for k in m.OF_JOB[j])
        return total <= 1 if optional else total == 1

    _add_amounts(m, ring=a.id == "ra")
    _add_together(m, chosen)
    _add_apart(m, a.machines, chosen)
    _add_capacity(m, a.machines, chosen, free)
    return m


def _add_amounts(m: Any, ring: bool) -> None:
    """Add (2f) and (2g), the limits on the number of workers, and with parameter servers (2e), at least one PS."""

    @m.Constraint(m.CHOICES)
    def enough_2f(m: Any, k: int) -> Any:
        return sum(m.y[k, h] for h in m.AT[k]) >= m.workers[k] * m.x[k]

    @m.Constraint(m.CHOICES)
    def chunks_2g(m: Any, k: int) -> Any:
        # In a ring, another number of workers has another rate.
        return sum(m.y[k, h] for h in m.AT[k]) <= (m.workers[k] if ring else m.most[k]) * m.x[k]

    if ring:
        return
    m.HOSTS_OF = pyo.Set(m.CHOICES, initialize=grouped(m.HOSTS))

    @m.Constraint(m.CHOICES)
    def server_2e(m: Any, k: int) -> Any:
        return sum(m.s[k, h] for h in m.HOSTS_OF[k]) >= m.x[k]


def _add_together(m: Any, chosen: StartChoices) -> None:
    """Add (2d) for choices with everything on one server."""
    if not chosen.together.any():
        return
    places = [(k, h) for k, h in m.PLACES if chosen.together[k]]
    hosts = [(k, h) for k, h in m.HOSTS if chosen.together[k]]
    m.one = pyo.Var(places, domain=pyo.Binary)

    @m.Constraint(np.flatnonzero(chosen.together).tolist())
    def server_2d(m: Any, k: int) -> Any:
        return sum(m.one[k, h] for h in m.AT[k]) == m.x[k]

    @m.Constraint(places)
    def workers_2d(m: Any, k: int, h: int) -> Any:
        return m.y[k, h] <= m.room_y[k, h] * m.one[k, h]

    if hosts:

        @m.Constraint(hosts)
        def servers_2d(m: Any, k: int, h: int) -> Any:
            return m.s[k, h] <= m.room_s[k, h] * m.one[k, h]


def _add_apart(m: Any, machines: Machines, chosen: StartChoices) -> None:
    """Add (2d), by which no server holds everything, and (2i) for choices spread over several servers."""
    if chosen.together.all():
        return
    places = [(k, h) for k, h in m.PLACES if not chosen.together[k]]
    hosts = [(k, h) for k, h in m.HOSTS if not chosen.together[k]]
    somewhere = sorted({*places, *hosts})
    on, has = grouped(places), grouped(hosts)
    m.OTHER_Y = pyo.Set(somewhere, initialize={(k, h): [g for g in on[k] if g != h] for k, h in somewhere})
    m.OTHER_S = pyo.Set(somewhere, initialize={(k, h): [g for g in has.get(k, ()) if g != h] for k, h in somewhere})

    @m.Constraint(somewhere)
    def elsewhere_2d(m: Any, k: int, h: int) -> Any:
        return sum(m.y[k, g] for g in m.OTHER_Y[k, h]) + sum(m.s[k, g] for g in m.OTHER_S[k, h]) >= m.x[k]

    if not hosts:
        return
    # A PS that covers more than all workers is as good as one that covers all. With larger ratios, HiGHS 1.15.1 may
    # call a placement optimal that costs too much.
    ratio = machines.ps_bandwidth[chosen.ps_type] / machines.worker_bandwidth[chosen.worker_type] * (1 + SLACK)
    m.covers = pyo.Param(m.CHOICES, initialize={k: min(x, m.most[k]) for k, x in enumerate(ratio.tolist())})
    m.has = pyo.Var(hosts, domain=pyo.Binary)

    @m.Constraint(hosts)
    def host_2i(m: Any, k: int, h: int) -> Any:
        return m.s[k, h] <= m.room_s[k, h] * m.has[k, h]

    @m.Constraint(hosts)
    def bandwidth_2i(m: Any, k: int, h: int) -> Any:
        others = sum(m.y[k, g] for g in m.OTHER_Y[k, h])
        return others <= m.covers[k] * m.s[k, h] + m.most[k] * (m.x[k] - m.has[k, h])


def _add_capacity(m: Any, machines: Machines, chosen: StartChoices, free: Array) -> None:
    """Add (2h): the workers and PSs on a server take no more of a resource than is free in each slot."""
    capacity = machines.capacity
    running: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    serving: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for places, need, kind, users in (
        (m.PLACES, machines.worker, m.worker_type, running),
        (m.HOSTS, machines.ps, m.ps_type, serving),
    ):
        for k, h in places:
            for r in np.flatnonzero(need[kind[k]] > ROUNDING * capacity[h]).tolist():
                for t in range(m.start[k], m.start[k] + m.slots[k]):
                    users.setdefault((h, r, t), []).append((k, kind[k]))
    cells = sorted({*running, *serving})
    if not cells:  # Pyomo cannot make a template over an empty set
        return
    m.CELLS = pyo.Set(dimen=3, initialize=cells)
    m.RUNNING = pyo.Set(m.CELLS, dimen=2, initialize={c: running.get(c, []) for c in cells})
    m.SERVING = pyo.Set(m.CELLS, dimen=2, initialize={c: serving.get(c, []) for c in cells})
    for name, needs in (("e", machines.worker), ("z", machines.ps)):
        values = {i: float(v) for i, v in np.ndenumerate(needs)}
        setattr(m, name, pyo.Param(*map(range, needs.shape), initialize=values))
    left = free + SLACK * capacity[:, :, None]
    m.free = pyo.Param(m.CELLS, initialize={(h, r, t): float(left[h, r, t - 1]) for h, r, t in cells})

    @m.Constraint(m.CELLS)
    def capacity_2h(m: Any, h: int, r: int, t: int) -> Any:
        workers = sum(m.e[kind, r] * m.y[k, h] for k, kind in m.RUNNING[h, r, t])
        return workers + sum(m.z[kind, r] * m.s[k, h] for k, kind in m.SERVING[h, r, t]) <= m.free[h, r, t]

    counted(m, ((m.capacity_2h[h, r, t], float(capacity[h, r])) for h, r, t in cells))


def decode(view: ZhouView, model: pyo.ConcreteModel, solution: Solution) -> ZhouSchedule:
    """Return the schedule of an incumbent."""
    picked = np.flatnonzero(solution.array(model.x) > 0.5)
    workers, ps = _amounts(solution, model.y), _amounts(solution, model.s)
    entries = [
        (i, h, workers.get((k, h), 0), ps.get((k, h), 0))
        for i, k in enumerate(picked.tolist())
        for h in sorted({h for choice, h in (*workers, *ps) if choice == k})
    ]

    def of(values: Any) -> Ints:
        return np.array([values[k] for k in picked.tolist()], np.int64)

    run, server, own, servers = np.array(entries, np.int64).reshape(-1, 4).T
    return ZhouSchedule(
        job=of(model.job), start=of(model.start), slots=of(model.slots), worker_type=of(model.worker_type),
        ps_type=of(model.ps_type), run=run, server=server, workers=own, ps=servers,
    )  # fmt: skip


def start(view: ZhouView, model: pyo.ConcreteModel, decision: ZhouSchedule) -> Start | None:
    """Return the values of a schedule, or ``None`` if one of its runs is not among the choices."""
    columns = (model.job, model.start, model.slots, model.worker_type, model.ps_type, model.together)
    choices = grouped((tuple(column[k] for column in columns), k) for k in model.CHOICES)
    entries = zip(*(a.tolist() for a in (decision.server, decision.workers, decision.ps)), strict=True)
    held = grouped(zip(decision.run.tolist(), entries, strict=True))
    of = (decision.job, decision.start, decision.slots, decision.worker_type, decision.ps_type)
    values: dict[str, dict[Any, float]] = {}
    for run, key in enumerate(zip(*(a.tolist() for a in of), strict=True)):
        own = held[run]
        number, together = sum(workers for _, workers, _ in own), len(own) == 1
        able = [k for k in choices.get((*key, together), ()) if model.workers[k] <= number]
        if not able:
            return None
        k = max(able, key=lambda k: model.workers[k])
        values.setdefault("x", {})[k] = 1.0
        surplus = number - model.workers[k] if key[4] < 0 else 0  # a ring has exactly the workers of its choice
        for h, workers, ps in own:
            cut = max(0, min(surplus, workers - 1))
            surplus -= cut
            parts = {"y": workers - cut, "s": ps, "one": int(together), "has": int(ps > 0 and not together)}
            for name in (name for name, value in parts.items() if value):
                values.setdefault(name, {})[k, h] = parts[name]
    return values


def _amounts(solution: Solution, variable: Any) -> dict[tuple[int, int], int]:
    """Return the positive values of an integer variable by choice and server."""
    values = np.rint(solution.array(variable)).astype(np.int64)
    return {key: n for key, n in zip(variable.keys(), values.tolist(), strict=True) if n > 0}

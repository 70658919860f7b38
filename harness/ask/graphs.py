"""Graphs behind decisions, for networkx: envy, servers that hold jobs, a slot as a flow, and windows of A_online."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.certificates.fairness import envy_free
from schedgap.heuristics.zhou.batches import most_weight
from schedgap.instances.catalogue import load
from schedgap.instances.errors import UsageError
from schedgap.instances.views import admission, oef, synergy, zhou

if TYPE_CHECKING:
    from collections.abc import Sequence

    import networkx as nx

    from schedgap.harness.engine.study import Reference
    from schedgap.instances.arrays import Bools
    from schedgap.instances.moldable import Runs

JOB, SERVER = "job", "server"
SOURCE, SINK = ("source", ""), ("sink", "")


def envy(instance: Reference, allocation: oef.Allocation) -> nx.DiGraph[str]:
    """Return the envy graph of an allocation: an edge from each tenant to those whose devices it would rather have.

    The attribute ``envy`` of an edge is what the tenant would gain by the exchange, per unit of weight, relative to its
    efficiency under an equal split. Nodes have their ``efficiency`` per unit of weight. A cycle is an exchange from
    which everybody on it gains; without envy there is no edge.
    """
    import networkx as nx

    view = oef.view(load(instance))
    found = envy_free(view, allocation.devices)
    level = oef.efficiency(view.speedups, allocation.devices) / view.weight
    fair = dict(zip(view.labels, (view.split_efficiency / view.weight).tolist(), strict=True))
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from((label, {"efficiency": float(e)}) for label, e in zip(view.labels, level, strict=True))
    graph.add_edges_from((a, b, {"envy": gain / fair[a]}) for (a, b), gain in found.witness.items())
    return graph


def support(instance: Reference, round_: synergy.SynergySchedule) -> nx.Graph[Any]:
    """Return the bipartite graph of a round of Synergy: jobs and the servers that hold parts of them.

    Nodes are pairs such as ``("job", "J1")`` and ``("server", "S0")``; the attribute ``share`` of an edge is the part
    of the job's GPUs that the server holds. A vertex of LP2 has at most as many edges as rows (15) to (18) that bind,
    which leaves at most three fragmented jobs per server (Theorem A.2).
    """
    import networkx as nx

    view = synergy.view(load(instance))
    total = np.zeros(view.size)
    np.add.at(total, round_.job, round_.gpus)
    graph: nx.Graph[Any] = nx.Graph()
    for job, server, gpus in zip(round_.job.tolist(), round_.server.tolist(), round_.gpus.tolist(), strict=True):
        ends = (JOB, view.workload.ids[job]), (SERVER, f"S{server}")
        graph.add_edge(*ends, share=gpus / total[job])
    return graph


def flow(instance: Reference, runs: Runs, slot: int) -> nx.DiGraph[Any]:
    """Return the workers of admitted jobs in a slot as a flow: source, jobs, servers, sink.

    Nodes are pairs as in :func:`support`. An edge from the source has the job's workers as ``capacity``, an edge to a
    server those that fit there at once, and an edge to the sink those that the server holds when it is empty; ``flow``
    is what the decision sends along it. So a slot has room for the jobs' workers exactly if the largest flow is the
    number of workers, and a smallest cut names the servers that are full.

    Raises
    ------
    UsageError
        If the jobs of the slot have workers of several types, which do not count alike.
    """
    import networkx as nx

    view = admission.view(load(instance))
    (shown,) = np.nonzero((runs.start <= slot) & (slot < runs.start + runs.slots))
    types = np.unique(runs.worker_type[shown])
    if len(types) > 1:
        raise UsageError(f"slot = {slot}: its jobs have workers of {len(types)} types, and a flow is of one")
    needs = view.machines.worker[types[0] if len(types) else 0]
    holds = np.floor((view.machines.capacity[:, needs > 0] / needs[needs > 0]).min(axis=1) + 1e-9).astype(int)
    here = np.isin(runs.run, shown)
    held = np.zeros((len(shown), len(view.machines.names)), int)
    np.add.at(held, (np.searchsorted(shown, runs.run[here]), runs.server[here]), runs.workers[here])
    servers = [(SERVER, name) for name in view.machines.names]
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for server, most, used in zip(servers, holds.tolist(), held.sum(axis=0).tolist(), strict=True):
        graph.add_edge(server, SINK, capacity=most, flow=used)
    for index, own in zip(runs.job[shown].tolist(), held.tolist(), strict=True):
        job, total = (JOB, view.ids[index]), sum(own)
        graph.add_edge(SOURCE, job, capacity=total, flow=total)
        for server, most, part in zip(servers, holds.tolist(), own, strict=True):
            graph.add_edge(job, server, capacity=min(total, most), flow=part)
    return graph


def windows(instance: Reference, schedule: zhou.ZhouSchedule, arch: str = "ps") -> nx.DiGraph[int]:
    """Return the windows of a run of A_online (Zhou, Algorithm 1) in their order of precedence.

    A node is the τ of a window, by which its jobs had arrived. Its attributes:

    - ``start`` and ``end``: the window has the slots from `start` to ``end - 1``;
    - ``rounds``: rounds of A_maxweight, of τ slots each, that scheduled a job;
    - ``arrived``: jobs that arrived since the window before it was planned;
    - ``jobs``: jobs that run in it, and ``weight``, their total weight;
    - ``most``: an upper bound on the weight that any schedule of its batch completes by τ. Lemma 1 asks for as much:
      where ``weight`` is less, its condition is not shown.

    An edge leads to the window that may not start before this one ends. Its ``jobs`` are those that this window leaves
    to the next one (line 10), and ``idle`` is the number of slots between the two.

    Raises
    ------
    UsageError
        If the schedule has no windows, or the view has no such architecture.
    """
    import networkx as nx

    view = zhou.view(load(instance))
    if arch not in view.architectures:
        raise UsageError(f"arch = {arch!r}: there are {', '.join(view.architectures)}")
    if not schedule.window_start.size:
        raise UsageError("the schedule has no windows: it is not one of A_online")
    of, end = view.architectures[arch], schedule.window_start + schedule.window_slots
    ran_in = np.full(view.size, -1)
    ran_in[schedule.job] = np.searchsorted(schedule.window_start, schedule.start, "right") - 1
    graph: nx.DiGraph[int] = nx.DiGraph()
    seen = 0
    for i, tau in enumerate(schedule.window_tau.tolist()):
        batch, runs = (view.arrival <= tau) & (ran_in >= i), ran_in == i
        graph.add_node(
            tau,
            start=int(schedule.window_start[i]),
            end=int(end[i]),
            rounds=int(schedule.window_rounds[i]),
            arrived=_named(view.ids, (seen < view.arrival) & (view.arrival <= tau)),
            jobs=_named(view.ids, runs),
            weight=float(view.weight[runs].sum()),
            most=most_weight(of, np.flatnonzero(batch), tau),
        )
        if i + 1 < schedule.window_tau.size:
            left = {"jobs": _named(view.ids, batch & ~runs), "idle": int(schedule.window_start[i + 1] - end[i])}
            graph.add_edge(tau, int(schedule.window_tau[i + 1]), **left)
        seen = tau
    return graph


def _named(names: Sequence[str], chosen: Bools) -> list[str]:
    """Return the names that are chosen."""
    return [names[i] for i in np.flatnonzero(chosen).tolist()]


def fragmented(graph: nx.Graph[Any]) -> list[str]:
    """Return the jobs that are on more than one server."""
    return [name for kind, name in graph if kind == JOB and graph.degree[kind, name] > 1]

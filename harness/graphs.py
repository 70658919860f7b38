"""Graphs behind allocations, for networkx: who envies whom, which servers hold which jobs, and a slot as a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.certificates.fairness import envy_free
from schedgap.instances.catalogue import load
from schedgap.instances.errors import UsageError
from schedgap.instances.views import admission, oef, synergy

if TYPE_CHECKING:
    import networkx as nx

    from schedgap.harness.engine.study import Reference
    from schedgap.instances.elastic import Runs

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


def support(instance: Reference, round_: synergy.Schedule) -> nx.Graph[Any]:
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


def fragmented(graph: nx.Graph[Any]) -> list[str]:
    """Return the jobs that are on more than one server."""
    return [name for kind, name in graph if kind == JOB and graph.degree[kind, name] > 1]

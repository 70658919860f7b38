"""Graphs behind allocations, for networkx: who envies whom, and which servers hold parts of which jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.certificates.fairness import envy_free
from schedgap.instances.catalogue import load
from schedgap.instances.views import oef, synergy

if TYPE_CHECKING:
    import networkx as nx

    from schedgap.harness.engine.study import Reference

JOB, SERVER = "job", "server"


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


def fragmented(graph: nx.Graph[Any]) -> list[str]:
    """Return the jobs that are on more than one server."""
    return [name for kind, name in graph if kind == JOB and graph.degree[kind, name] > 1]

"""Graphs: edges of envy follow the definition, a vertex of LP2 has few edges, and windows come in order."""

from __future__ import annotations

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot

import schedgap as sg
from schedgap.harness.ask.graphs import JOB, SERVER, SINK, SOURCE, fragmented
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.views import oef, synergy, zhou

mpl.use("agg")


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_an_edge_is_a_tenant_that_gains_by_an_exchange(seed: int, tenants: int, types: int) -> None:
    rng = np.random.default_rng(seed)
    weight, capacity = rng.integers(1, 4, tenants).astype(float), rng.integers(1, 9, types).astype(float)
    view = oef.matrix_view(rng.uniform(1, 4, (tenants, types)), capacity, weight)
    view = oef.view(view.instance)  # as the graph reads it, with numbers rounded as in a file
    weight = view.weight
    part = rng.dirichlet(np.ones(tenants), types).T
    devices = part * view.capacity
    graph = sg.envy(view.instance, oef.Allocation(devices))
    for a in range(tenants):
        split = view.speedups[a] @ view.capacity / weight.sum()
        for b in range(tenants):
            gain = view.speedups[a] @ (devices[b] / weight[b] - devices[a] / weight[a])
            if gain > 1e-5 * split:
                assert graph.edges[view.labels[a], view.labels[b]]["envy"] == pytest.approx(gain / split)
            elif gain < 0:
                assert not graph.has_edge(view.labels[a], view.labels[b])


def test_nobody_envies_in_the_cooperative_optimum_and_cycles_are_exchanges() -> None:
    view = oef.matrix_view(np.array([[1.0, 4.0], [1.0, 1.2]]), np.array([2.0, 2.0]))
    fair = sg.models.get("oef.cooperative").run(view).decision
    assert not sg.envy(view.instance, fair).edges
    swapped = oef.Allocation(np.array([[2.0, 0.0], [0.0, 2.0]]))
    graph = sg.envy(view.instance, swapped)
    assert [*nx.simple_cycles(graph)] == []
    assert [*graph.edges] == [(view.labels[0], view.labels[1])]


@pytest.mark.parametrize("ref", ["gen/synergy-32", "paper/synergy-example"])
def test_a_vertex_has_few_edges_in_every_component(ref: str) -> None:
    """A vertex of LP2 has at most as many positive variables as rows, also within each component of its graph."""
    instance = sg.load(ref)
    graph = sg.support(instance, sg.models.get("synergy.lp2.vertex").run(synergy.view(instance)).decision)
    servers = sum(kind == SERVER for kind, _ in graph)
    assert len(fragmented(graph)) <= 3 * servers
    for component in nx.connected_components(graph):
        inside = graph.subgraph(component)
        jobs = sum(kind == JOB for kind, _ in inside)
        assert inside.number_of_edges() <= jobs + 3 * (len(inside) - jobs)
        assert sum(inside.degree[node] > 1 for node in inside if node[0] == JOB) <= 3 * (len(inside) - jobs)
    for kind, name in graph:
        if kind == JOB:
            assert sum(share for *_, share in graph.edges((kind, name), data="share")) == pytest.approx(1)


def test_graphs_are_drawn() -> None:
    view = oef.matrix_view(np.array([[1.0, 4.0], [1.0, 1.2]]), np.array([2.0, 2.0]))
    graph = sg.envy(view.instance, oef.Allocation(np.array([[2.0, 0.0], [0.0, 2.0]])))
    ax = sg.plot.envy(graph)
    assert {text.get_text() for text in ax.texts} >= {*view.labels}
    instance = sg.load("paper/synergy-example")
    round_ = sg.models.get("synergy.lp2.vertex").run(synergy.view(instance)).decision
    names = {text.get_text() for text in sg.plot.support(sg.support(instance, round_)).texts}
    assert {"J1", "J2", "J3", "J4"} <= names
    pyplot.close("all")


@pytest.mark.parametrize("method", ["admission.online", "admission.offline"])
def test_a_slot_is_a_flow_that_the_servers_hold(method: str) -> None:
    instance = sg.load("paper/walkthrough")
    runs = sg.compare_here(instance, [method]).decision(method)
    for slot in range(int((runs.start + runs.slots).max())):
        graph = sg.flow(instance, runs, slot)
        held = {(a, b): data["flow"] for a, b, data in graph.edges(data=True)}
        assert all(data["flow"] <= data["capacity"] for *_, data in graph.edges(data=True))
        for node in set(graph) - {SOURCE, SINK}:
            assert sum(held[edge] for edge in graph.in_edges(node)) == sum(held[edge] for edge in graph.out_edges(node))
        running = (runs.start <= slot) & (slot < runs.start + runs.slots)
        workers = runs.workers[running[runs.run]].sum()
        assert sum(value for (a, _), value in held.items() if a == SOURCE) == workers
        if workers:
            assert nx.maximum_flow_value(graph, SOURCE, SINK) == workers


def test_a_full_server_is_the_cut_and_a_flow_is_drawn() -> None:
    instance = sg.load("paper/walkthrough")
    runs = sg.compare_here(instance, ["admission.offline"]).decision("admission.offline")
    graph = sg.flow(instance, runs, 4)
    graph.add_edge(SOURCE, (JOB, "more"), capacity=9, flow=0)
    for server in [node for node in graph if node[0] == SERVER]:
        graph.add_edge((JOB, "more"), server, capacity=9, flow=0)
    value, (_, behind) = nx.minimum_cut(graph, SOURCE, SINK)
    assert value == 8  # four servers of two workers
    assert behind == {SINK}
    ax = sg.plot.flow(sg.flow(instance, runs, 4))
    texts = {text.get_text() for text in ax.texts}
    assert {"2 of 2", "0 of 2", "server.3", "source"} <= texts
    pyplot.close(ax.figure)  # type: ignore[arg-type]


def test_workers_of_several_types_are_no_flow() -> None:
    instance = sg.load("gen/20jobs")
    runs = sg.compare_here(instance, ["admission.online"]).decision("admission.online")
    slots = range(int((runs.start + runs.slots).max()))
    mixed = next(s for s in slots if len({*runs.worker_type[(runs.start <= s) & (s < runs.start + runs.slots)]}) > 1)
    with pytest.raises(UsageError, match=f"slot = {mixed}: its jobs have workers of"):
        sg.flow(instance, runs, mixed)


@pytest.mark.parametrize("method", ["zhou.ps.online", "zhou.ps.online?alpha=1", "zhou.ps.online?carry=false"])
def test_jobs_pass_through_the_windows_of_a_online_in_order(method: str) -> None:
    alpha = 1 if method != "zhou.ps.online" else 4
    instances = [sg.load("gen/20jobs"), *(RANDOM.get("zhou").draw(np.random.default_rng(seed)) for seed in range(8))]
    opened = 0
    for instance in instances:
        view, spec = zhou.view(instance), sg.heuristics.get(method)
        try:
            schedule = spec.decide(instance)
        except NotApplicableError:
            continue
        graph = sg.windows(instance, schedule)
        opened += len(graph)
        order = [*nx.topological_sort(graph)]
        assert nx.is_path(graph, order)  # one window after the other
        assert [job for tau in order for job in graph.nodes[tau]["jobs"]] != []
        assert sorted(job for tau in order for job in graph.nodes[tau]["jobs"]) == sorted(view.ids)
        arrival, weight = dict(zip(view.ids, view.arrival, strict=True)), dict(zip(view.ids, view.weight, strict=True))
        for tau, window in graph.nodes(data=True):
            left, waiting = ([job for *_, jobs in edges(tau, data="jobs") for job in jobs]
                             for edges in (graph.out_edges, graph.in_edges))  # fmt: skip
            assert sorted([*window["arrived"], *waiting]) == sorted([*window["jobs"], *left])
            assert all(arrival[job] <= tau for job in window["arrived"])
            assert window["weight"] == sum(weight[job] for job in window["jobs"])
            assert alpha * tau <= window["start"] < window["end"]
        for before, after, edge in graph.edges(data=True):
            assert after >= 2 * before
            assert graph.nodes[after]["start"] - graph.nodes[before]["end"] == edge["idle"] >= 0
        if spec.shown(view, schedule).factor:  # Lemma 1 is shown only if every window has enough weight
            assert all(window["weight"] >= (1 - 1e-6) * window["most"] for _, window in graph.nodes(data=True))
    assert opened > 9


def test_a_window_that_lacks_weight_is_the_one_of_the_guarantee_and_is_drawn_in_red() -> None:
    instance = sg.load("gen/20jobs")
    spec = sg.heuristics.get("zhou.ps.online?alpha=1")
    schedule = spec.decide(instance)
    graph = sg.windows(instance, schedule)
    lacking = [tau for tau, window in graph.nodes(data=True) if window["weight"] < window["most"]]
    assert spec.shown(zhou.view(instance), schedule).text == f"none shown: weight by τ = {lacking[0]}"
    ax = sg.plot.windows(graph)
    squares = ax.collections[0].get_facecolor()
    assert [row[0] > row[2] for row in squares] == [tau in lacking for tau in graph]
    assert {"1 wait", "12 arrive", "13 run"} <= {text.get_text() for text in ax.texts}
    pyplot.close(ax.figure)  # type: ignore[arg-type]


def test_a_schedule_without_windows_is_refused() -> None:
    instance = sg.load("gen/20jobs")
    with pytest.raises(UsageError, match="it is not one of A_online"):
        sg.windows(instance, sg.heuristics.get("zhou.ps.fifo").decide(instance))
    with pytest.raises(UsageError, match="arch = 'tree': there are ps, ra"):
        sg.windows(instance, sg.heuristics.get("zhou.ps.online").decide(instance), "tree")

"""Servers with GPUs of several types (Hadar's c_h^r): schema, views, models, algorithms, and methods that refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hadar_reference import best, instances_of
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import heuristics, models
from schedgap.harness.check import judge
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics.hadar.planning import Planner, Planning, RoundToPlan
from schedgap.heuristics.hadar.prices import ExtremePrices
from schedgap.heuristics.simulator import POLICIES, simulate
from schedgap.instances.canonical import to_json, validate
from schedgap.instances.errors import InstanceError, NotApplicableError, UnknownNameError
from schedgap.instances.random_instances.hadar import linear
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views import hadar
from schedgap.models.engine.solve import SolveOptions

JOB = {"gpus": 3, "epochs": 6, "rates": {"a": 1.0, "b": 1.0}}


def mixed(jobs: list[dict[str, Any]], *machines: dict[str, int], slots: int = 6) -> Instance:
    """Return an instance of these jobs on servers with so many GPUs of each type."""
    content = linear(jobs, {"a": 9, "b": 9}, slots).model_dump(mode="json", exclude_defaults=True)
    groups = []
    for i, types in enumerate(machines):
        for k, (name, gpus) in enumerate(types.items()):
            group = {"name": f"h{i}{name}", "count": 1, "gpu_type": name, "gpus": gpus}
            groups.append(group | ({"servers_of": f"h{i}{next(iter(types))}"} if k else {}))
    content["cluster"]["servers"] = groups
    return validate(content, "mixed")


EXAMPLE = mixed([JOB], {"a": 2, "b": 1}, {"a": 1})


def test_entries_of_a_server_are_one() -> None:
    servers = hadar.view(EXAMPLE).servers
    assert servers.names == ("h0a", "h0b", "h1a")
    assert servers.machine.tolist() == [0, 0, 1]
    assert (servers.size, servers.machines) == (3, 2)
    plain = hadar.view(linear([JOB], {"a": 2, "b": 1}, 6)).servers
    assert plain.host is None
    assert plain.machine.tolist() == [0, 1]
    assert Instance.model_validate_json(to_json(EXAMPLE)) == EXAMPLE
    assert "2: 1 x 2 GPU, 1 x 1 GPU more in those" in EXAMPLE._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"servers_of": "h9"}, "cluster.servers[1].servers_of = h9: unknown group of servers with a first GPU type"),
        ({"servers_of": "h0b"}, "cluster.servers[1].servers_of = h0b: unknown group of servers"),
        ({"count": 2}, "cluster.servers[1].count = 2: must equal the count of 'h0a'"),
        ({"gpu_type": "a"}, "cluster.servers[1].gpu_type = a: 'h0a' has this type already"),
        ({"cpus": 4.0}, "cluster.servers[1].cpus = 4.0: leave it out: 'h0a' states it"),
    ],
)
def test_servers_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    content = EXAMPLE.model_dump(mode="json", exclude_defaults=True)
    content["cluster"]["servers"][1] |= change
    with pytest.raises(InstanceError) as caught:
        validate(content, "mine")
    assert message in str(caught.value)


def test_papers_of_one_type_per_server_refuse_them() -> None:
    for paper in PAPERS:
        if paper.id in ("hadar", "gavel"):
            paper.view(EXAMPLE)
            continue
        with pytest.raises(
            NotApplicableError, match=rf"several types \(servers_of\); {paper.id} takes one type per server"
        ):
            paper.view(EXAMPLE)


@given(instances_of(jobs=2, slots=4, gpus=2, mixed=True))
@settings(max_examples=15)
def test_models_find_what_an_exhaustive_search_finds(instance: Instance) -> None:
    """On servers with several GPU types, models find the optimum of an exhaustive search."""
    view, most = hadar.view(instance), best(instance, complete=False)
    for method in ("hadar.p1", "hadar.p1.per_server", "hadar.p2.enumerated", "hadar.p2.columns"):
        spec = models.get(method)
        if spec.skip(view):
            assert most == 0
            continue
        reaches(spec, view, most)


def reaches(spec: models.ModelSpec, view: hadar.HadarView, most: float) -> None:
    """Check that a model's decision is valid and worth `most`."""
    outcome = spec.run(view, SolveOptions(rel_gap=0.0))
    verdict = judge(view.instance, outcome.decision, spec.problem, ())
    assert not verdict.violations
    assert verdict.objective == pytest.approx(most, abs=1e-6)
    assert outcome.solution.objective == pytest.approx(most, abs=1e-6)


@given(instances_of(jobs=2, slots=3, gpus=2, mixed=True), st.sampled_from([0.05, 0.3, 1.5]))
@settings(max_examples=20)
def test_p1_with_communication_finds_what_an_exhaustive_search_finds(instance: Instance, beta: float) -> None:
    view, most = hadar.view(instance), best(instance, complete=False, beta=beta)
    spec = models.get(f"hadar.p1.per_server?beta={beta}")
    assert spec.problem == f"hadar.utility?beta={beta}"
    if spec.skip(view):
        assert most == 0
        return
    reaches(spec, view, most)


def test_communication_is_counted_by_slot_and_server() -> None:
    """A gang pays for communication per slot and per server beyond its first, but not between types on one server."""
    gangs = [{"gpus": 2, "epochs": 4, "rates": {"a": 1.0, "b": 1.0}}] * 2
    view = hadar.view(mixed(gangs, {"a": 2, "b": 1}, {"a": 1}))
    entries = [[0, t, h, 1] for t in (0, 1) for h in (0, 2)] + [[1, t, h, 1] for t in (0, 1) for h in (0, 1)]
    held = hadar.HadarSchedule.of(np.array(entries))
    plain, priced = (
        judge(view.instance, held, problem, ()) for problem in ("hadar.utility", "hadar.utility?beta=0.25")
    )
    assert not plain.violations
    assert not priced.violations
    assert plain.objective == 4.0
    assert priced.objective == 4.0 - 2 * 0.25


def test_the_problem_with_communication_is_bounded_by_the_one_without() -> None:
    paper = PAPERS.get("hadar")
    assert paper.wider("hadar.utility?beta=0.5") == ["hadar.utility?beta=0.5", "hadar.utility", "hadar.forked"]
    assert paper.problem("hadar.utility?beta=0.5").title.endswith("less what beta=0.5 costs")
    for wrong in ("hadar.utility?beta=-1", "hadar.utility?beta=x", "hadar.utility?gamma=1"):
        with pytest.raises(UnknownNameError, match=r"write hadar.utility\?beta= and a number of at least 0"):
            paper.problem(wrong)
    with pytest.raises(UnknownNameError, match="unknown problem"):
        paper.problem("hadar.complete?beta=1")
    rows = compare_here(EXAMPLE, ["hadar.p1.per_server?beta=0.1", "hadar.p2.columns"]).rows
    assert [row.verified for row in rows] == [True, True]
    assert sorted(row.problem for row in rows) == ["hadar.utility", "hadar.utility?beta=0.1"]
    assert all(row.gap == pytest.approx(0, abs=1e-6) for row in rows)


@given(instances_of(mixed=True), st.sampled_from([0.05, 1.5]))
@settings(max_examples=10)
def test_algorithm_2_and_p1_weigh_the_same_communication(instance: Instance, cost: float) -> None:
    view = hadar.view(instance)
    online, exact = heuristics.get(f"hadar.online?communication={cost}"), models.get(f"hadar.p1.per_server?beta={cost}")
    assert online.problem == exact.problem
    assert "problem" not in vars(POLICIES.get(online.id))
    reached = judge(view.instance, online.decide(instance), online.problem, ())
    assert not reached.violations
    if not exact.skip(view):
        bound = exact.run(view, SolveOptions(rel_gap=0.0)).solution.bound
        assert reached.objective is not None
        assert bound is not None
        assert reached.objective <= bound + 1e-6


@given(instances_of(mixed=True))
@settings(max_examples=15)
def test_algorithms_are_feasible_and_policies_simulate(instance: Instance) -> None:
    view = hadar.view(instance)
    for method in ("hadar.online", "hadar.online?beta=2", "hadar.hadare", "hadar.gavel", "hadar.tiresias"):
        spec = heuristics.get(method)
        if not spec.skip(view):
            assert not judge(view.instance, spec.decide(instance), spec.problem, ()).violations
    trace = simulate(view.workload, view.servers, POLICIES.get("hadar.yarn_cs").build(instance, None), round_s=1.0)
    assert (trace.node_utilisation <= 1 + 1e-9).all()


def allocation(instance: Instance, low: list[float], **how: float) -> dict[str, int]:
    """Return how many GPUs FIND_ALLOC gives the only job of an instance, by server."""
    view = hadar.view(instance)
    planner = Planner(view, ExtremePrices(np.array(low), np.array(low) * 4), replace(Planning(), **how))
    used, held = np.zeros(view.servers.size, np.int64), np.zeros((0, 3), np.int64)
    found, _ = planner.find_alloc(RoundToPlan(np.array([0]), view.workload.work, 0, used, held), 0)
    return {view.servers.names[h]: int(n) for _, h, n in found.tolist()}


def test_a_gang_on_several_types_of_one_server_communicates_for_free() -> None:
    """Two servers are cheaper by prices alone; with a cost of communication, one server with two types is."""
    gang = mixed([JOB], {"a": 1, "b": 2}, {"a": 2}, {"b": 1})
    low = [1e-3, 1.1e-3]
    assert allocation(gang, low) == {"h0a": 1, "h1a": 2}
    assert allocation(gang, low, beta=5.0) == {"h0a": 1, "h0b": 2}
    assert allocation(gang, low, communication=0.1) == {"h0a": 1, "h0b": 2}
    assert allocation(gang, low, communication=1e-9) == {"h0a": 1, "h1a": 2}


def test_a_packed_gang_uses_up_a_server_before_the_next() -> None:
    gang = mixed([{**JOB, "gpus": 4}], {"a": 3}, {"a": 2, "b": 2})
    assert allocation(gang, [1e-3, 2e-3], beta=5.0) == {"h1a": 2, "h1b": 2}


def test_a_busy_server_counts_once() -> None:
    instance = mixed([JOB], {"a": 2, "b": 1}, {"a": 3})
    view = hadar.view(instance)
    held = hadar.HadarSchedule.of(np.array([[0, t, h, n] for t in (0, 1) for h, n in ((0, 2), (1, 1))]))
    verdict = judge(view.instance, held, "hadar.utility", ())
    assert not verdict.violations
    assert verdict.metrics["busy_servers"] == 0.5

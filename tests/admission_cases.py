"""Small admission instances for tests, and an exhaustive search over everything that the text allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from instances.canonical import validate
from instances.schema import Instance
from instances.views import admission

MB_PER_S = 1000.0 / 8 / 2
"""Gradient that takes a worker of 1 Gbit/s a second to send and receive."""

Part = Mapping[str, Any]


def job(
    chunks: int = 2, epochs: int = 2, *, arrival: float = 0.0, deadline: float | None = None, worth: float = 300.0,
    steepness: float = 0.02, seconds: Mapping[str, float] | float = 1.0, transfer_s: float = 1.0,
) -> Part:  # fmt: skip
    """Return a job of ``epochs·chunks`` mini-batches, by default that of the walk-through without a deadline.

    A mini-batch takes `seconds`, by worker type or for all alike, and `transfer_s` more where not all is on one server.
    """
    return {
        "chunks": chunks, "epochs": epochs, "submit_s": arrival, "deadline_s": deadline, "seconds": seconds,
        "utility": {"kind": "sigmoid", "amplitude": worth, "steepness_per_s": steepness}, "transfer_s": transfer_s,
    }  # fmt: skip


def instance(
    jobs: Sequence[Part], servers: Sequence[tuple[str, int, int]] = (("w", 2, 1),) * 4, *, slots: int = 8,
    worker_gbps: float = 1.0, ps_gbps: float = 1.0,
) -> Instance:  # fmt: skip
    """Return jobs ``J1, J2, …`` on servers of a worker type, with so many workers and PSs; a slot is a second."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in servers))
    content = {
        "name": "case",
        "cluster": {
            "gpu_types": [{"name": kind} for kind in kinds],
            "servers": [
                {"name": f"s{i}", "count": 1, "gpu_type": kind, "gpus": gpus, "ps_slots": ps}
                for i, (kind, gpus, ps) in enumerate(servers)
            ],
        },
        "worker_types": [{"name": k, "gpu_type": k, "gpus": 1, "bandwidth_gbps": worker_gbps} for k in kinds],
        "ps_types": [{"name": "ps", "bandwidth_gbps": ps_gbps}],
        "jobs": [_record(given, i, kinds, worker_gbps) for i, given in enumerate(jobs)],
        "horizon": {"slot_s": 1.0, "slots": slots},
    }
    return validate(content, "case")


def _record(given: Part, position: int, kinds: Sequence[str], worker_gbps: float) -> dict[str, Any]:
    seconds = given["seconds"]
    times = dict.fromkeys(kinds, seconds) if isinstance(seconds, int | float) else seconds
    profile = {
        "gradient_mb": given["transfer_s"] * MB_PER_S * worker_gbps,
        "minibatch_ms": {kind: 1000.0 * time for kind, time in times.items()},
    }
    fields = {k: given[k] for k in ("chunks", "epochs", "submit_s", "deadline_s", "utility")}
    return {"id": f"J{position + 1}", "gpus": 1, **fields, "distributed": profile}


class Plan(NamedTuple):
    """A schedule of a job: what it is worth, when it runs, and worker type, workers and PSs by server."""

    worth: float
    start: int
    end: int
    kind: str
    workers: tuple[int, ...]
    ps: tuple[int, ...]


def plans(of: Instance, j: int, first: int) -> Iterator[Plan]:
    """Yield every schedule of a job that may start `first` slots after its arrival.

    PSs may be anywhere and in excess; more slots than the work takes are no use.
    """
    one = of.jobs[j]
    arrival = math.ceil(one.submit_s)
    assert of.horizon is not None
    assert one.distributed is not None
    due = of.horizon.slots if one.deadline_s is None else min(math.floor(one.deadline_s), of.horizon.slots)
    groups = of.cluster.servers
    for worker in of.worker_types:
        ratio = worker.bandwidth_gbps / of.ps_types[0].bandwidth_gbps
        seconds = one.distributed.minibatch_ms[worker.name] / 1000
        transfer = 2 * one.distributed.gradient_mb * 8 / 1000 / worker.bandwidth_gbps
        rooms = [g.gpus if g.gpu_type == worker.gpu_type else 0 for g in groups]
        for y in product(*(range(room + 1) for room in rooms)):
            if not 1 <= sum(y) <= one.chunks:
                continue
            for z in product(*(range(g.ps_slots + 1) for g in groups)):
                covered = all((sum(y) - own) * ratio <= n + 1e-9 for own, n in zip(y, z, strict=True) if n)
                if not sum(z) or not covered:
                    continue
                apart = sum(a + b > 0 for a, b in zip(y, z, strict=True)) > 1
                took = math.ceil(one.iterations * (seconds + transfer * apart) / sum(y) - 1e-9)
                for start in range(arrival + first, due - took + 1):
                    amplitude, steepness = one.utility.amplitude, one.utility.steepness_per_s  # type: ignore[union-attr]
                    worth = amplitude / (1 + math.exp(steepness * (start + took - arrival)))
                    yield Plan(worth, start, start + took, worker.name, y, z)


def exhaustive(of: Instance, first: int = 1) -> float:
    """Return the largest total utility of any set of schedules that fit together."""
    assert of.horizon is not None
    choices = [sorted(plans(of, j, first), key=lambda plan: -plan.worth) for j in range(len(of.jobs))]
    most = [max((plan.worth for plan in own), default=0.0) for own in choices]
    # What is in use, by server and slot: workers and PSs.
    used = [[[0, 0] for _ in range(of.horizon.slots)] for _ in of.cluster.servers]
    best = 0.0

    def change(plan: Plan, sign: int) -> bool:
        fits = True
        for s, group in enumerate(of.cluster.servers):
            for t in range(plan.start, plan.end):
                cell = used[s][t]
                cell[0] += sign * plan.workers[s]
                cell[1] += sign * plan.ps[s]
                fits = fits and cell[0] <= group.gpus and cell[1] <= group.ps_slots
        return fits

    def visit(j: int, total: float) -> None:
        nonlocal best
        best = max(best, total)
        for plan in choices[j] if j < len(choices) else ():
            if total + plan.worth + sum(most[j + 1 :]) <= best * (1 + 1e-12):
                break
            if change(plan, 1):
                visit(j + 1, total + plan.worth)
            change(plan, -1)
        if j < len(choices) and total + sum(most[j + 1 :]) > best * (1 + 1e-12):
            visit(j + 1, total)

    visit(0, 0.0)
    return best


@st.composite
def tiny(draw: st.DrawFn, jobs: int = 2) -> Instance:
    """Draw up to so many jobs on two or three small servers, for the exhaustive search."""
    return drawn(draw, jobs, servers=3, room=2, sizes=(1, 2, 3), slots=6)


@st.composite
def small(draw: st.DrawFn, jobs: int = 8) -> Instance:
    """Draw some jobs on up to six servers, for heuristics."""
    return drawn(draw, jobs, servers=6, room=4, sizes=(1, 2, 3, 5, 8), slots=14)


def drawn(draw: st.DrawFn, jobs: int, *, servers: int, room: int, sizes: Sequence[int], slots: int) -> Instance:
    """Draw an instance of up to two worker types."""
    kinds = draw(st.sampled_from([("w",), ("w",), ("w", "v")]))
    of = st.sampled_from
    hosts = [
        (kinds[i % len(kinds)], draw(st.integers(1, room)), draw(st.integers(0, 2)))
        for i in range(draw(st.integers(2, servers)))
    ]
    hosts[0] = (*hosts[0][:2], 1)
    made = [
        job(
            draw(of(sizes)),
            draw(of((1, 2))),
            arrival=draw(of((0.0, 0.0, 1.0, 1.5))),
            deadline=draw(of((None, None, float(slots - 2)))),
            worth=draw(of((1.0, 100.0, 300.0))),
            steepness=draw(of((0.02, 0.5))),
            seconds={kind: draw(of((0.5, 1.0, 1.5))) for kind in kinds},
            transfer_s=draw(of((0.0, 0.5, 1.0))),
        )
        for _ in range(draw(st.integers(1, jobs)))
    ]
    return instance(made, hosts, slots=slots, ps_gbps=draw(of((0.5, 1.0, 2.0))))


def view(of: Instance) -> admission.View:
    """Return the admission view."""
    return admission.view(of)

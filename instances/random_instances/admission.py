"""Instances of admission, built by hand or drawn at random: jobs with deadlines on a few servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.registry import MB_PER_S, RANDOM, RandomSpec, Source, cluster, pick
from schedgap.instances.schema import Instance

Part = Mapping[str, Any]


def job(
    chunks: int = 2, epochs: int = 2, *, arrival: float = 0.0, deadline: float | None = None, worth: float = 300.0,
    steepness: float = 0.02, seconds: Mapping[str, float] | float = 1.0, transfer_s: float = 1.0,
) -> Part:  # fmt: skip
    """Return a job of ``epochs·chunks`` mini-batches, by default that of the walk-through without a deadline.

    A mini-batch takes `seconds` (by worker type, or the same for all), and `transfer_s` more if the job spans servers.
    """
    return {
        "chunks": chunks, "epochs": epochs, "submit_s": arrival, "deadline_s": deadline, "seconds": seconds,
        "utility": {"kind": "sigmoid", "amplitude": worth, "steepness_per_s": steepness}, "transfer_s": transfer_s,
    }  # fmt: skip


def instance(
    jobs: Sequence[Part], servers: Sequence[tuple[str, int, int]] = (("w", 2, 1),) * 4, *, slots: int = 8,
    worker_gbps: float = 1.0, ps_gbps: float = 1.0,
) -> Instance:  # fmt: skip
    """Return jobs ``J1, J2, …`` on servers ``(worker type, workers, PSs)``; a slot is a second."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in servers))
    content = {
        "name": "case",
        "cluster": cluster(({"gpu_type": kind, "gpus": gpus, "ps_slots": ps} for kind, gpus, ps in servers), "s"),
        "worker_types": [{"name": k, "gpu_type": k, "gpus": 1, "bandwidth_gbps": worker_gbps} for k in kinds],
        "ps_types": [{"name": "ps", "bandwidth_gbps": ps_gbps}],
        "jobs": [_record(part, i, kinds, worker_gbps) for i, part in enumerate(jobs)],
        "horizon": {"slot_s": 1.0, "slots": slots},
    }
    return validate(content, "case")


def _record(part: Part, position: int, kinds: Sequence[str], worker_gbps: float) -> dict[str, Any]:
    seconds = part["seconds"]
    times = dict.fromkeys(kinds, seconds) if isinstance(seconds, int | float) else seconds
    profile = {
        "gradient_mb": part["transfer_s"] * MB_PER_S * worker_gbps,
        "minibatch_ms": {kind: 1000.0 * time for kind, time in times.items()},
    }
    fields = {k: part[k] for k in ("chunks", "epochs", "submit_s", "deadline_s", "utility")}
    return {"id": f"J{position + 1}", "gpus": 1, **fields, "distributed": profile}


def draw(
    rng: Source, *, jobs: int = 4, servers: int = 3, room: int = 2, sizes: Sequence[int] = (1, 2, 3), slots: int = 6
) -> Instance:
    """Return an instance of one or two worker types, with numbers of chunks among `sizes`.

    There are up to `jobs` jobs, up to `servers` servers (at least two), and up to `room` workers per server.
    """
    kinds = pick(rng, (("w",), ("w",), ("w", "v")))
    hosts = [
        (kinds[i % len(kinds)], pick(rng, range(1, room + 1)), pick(rng, (0, 1, 2)))
        for i in range(pick(rng, range(2, servers + 1)))
    ]
    hosts[0] = (*hosts[0][:2], 1)
    drawn = [
        job(
            pick(rng, sizes),
            pick(rng, (1, 2)),
            arrival=pick(rng, (0.0, 0.0, 1.0, 1.5)),
            deadline=pick(rng, (None, None, float(slots - 2))),
            worth=pick(rng, (1.0, 100.0, 300.0)),
            steepness=pick(rng, (0.02, 0.5)),
            seconds={kind: pick(rng, (0.5, 1.0, 1.5)) for kind in kinds},
            transfer_s=pick(rng, (0.0, 0.5, 1.0)),
        )
        for _ in range(pick(rng, range(1, jobs + 1)))
    ]
    return instance(drawn, hosts, slots=slots, ps_gbps=pick(rng, (0.5, 1.0, 2.0)))


RANDOM.register(RandomSpec("admission", draw))

"""Instances of Hadar, built by hand or drawn at random: gangs on a few servers.

Rates, work and slot lengths are drawn as integers, so that an exhaustive search is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.registry import RANDOM, RandomSpec, Source, cluster, pick
from schedgap.instances.schema import Instance

TYPES = ("fast", "middle", "slow")


def linear(
    jobs: Sequence[Mapping[str, Any]], gpus: Mapping[str, int], slots: int, slot_s: float = 1.0, servers: int = 1
) -> Instance:
    """Return an instance of these jobs on `servers` servers of each type, with `gpus` by type on each.

    Jobs have all fields except ids; without a utility, they have effective throughput.
    """
    groups = [{"name": f"host {name}", "count": servers, "gpu_type": name, "gpus": n} for name, n in gpus.items()]
    return _instance(jobs, groups, slots, slot_s)


def _instance(
    jobs: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]], slots: int, slot_s: float
) -> Instance:
    content = {
        "name": "tiny",
        "cluster": cluster(groups),
        "horizon": {"slot_s": slot_s, "slots": slots},
        "jobs": [{"id": f"J{i}", **job} for i, job in enumerate(jobs)],
    }
    return validate(content, "tiny")


def draw(rng: Source, *, jobs: int = 3, slots: int = 5, gpus: int = 3, mixed: bool = False) -> Instance:
    """Return an instance with up to `jobs` jobs, `slots` slots, and `gpus` GPUs per server.

    There are one to three types with one or two servers each. If `mixed`, servers of the first type may have GPUs of
    the others as well.
    """
    types = TYPES[: pick(rng, (1, 2, 3))]
    hosts = [(name, pick(rng, range(1, gpus + 1))) for name in types for _ in range(pick(rng, (1, 2)))]
    first = sum(name == types[0] for name, _ in hosts)
    shared: list[dict[str, str]] = []
    for i, (name, _) in enumerate(hosts):
        at = sum(other == name for other, _ in hosts[:i])
        within = mixed and name != types[0] and at < first and pick(rng, (True, False))
        shared.append({"servers_of": f"h{at}"} if within else {})
    slot_s, count = pick(rng, (1.0, 2.0)), pick(rng, range(2, slots + 1))
    end_s = int(slot_s * count)
    room = {name: sum(n for host, n in hosts if host == name) for name in types}
    drawn = [_job(rng, room, end_s) for _ in range(pick(rng, range(1, jobs + 1)))]
    groups = [{"gpu_type": r, "gpus": n, **of} for (r, n), of in zip(hosts, shared, strict=True)]
    return _instance(drawn, groups, count, slot_s)


def _job(rng: Source, room: Mapping[str, int], end_s: int) -> dict[str, Any]:
    rates = {name: float(pick(rng, range(5))) for name in room}
    if not any(rates.values()):
        rates[pick(rng, tuple(room))] = 1.0
    submit_s = pick(rng, range(min(3, end_s - 1) + 1))
    return {
        "gpus": pick(rng, range(1, min(3, sum(n for name, n in room.items() if rates[name])) + 1)),
        "epochs": pick(rng, range(1, 17)),
        "submit_s": submit_s,
        "rates": rates,
        "deadline_s": submit_s + pick(rng, range(1, end_s + 1)),
        "utility": pick(
            rng,
            (
                {"kind": "effective_throughput"},
                {"kind": "normalised"},
                {"kind": "sigmoid", "amplitude": 5.0, "steepness_per_s": 0.7, "midpoint_s": 3.0},
                {"kind": "linear_deadline", "amplitude": 4.0, "grace_s": 3.0},
                {"kind": "constant", "amplitude": 2.0},
            ),
        ),
    }


def private(count: int) -> Instance:
    """Return `count` jobs that each run only on their own GPU type, which has one GPU."""
    types = [f"type {i + 1}" for i in range(count)]
    jobs = [{"gpus": 1, "epochs": i + 1, "rates": {name: 1.0}} for i, name in enumerate(types)]
    return linear(jobs, dict.fromkeys(types, 1), max(8, count))


def gangs(n: int, seed: int = 1) -> Instance:
    """Return `n` random gangs on six servers of eight GPUs, two of each type."""
    rng = np.random.default_rng(seed)
    jobs = [
        {
            "gpus": int(rng.integers(1, 5)),
            "epochs": int(rng.integers(5, 50)),
            "rates": {f"r{k}": float(x) for k, x in enumerate(rng.uniform(0.5, 4, 3))},
        }
        for _ in range(n)
    ]
    return linear(jobs, {"r0": 8, "r1": 8, "r2": 8}, slots=2000, servers=2)


RANDOM.register(RandomSpec("hadar", draw))

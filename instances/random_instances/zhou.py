"""Instances of Zhou et al., built by hand from parts or drawn at random.

Times are in seconds. A slot is by default one second long, so that they are also in slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.registry import MB_PER_S, RANDOM, RandomSpec, Source, cluster, pick
from schedgap.instances.schema import Instance

Part = Mapping[str, Any]

MS_PER_S = 1000.0

ARRIVALS = (0.0, 0.0, 1.0, 1.5, 3.0)


def servers(
    count: int = 1, gpus: int = 2, cpus: float = 4.0, *, memory_gb: float = 16.0, bandwidth_gbps: float = 8.0,
    chip: str = "V100",
) -> Part:  # fmt: skip
    """Return a group of equal servers."""
    server = {"gpu_type": chip, "gpus": gpus, "cpus": cpus, "memory_gb": memory_gb, "bandwidth_gbps": bandwidth_gbps}
    return {"count": count, **server}


def worker(
    gpus: int = 1, cpus: float = 1.0, *, memory_gb: float = 1.0, bandwidth_gbps: float = 1.0, chip: str | None = None
) -> Part:
    """Return a worker type; without `chip`, it runs on any GPU type."""
    return {"gpu_type": chip, "gpus": gpus, "cpus": cpus, "memory_gb": memory_gb, "bandwidth_gbps": bandwidth_gbps}


def ps(gpus: int = 0, cpus: float = 1.0, *, memory_gb: float = 1.0, bandwidth_gbps: float = 2.0) -> Part:
    """Return a PS type; by default it needs no GPU and serves two workers on other servers."""
    return {"gpus": gpus, "cpus": cpus, "memory_gb": memory_gb, "bandwidth_gbps": bandwidth_gbps}


def job(
    chunks: int = 2, batches: int = 1, epochs: int = 1, *, minibatch_s: float | Sequence[float | None] = 1.0,
    update_s: float | Sequence[float] = 0.0, ring_update_s: float | None = None, gradient_mb: float = 0.0,
    weight: float = 1.0, submit_s: float = 0.0,
) -> Part:  # fmt: skip
    """Return a job of ``epochs·chunks·batches`` mini-batches; times are one number for all types, or one per type.

    A worker type whose time is ``None`` cannot run the job. A worker with 1 Gbit/s exchanges a `gradient_mb` of
    :data:`MB_PER_S` in one second.
    """
    times = {"minibatch_s": minibatch_s, "update_s": update_s, "ring_update_s": ring_update_s}
    work = {"chunks": chunks, "minibatches_per_chunk": batches, "epochs": epochs}
    return {**work, **times, "gradient_mb": gradient_mb, "weight": weight, "submit_s": submit_s}


def instance(
    jobs: Sequence[Part], groups: Sequence[Part] | None = None, workers: Sequence[Part] | None = None,
    types: Sequence[Part] | None = None, *, slot_s: float = 1.0, slots: int = 8, unit_worth: float | None = None,
    name: str = "case",
) -> Instance:  # fmt: skip
    """Return an instance of jobs ``J1, J2, …``, by default with one group of servers, one worker type and one PS type.

    The parts come from :func:`job`, :func:`servers`, :func:`worker` and :func:`ps`; ``types=()`` means no PS types.
    `unit_worth` is Zhou's F, by default derived from the jobs.
    """
    groups = [servers()] if groups is None else groups
    workers = [worker()] if workers is None else workers
    types = [ps()] if types is None else types
    names = [f"w{i}" for i in range(len(workers))], [f"p{i}" for i in range(len(types))]
    content = {
        "name": name,
        "cluster": cluster(groups, "g"),
        "worker_types": [{"name": n, **part} for n, part in zip(names[0], workers, strict=True)],
        "ps_types": [{"name": n, **part} for n, part in zip(names[1], types, strict=True)],
        "jobs": [_record(part, i, *names) for i, part in enumerate(jobs)],
        "horizon": {"slot_s": slot_s, "slots": slots},
        "unit_worth": unit_worth,
    }
    return validate(content, name)


def _record(part: Part, position: int, workers: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
    fields = ("chunks", "minibatches_per_chunk", "epochs", "weight", "submit_s")
    ring = part["ring_update_s"]
    profile = {
        "gradient_mb": part["gradient_mb"],
        "minibatch_ms": _by_name(workers, part["minibatch_s"]),
        "update_ms": _by_name(types, part["update_s"]),
        "ring_update_ms": None if ring is None else ring * MS_PER_S,
    }
    return {"id": f"J{position + 1}", "gpus": 1, **{k: part[k] for k in fields}, "distributed": profile}


def _by_name(names: Sequence[str], seconds: float | Sequence[float | None]) -> dict[str, float]:
    times = [seconds] * len(names) if isinstance(seconds, int | float) else seconds
    return {name: time * MS_PER_S for name, time in zip(names, times, strict=True) if time is not None}


# -------------------------------------------------------------------------------------------------- random instances


def draw(rng: Source, *, arrivals: Sequence[float] = ARRIVALS) -> Instance:
    """Return an instance of one to three jobs on one to three servers, small enough for an exact MILP.

    The first types fit on the first servers, so that every job can run with PSs and in a ring. Submission times are
    among `arrivals`.
    """
    workers = [worker(bandwidth_gbps=pick(rng, (0.5, 1.0)))]
    workers += [_worker(rng) for _ in range(pick(rng, (0, 0, 1, 2)))]
    types = [ps(bandwidth_gbps=pick(rng, (0.5, 1.0, 2.0)))]
    types += [_ps(rng) for _ in range(pick(rng, (0, 1)))]
    groups = [_servers(rng, pick(rng, (1, 1, 2)), "V100")]
    if pick(rng, (False, True)):
        groups.append(_servers(rng, 1, pick(rng, ("V100", "K80"))))
    sizes = ((1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 1, 2), (3, 1, 1), (3, 2, 1))
    jobs = [_job(rng, sizes, len(workers), len(types), arrivals) for _ in range(pick(rng, (1, 2, 2, 3)))]
    return instance(jobs, groups, workers, types, slots=pick(rng, (4, 8)), name="tiny")


def draw_many(rng: Source, *, jobs: int = 12) -> Instance:
    """Return an instance of up to `jobs` jobs on up to seven servers of three kinds, for heuristics and bounds."""
    workers = [worker(), *(_worker(rng) for _ in range(pick(rng, (0, 1, 2, 3))))]
    types = [ps(), *(_ps(rng) for _ in range(pick(rng, (0, 1, 2))))]
    groups = [_servers(rng, pick(rng, (1, 2, 3)), chip, 2) for chip in ("V100", "K80", "V100")[: pick(rng, (1, 2, 3))]]
    sizes = tuple((d, k, e) for d in (1, 2, 4, 8) for k in (1, 3) for e in (1, 4))
    arrivals = tuple(float(a) for a in range(0, 20, 2))
    drawn = [_job(rng, sizes, len(workers), len(types), arrivals) for _ in range(pick(rng, range(1, jobs + 1)))]
    return instance(drawn, groups, workers, types, slots=pick(rng, (20, 40)), name="small")


def draw_roomy(rng: Source) -> Instance:
    """Return three to six jobs whose weights and server are so large that the paper's assumptions mostly hold."""
    size = pick(rng, (48, 64, 80))
    host = servers(1, size, float(size), memory_gb=float(size), bandwidth_gbps=float(size))
    drawn = []
    for _ in range(pick(rng, (3, 4, 5, 6))):
        chunks, epochs = pick(rng, (1, 2, 3)), pick(rng, (1, 2, 3))
        weight = size * pick(rng, (1.0, 1.0, 2.0, 3.0)) * chunks * epochs
        gradient_mb = pick(rng, (0.0, MB_PER_S))
        submit_s = pick(rng, (0.0, 0.0, 1.0, 2.0))
        drawn.append(job(chunks, 1, epochs, weight=weight, gradient_mb=gradient_mb, submit_s=submit_s))
    return instance(drawn, [host], [worker()], [ps(cpus=0.5, memory_gb=0.5)], name="roomy")


def _servers(rng: Source, count: int, chip: str, times: int = 1) -> Part:
    # Tenths and thirds do not add up exactly in floating point.
    return servers(
        count, times * pick(rng, (1, 2, 3)), times * pick(rng, (2.0, 3.0, 3.3)), chip=chip,
        memory_gb=pick(rng, (3.0, 16.0)), bandwidth_gbps=pick(rng, (4.0, 8.0)),
    )  # fmt: skip


def _worker(rng: Source) -> Part:
    return worker(
        pick(rng, (0, 1, 1, 2)), pick(rng, (0.0, 0.5, 1.1, 2.0)), memory_gb=pick(rng, (0.0, 1.0, 2.0)),
        bandwidth_gbps=pick(rng, (0.5, 1.0, 2.0)), chip=pick(rng, (None, None, "V100")),
    )  # fmt: skip


def _ps(rng: Source) -> Part:
    return ps(pick(rng, (0, 0, 1)), pick(rng, (0.0, 0.5, 1.0, 1.1)), bandwidth_gbps=pick(rng, (0.5, 1.0, 3.0)))


def _job(
    rng: Source, sizes: Sequence[tuple[int, int, int]], workers: int, types: int, arrivals: Sequence[float]
) -> Part:
    return job(
        *pick(rng, sizes),
        minibatch_s=[pick(rng, (0.3, 0.5, 1.0, 1.0, None) if i else (0.3, 0.5, 1.0)) for i in range(workers)],
        update_s=[pick(rng, (0.0, 0.2, 0.5)) for _ in range(types)],
        ring_update_s=pick(rng, (None, 0.0, 0.4)),
        gradient_mb=pick(rng, (0.0, 0.2 * MB_PER_S, MB_PER_S)),
        weight=pick(rng, (0.0, 1.0, 1.0, 2.0, 5.0)),
        submit_s=pick(rng, arrivals),
    )


RANDOM.register(RandomSpec("zhou", draw))

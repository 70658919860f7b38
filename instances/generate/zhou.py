"""Zhou et al.'s setup: jobs that may use several types of workers and parameter servers (PSs), on EC2-like servers.

Source: Zhou et al., section 7 (Settings). The paper prints ranges; every quantity is drawn uniformly from its range.

**Capacity.** It is "approximately a [0.2, 0.5] fraction of the respective overall job resource demand", read as the
ideal demand summed over all jobs. Alone and without limits, a job is fastest with ``D`` workers, of the worker and PS
types that make a mini-batch shortest when not everything is on one server, and with the PSs that (2i) requires. Its
demand is their resources times its duration, and the sum is divided by the timespan: the fraction is the part of the
ideal work that fits into it. Without durations, a third of all jobs would fit side by side although each lasts for a
tenth of the timespan, and no job would ever wait. With this reading, the default fraction makes the 150 servers nearly
those of EC2. All servers are scaled by the same factor for each resource, and GPUs are then rounded; more servers are
smaller ones. Rounding each server changes the total of GPUs in steps of a whole kind of servers (``gpus=rounded``);
with ``gpus=spread``, some servers of a kind have one GPU more than others, and the total is off by less than one GPU of
each kind.

**What the paper leaves open.** It does not say how jobs arrive (``arrivals``), nor whether all jobs rank worker types
alike (``types``): `v_jm` is drawn by job and type; with ``aligned`` a job's shortest time goes to the fastest type,
with ``shuffled`` to any.

**Other laws** (:mod:`schedgap.instances.generate.laws`). Laws of `durations` are about the mini-batches of a chunk,
whose mean they keep. Failures strike the GPUs of `D` workers, one each, that run the job alone. A job's times by type
of worker, and of PS, differ by their power `heterogeneity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Ints
from schedgap.instances.errors import InstanceError
from schedgap.instances.generate import draws, laws
from schedgap.instances.generate.core import FAMILIES, Family, Streams
from schedgap.instances.generate.laws import LawsSpec, TypesSpec
from schedgap.instances.generate.workload import Range, WholeRange, law_notes
from schedgap.instances.model_catalogue import significant
from schedgap.instances.moldable.machines import takes
from schedgap.instances.moldable.options import rates
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Cluster, GpuType, Horizon, PSType, ServerGroup, WorkerType, check_size
from schedgap.instances.schema.base import rule, violation
from schedgap.instances.schema.job import DistributedProfile, Job

ARRIVE = {"start": "all jobs are there in slot 1", "poisson": "jobs arrive at a constant rate (Poisson)"}
"""Notes on when jobs arrive."""

ANY = "any"
"""Value of `worker_type` that lets jobs use all types."""


class ZhouSpec(TypesSpec, LawsSpec):
    """Parameters of Zhou's setup: the ranges of section 7, types of workers and PSs, and servers before scaling.

    Types of workers and of parameter servers are listed in the order of speed, fastest first: the shortest of a job's
    times goes to the first type.
    """

    architecture: Literal["ps", "ra"] = "ps"
    jobs: int = rule("a whole number of jobs, 1 or more", ge=1)
    slots: int = rule("a whole number of slots, 1 or more", ge=1)
    slot_s: float = rule("a slot has a positive length in seconds", gt=0)
    servers: int = rule("a whole number of servers, 1 or more", ge=1)
    capacity: float = rule("a positive fraction of the ideal demand, at most 1000", gt=0, le=1000)
    unit_worth: float = rule("F, or 0 to derive it from the jobs", ge=0, default=0.0)
    due_slot: int = rule("τ, 2 to 10,000, or 0 to derive it from the jobs", ge=0, le=10_000, default=0)
    arrivals: Literal[laws.Arrivals, "uniform"] = "uniform"
    types: Literal["aligned", "shuffled"] = "aligned"
    gpus: Literal["rounded", "spread"] = "rounded"
    worker_type: str = ANY
    workers: int = rule("the most workers of a job, or 0 for its number of chunks", ge=0, default=0)

    weights: WholeRange = rule("two whole numbers, the smaller first")
    epochs: WholeRange = rule("two whole numbers, the smaller first")
    chunks: WholeRange = rule("two whole numbers, the smaller first")
    minibatches: WholeRange = rule("two whole numbers, the smaller first")
    minibatch_slots: Range = rule("slots per mini-batch, the smaller first")
    update_ms: Range = rule("milliseconds, the smaller first")
    gradient_mb: Range = rule("megabytes, the smaller first")

    gpu_types: tuple[GpuType, ...] = rule("at least one GPU type", min_length=1, max_length=1000)
    server_kinds: tuple[ServerGroup, ...] = rule("at least one kind of server", min_length=1, max_length=1000)
    worker_types: tuple[WorkerType, ...] = rule("at least one worker type", min_length=1, max_length=1000)
    ps_types: tuple[PSType, ...] = rule("at most 1000 PS types", max_length=1000, default=())

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_size("jobs · types", self.jobs * max(len(self.worker_types), len(self.ps_types)))
        check_size("servers", self.servers)
        check_size("slots", self.slots)
        names = [worker.name for worker in self.worker_types]
        if self.worker_type not in (ANY, *names):
            raise violation("worker_type", self.worker_type, unknown("worker type", self.worker_type, [ANY, *names]))
        if self.architecture == "ps" and not self.ps_types:
            raise violation("ps_types", "[]", "architecture ps needs at least one type of parameter servers")
        if self.minibatch_slots[0] <= 0:
            raise violation("minibatch_slots", self.minibatch_slots[0], "the lower end is positive")
        for name in ("epochs", "chunks", "minibatches"):
            if getattr(self, name)[0] < 1:
                raise violation(name, getattr(self, name)[0], "the lower end is 1 or more")
        return self

    @property
    def ring(self) -> bool:
        """True if workers form a ring."""
        return self.architecture == "ra"


def build(spec: ZhouSpec, streams: Streams) -> dict[str, Any]:
    """Draw the parts of an instance."""
    jobs = _failing(spec, list(_jobs(spec, streams)), streams)
    offered = [w for w in spec.worker_types if spec.worker_type in (ANY, w.name)]
    servers = tuple(_servers(spec, jobs))
    room = np.array([[s.gpus, s.cpus, s.memory_gb, s.bandwidth_gbps] for s in servers])
    parts = takes(offered)
    if not spec.ring:
        parts = (parts[:, None] + takes(spec.ps_types)).reshape(-1, parts.shape[1])
    if not (room[:, None] >= parts).all(axis=2).any():  # too little capacity is spread over too many servers
        what = "a worker" if spec.ring else "a worker with a parameter server"
        right = "ask for fewer servers, more jobs or more capacity"
        raise InstanceError(f"servers = {spec.servers}: each is too small for {what}; {right}")
    limited = []
    for job in jobs:  # limit worker types and numbers of workers; the work stays the same up to rounding
        changes: dict[str, Any] = {}
        if 0 < spec.workers < job.chunks:
            batches = max(1, round(job.chunks * job.minibatches_per_chunk / spec.workers))
            changes |= {"chunks": spec.workers, "minibatches_per_chunk": batches}
        if len(offered) < len(spec.worker_types) and job.distributed:
            times = {worker.name: job.distributed.minibatch_ms[worker.name] for worker in offered}
            changes["distributed"] = job.distributed.model_copy(update={"minibatch_ms": times})
        limited.append(job.model_copy(update=changes))
    with_servers = "" if spec.ring else " and PSs for their bandwidth"
    rounding = "rounded" if spec.gpus == "rounded" else "in whole numbers of the same sum"
    order = "the shortest goes to the fastest type" if spec.types == "aligned" else "each goes to any type"
    derived = [
        f"capacity of each resource = {spec.capacity:g} x ideal demand (D workers of the type that makes a job alone"
        f" fastest{with_servers}, times its duration) / {spec.slots} slots, in servers scaled alike; GPUs {rounding}",
        "worker types run on every server, as in the paper's (2h), which counts GPUs of one kind only",
        f"memory of workers and servers as on EC2; of a job's times, {order}",
    ]
    if spec.arrivals in ARRIVE:
        derived.append(ARRIVE[spec.arrivals])
    derived += law_notes(spec)
    if spec.workers:
        derived.append(f"at most {spec.workers} workers: jobs with more chunks have that many, of more mini-batches")
    return {
        "cluster": Cluster(gpu_types=spec.gpu_types, servers=servers),
        "jobs": tuple(limited),
        "worker_types": tuple(offered),
        "ps_types": () if spec.ring else spec.ps_types,
        "horizon": Horizon(slot_s=spec.slot_s, slots=spec.slots),
        "unit_worth": spec.unit_worth or None,
        "due_slot": spec.due_slot or None,
        "derived": tuple(derived),
    }


def _jobs(spec: ZhouSpec, streams: Streams) -> Iterator[Job]:
    """Draw the jobs before `worker_type` and `workers` limit them."""
    n = spec.jobs
    ranges = [spec.weights, spec.epochs, spec.chunks, spec.minibatches]
    whole = dict(zip(("weights", "epochs", "chunks", "mini-batches"), ranges, strict=True))
    drawn = [[draws.whole(u, *ends) for u in streams.uniform(name, n).tolist()] for name, ends in whole.items()]
    if spec.durations != "paper":
        per_chunk = laws.durations(spec, streams.uniform("mini-batches", n), sum(spec.minibatches) / 2)
        drawn[-1] = [max(1, round(value)) for value in draws.rounded(per_chunk)]
    gradients = draws.rounded(draws.between(streams.uniform("gradients", n), *spec.gradient_mb))
    rings = draws.rounded(draws.between(streams.uniform("ring updates", n), *spec.update_ms))
    slots = _times(spec, streams, "mini-batch times", [w.name for w in spec.worker_types], spec.minibatch_slots)
    updates = _times(spec, streams, "updates", [p.name for p in spec.ps_types], spec.update_ms)
    if spec.arrivals == "uniform":
        arrivals = [draws.whole(x, 0, spec.slots - 1) for x in streams.uniform("arrivals", n).tolist()]
    else:  # arrivals after the timespan move to its last slot
        times = laws.arrival_times(spec, n, n / spec.slots, streams, unit_s=spec.slot_s)
        arrivals = [min(int(at), spec.slots - 1) for at in times]
    for j, (arrival, weight, epochs, chunks, batches) in enumerate(zip(arrivals, *drawn, strict=True)):
        profile = DistributedProfile(
            gradient_mb=gradients[j],
            minibatch_ms={name: significant(time * spec.slot_s * 1000) for name, time in slots[j].items()},
            update_ms={} if spec.ring else updates[j],
            ring_update_ms=rings[j] if spec.ring else None,
        )
        yield Job(
            id=f"job-{j + 1:04d}",
            submit_s=significant(arrival * spec.slot_s, 15),
            gpus=1,
            epochs=epochs,
            chunks=chunks,
            minibatches_per_chunk=batches,
            weight=float(weight),
            distributed=profile,
        )


def _failing(spec: ZhouSpec, jobs: list[Job], streams: Streams) -> list[Job]:
    """Return the jobs with more mini-batches per chunk, for what they do again after failures."""
    if spec.failures == 0:
        return jobs
    alone = [float(slots) * spec.slot_s for slots in ideal(spec, jobs)[0]]
    lasting = laws.with_failures(spec, alone, [job.chunks for job in jobs], streams)
    longer = [b / a for a, b in zip(alone, lasting, strict=True)]
    batches = [max(1, round(job.minibatches_per_chunk * more)) for job, more in zip(jobs, longer, strict=True)]
    return [job.model_copy(update={"minibatches_per_chunk": n}) for job, n in zip(jobs, batches, strict=True)]


def _times(
    spec: ZhouSpec, streams: Streams, quantity: str, names: Sequence[str], ends: tuple[float, float]
) -> list[dict[str, float]]:
    """Return each job's values by type, uniform between `ends` and ascending by type unless shuffled."""
    u = streams.uniform(quantity, spec.jobs * len(names)).reshape(spec.jobs, len(names))
    u = np.sort(u, axis=1) if spec.types == "aligned" else u
    times = draws.between(u, *ends)
    times = times if spec.heterogeneity == 1 else laws.spread(times, spec.heterogeneity)
    return [dict(zip(names, draws.rounded(row), strict=True)) for row in times]


def ideal(spec: ZhouSpec, jobs: Sequence[Job]) -> tuple[Ints, Array]:
    """Return the ideal demand of `n` jobs: as fast as possible, each alone, with any number of servers.

    It consists of ``(n,)`` slots, and ``(n, 4)`` GPUs, CPUs, gigabytes and Gbit/s of all workers and PSs of a job.
    """
    with_servers, ring = rates(jobs, spec.worker_types, spec.ps_types, spec.slot_s)
    work = np.array([job.iterations for job in jobs], float)
    most = np.array([job.chunks for job in jobs])
    r, share = (ring, (most - 1) / most) if spec.ring else (with_servers, np.ones(len(jobs)))
    times = r.compute + share[:, None] * r.transfer
    kind, per_batch = times.argmin(axis=1), times.min(axis=1) + share * r.update.min(axis=1)
    needs = takes(spec.worker_types)
    taken = most[:, None] * needs[kind]
    if not spec.ring:
        servers = takes(spec.ps_types)
        chosen = r.update.argmin(axis=1)
        count = np.maximum(1, np.ceil(most * needs[kind, 3] / servers[chosen, 3] * (1 - SLACK)))
        taken = taken + count[:, None] * servers[chosen]
    return np.ceil(work * per_batch / most * (1 - ROUNDING)).astype(np.int64), taken


def _servers(spec: ZhouSpec, jobs: Sequence[Job]) -> Iterator[ServerGroup]:
    """Yield the groups of servers: nearly as many of each kind, with resources scaled to the capacity of the spec."""
    slots, taken = ideal(spec, jobs)
    capacity = spec.capacity * (slots @ taken) / spec.slots
    each, more = divmod(spec.servers, len(spec.server_kinds))
    counts = [each + (i < more) for i in range(len(spec.server_kinds))]
    base = np.array([[k.gpus, k.cpus, k.memory_gb, k.bandwidth_gbps] for k in spec.server_kinds], float)
    factor = capacity / (np.array(counts) @ base)
    for kind, count, (gpus, cpus, memory, bandwidth) in zip(spec.server_kinds, counts, base * factor, strict=True):
        scaled = {"cpus": cpus, "memory_gb": memory, "bandwidth_gbps": bandwidth}
        changes = {name: significant(float(value)) for name, value in scaled.items()}
        for whole, many in _whole(float(gpus), count, spec.gpus == "spread").items():
            name = kind.name if whole == max(1, round(float(gpus))) else f"{kind.name}-{whole}gpus"
            if many:
                yield kind.model_copy(update={"name": name, "count": many, "gpus": whole, **changes})


def _whole(gpus: float, count: int, spread: bool) -> dict[int, int]:
    """Return the number of servers by their integral number of GPUs (1 or more), `count` in total."""
    if not spread or gpus <= 1:
        return {max(1, round(gpus)): count}
    low, more = math.floor(gpus), round((gpus % 1) * count)
    return {low + 1: more, low: count - more}


FAMILIES.register(Family("zhou", ZhouSpec, build))

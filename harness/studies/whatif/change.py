"""Changes of a cluster, or of the time limits of its jobs: each gives another instance of the same jobs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from schedgap.instances.schema import Cluster, GpuType, Instance, ServerGroup
from schedgap.instances.schema.columns import ELSEWHERE, GPU_TYPE, REQUESTED, Column, JobTable, PlainJobs

LONGEST = 200
"""Most characters of a name in the schema."""


@dataclass(frozen=True)
class Change:
    """A change; everything that it does not name stays as it is.

    Parameters
    ----------
    pool, gpus, server
        Pool that gets more GPUs, or fewer if the number is negative; whether they are one server.
    merged
        Pools of one type that become one pool.
    limits
        Factor on the users' time limits. A limit never falls below the run time, so that 0 makes all limits exact.
    """

    pool: str = ""
    gpus: int = 0
    server: bool = False
    merged: tuple[str, ...] = ()
    limits: float | None = None

    @property
    def cluster(self) -> bool:
        """Whether the cluster changes, and with it what is possible."""
        return bool(self.gpus or self.merged)

    @property
    def words(self) -> str:
        """The change in a few words, such as ``1 more V100``."""
        if self.server:
            return f"1 more server with {self.gpus} {self.pool}"
        if self.gpus:
            return f"{abs(self.gpus)} {'more' if self.gpus > 0 else 'fewer'} {self.pool}"
        if self.merged:
            several = " and ".join(self.merged) if len(self.merged) == 2 else f"all {self.merged[0].partition('@')[0]}"
            return f"one pool of {several}"
        if self.limits is None:
            return ""
        return f"time limits × {self.limits:g}" if self.limits else "exact time limits"

    def applied(self, instance: Instance) -> Instance:
        """Return the changed instance of a log; it has the recorded runs, which only give the durations."""
        if self == UNCHANGED:
            return instance
        cluster, columns = instance.cluster, dict(columns_of(instance).columns)
        if self.gpus:
            cluster = cluster.model_copy(update={"servers": tuple(_resized(cluster.servers, self.pool, self.gpus))})
        if self.merged:
            name = "+".join(self.merged)[:LONGEST]
            cluster = _merged(cluster, self.merged, name)
            columns |= _moved(columns, self.merged, name)
        if self.limits is not None and REQUESTED in columns:
            lasts = columns_of(instance).numbers("duration_s", 0.0).tolist()
            asked = zip(columns[REQUESTED], lasts, strict=True)
            columns[REQUESTED] = [None if one is None else float(max(ran, self.limits * one)) for one, ran in asked]
        name = f"{instance.name}, {self.words}"[:LONGEST]
        jobs = JobTable(PlainJobs(columns))
        return instance.model_copy(update={"name": name, "cluster": cluster, "jobs": jobs, "published": ()})


def columns_of(instance: Instance) -> PlainJobs:
    """Return the jobs of an instance as columns."""
    return PlainJobs.of(instance.plain["jobs"])


UNCHANGED = Change()


def _resized(servers: Sequence[ServerGroup], pool: str, gpus: int) -> Iterator[ServerGroup]:
    """Yield the servers of a cluster whose pool has more GPUs, on a server of their own, or fewer on its first ones."""
    taken, gone = {group.name for group in servers}, max(0, -gpus)
    for group in servers:
        fewer = min(gone, group.count * group.gpus) if group.gpu_type == pool else 0
        gone -= fewer
        whole, part = divmod(fewer, group.gpus) if fewer else (0, 0)
        if part:
            name = next(one for one in _names(f"{group.name} reduced") if one not in taken)
            yield group.model_copy(update={"name": name, "count": 1, "gpus": group.gpus - part})
        if rest := group.count - whole - bool(part):
            yield group.model_copy(update={"count": rest})
    if gpus > 0:
        name = next(one for one in _names(f"{pool} added") if one not in taken)
        yield ServerGroup(name=name, count=1, gpu_type=pool, gpus=gpus)


def _names(name: str) -> Iterator[str]:
    """Yield a name, and then others that begin with it."""
    start = name[: LONGEST - 10]
    yield from itertools.chain([start], (f"{start} {i}" for i in itertools.count(2)))


def _merged(cluster: Cluster, pools: Sequence[str], name: str) -> Cluster:
    """Return a cluster in which some pools are one."""
    types = dict.fromkeys(name if one.name in pools else one.name for one in cluster.gpu_types)
    known = {one.name: one for one in cluster.gpu_types}
    servers = (
        group.model_copy(update={"gpu_type": name}) if group.gpu_type in pools else group for group in cluster.servers
    )
    kinds = tuple(known.get(one) or GpuType(name=one) for one in types)
    return cluster.model_copy(update={"gpu_types": kinds, "servers": tuple(servers)})


def _moved(columns: Mapping[str, Column], pools: Sequence[str], name: str) -> dict[str, Column]:
    """Return the columns of jobs that change when some pools become one."""
    types = [name if kind in pools else kind for kind in columns[GPU_TYPE]]
    rates = columns.get("rates", [None] * len(types))
    once = {id(one): {name if kind in pools else kind: rate for kind, rate in one.items()} for one in rates if one}
    return {GPU_TYPE: types, "rates": [one and once[id(one)] for one in rates]}


MOST_POOLS = 4
"""Most pools that get more or fewer GPUs, and most pairs of pools that become one: those with the most waiting."""


def of_cluster(instance: Instance, waiting: Mapping[str, float]) -> list[Change]:
    """Return the changes of a log's cluster, by pool: those in which jobs waited longest, at most :data:`MOST_POOLS`.

    `waiting` has the hours of waiting by pool.
    """
    pools = sorted({*columns_of(instance).texts(GPU_TYPE)} - {None}, key=lambda pool: (-waiting.get(pool, 0.0), pool))
    changes = []
    for pool in pools[:MOST_POOLS]:
        changes += [Change(pool, 1), Change(pool, -1)]
        sizes = Counter[int]()
        for group in instance.cluster.servers:
            if group.gpu_type == pool and group.name != pool:  # else it holds the GPUs of servers that are not known
                sizes[group.gpus] += group.count
        changes += [Change(pool, size, server=True) for size, _ in sizes.most_common(1) if size > 1]
    return [*changes, *_mergers(pools, instance)]


def _mergers(pools: Sequence[str], instance: Instance) -> Iterator[Change]:
    """Yield the changes that make one pool of several partitions of a type: pairs, and all if there are more than two.

    If jobs may move to other types, partitions stay apart: a job's duration would depend on where it runs.
    """
    if any(columns_of(instance).texts(ELSEWHERE)):
        return
    by_type: dict[str, list[str]] = {}
    for pool in pools:
        by_type.setdefault(pool.partition("@")[0], []).append(pool)
    for alike in by_type.values():
        if len(alike) > 2:
            yield Change(merged=tuple(alike))
    pairs = (pair for alike in by_type.values() for pair in itertools.combinations(alike, 2))
    yield from (Change(merged=pair) for pair in itertools.islice(pairs, MOST_POOLS))

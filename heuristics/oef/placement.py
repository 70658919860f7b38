"""Placement of a tenant's whole devices on its jobs, and of jobs on hosts (OEF §4.3, §4.4, §6.1.3).

Three steps: which jobs of a tenant run (:func:`round_robin`), on which types (:func:`by_type`), on which
servers (:func:`on_hosts`). ``packed`` is OEF's placer: large jobs first, on one type and on one host where
possible. Without it jobs take devices in the order in which they come, as the paper describes its baselines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.instances.arrays import Array, Ints

Request = tuple[int, int, int]
"""``(job, type, devices)``."""


def round_robin(row: Ints, gpus: Ints, starved: Ints, arrival_s: Array, devices: Ints) -> list[int]:
    """Return the jobs that run, longest starved first, then earliest arrival, then index.

    Parameters
    ----------
    row, gpus, starved, arrival_s
        ``(a,)`` virtual tenant, gang, rounds of waiting and arrival of each job.
    devices
        ``(v,)`` devices of each virtual tenant, of all types together.

    Returns
    -------
    list of int
        Positions in the arrays, in the order of choice; a job that does not fit any more is passed over.
    """
    order = np.lexsort((arrival_s, -starved, row))
    left, rows, widths = devices.tolist(), row.tolist(), gpus.tolist()
    chosen = []
    for job in order.tolist():
        if widths[job] <= left[rows[job]]:
            left[rows[job]] -= widths[job]
            chosen.append(job)
    return chosen


def by_type(chosen: Sequence[int], row: Ints, gpus: Ints, devices: Ints, packed: bool) -> list[Request]:
    """Return how many devices of which type each chosen job takes from its tenant's.

    Parameters
    ----------
    chosen
        Positions of the jobs in `row` and `gpus` ``(a,)``.
    devices
        ``(v, k)`` devices of each virtual tenant.
    packed
        Large jobs first, each on the type whose devices it uses up best (the faster one where two are equal),
        and on several types only where no single one has enough. Otherwise slowest devices first, in order of
        choice.
    """
    left = devices.tolist()
    rows, widths = row.tolist(), gpus.tolist()
    requests: list[Request] = []
    for job in sorted(chosen, key=lambda job: -widths[job]) if packed else chosen:
        have, wanted = left[rows[job]], widths[job]
        for kind in _types(have, wanted) if packed else range(len(have)):
            taken = min(have[kind], wanted)
            if taken:
                requests.append((job, kind, taken))
                have[kind] -= taken
                wanted -= taken
    return requests


def _types(have: list[int], wanted: int) -> list[int]:
    """Return the types to take `wanted` devices from: the tightest single one, or the fullest first."""
    enough = [kind for kind, devices in enumerate(have) if devices >= wanted]
    if enough:
        return [min(enough, key=lambda kind: (have[kind], -kind))]
    return sorted(range(len(have)), key=lambda kind: (-have[kind], -kind))


def on_hosts(requests: Sequence[Request], gpus: Ints, host_type: Ints, packed: bool) -> list[Request]:
    """Return ``(job, server, devices)`` for all requests.

    Parameters
    ----------
    requests
        Devices by job and type; they fit.
    gpus, host_type
        ``(h,)`` devices and type of each server.
    packed
        Largest request first, on the fullest host that has enough; over several hosts, the emptiest first,
        only where none has. Otherwise first fit in the order of `requests`, over as many hosts as it takes.
    """
    free = gpus.copy()
    hosts = [np.flatnonzero(host_type == kind) for kind in range(int(host_type.max()) + 1)]
    placed: list[Request] = []
    for job, kind, wanted in sorted(requests, key=lambda r: (-r[2], r[0])) if packed else requests:
        missing = wanted
        for server in (_best_fit(hosts[kind], free, wanted) if packed else hosts[kind]).tolist():
            taken = min(int(free[server]), missing)
            if taken:
                placed.append((job, server, taken))
                free[server] -= taken
                missing -= taken
            if not missing:
                break
    return placed


def _best_fit(hosts: Ints, free: Ints, wanted: int) -> Ints:
    """Return the fullest host with enough free devices, or all of them, the emptiest first."""
    enough = hosts[free[hosts] >= wanted]
    if enough.size:
        return enough[[int(np.argmin(free[enough]))]]
    return np.asarray(hosts[np.argsort(-free[hosts], kind="stable")])

"""The decision about elastic jobs."""

from __future__ import annotations

from dataclasses import dataclass

from schedgap.instances.arrays import Ints


@dataclass(frozen=True, eq=False)
class Runs:
    """``a`` uninterrupted runs of jobs, and ``e`` entries that say where their workers and parameter servers are.

    Attributes
    ----------
    job, start, slots
        ``(a,)`` index of the job, first slot, number of slots: run i holds its servers in slots
        ``start[i] … start[i] + slots[i] − 1``. A job that is never interrupted has one run.
    worker_type, ps_type
        ``(a,)`` types; the PS type of a ring is −1.
    run, server
        ``(e,)`` index of the run and of the server; each pair at most once.
    workers, ps
        ``(e,)`` workers and parameter servers of the run on that server, not both 0.
    """

    job: Ints
    start: Ints
    slots: Ints
    worker_type: Ints
    ps_type: Ints
    run: Ints
    server: Ints
    workers: Ints
    ps: Ints

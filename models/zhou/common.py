"""What Zhou's exact models share: choices of jobs, the last slot that they need, and limits of size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from schedgap.instances.arrays import Bools, Ints, members
from schedgap.instances.elastic import Options
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.views.zhou import Architecture, View
from schedgap.models.elastic import starts

MOST = 250_000
"""Choices times servers beyond which no MILP over all choices is built: Pyomo would need many gigabytes."""

CELLS = 10_000_000
"""Resources of servers in slots beyond which no table of them is made: it would take gigabytes."""

TINY = "gen/20jobs?jobs=3"
"""Three jobs on the servers of gen/20jobs; with PSs the monolithic models have thousands of rows even here."""

TINIER = "gen/20jobs?jobs=2&servers_per_type=1&slot_s=21600"


def skip(name: str) -> Callable[[View], str | None]:
    """Return the function that says why models of an architecture cannot run on a view."""
    return lambda view: view.architectures[name].reason


def horizon(a: Architecture) -> int:
    """Return a slot such that some optimal schedule of all jobs completes by its beginning.

    It is A + Σ d_j: the last arrival, and every job's shortest duration. Take an optimal schedule, jobs numbered by
    completion, and let D_l be the sum of the first l durations d. If its last completion is after A + D_n, let i be the
    smallest number from which on every c_l > A + D_l. Jobs before i complete by A + D_{i − 1} (c_{i − 1} is at most
    that, or there are none). Run the others one by one, each alone and at its fastest, from A + D_{i − 1} on: all have
    arrived, each fits, and c_l = A + D_l is less than before. With weights of 0 or more that is no worse.
    """
    return int(a.arrival.max() + a.options.shortest.sum())


def refuse_huge(a: Architecture, *, choices: int = 0, end: int = 0) -> None:
    """Refuse a MILP over so many choices, or tables of what is free in every slot up to `end`, where it is huge.

    Raises
    ------
    NotApplicableError
        If there are more than :data:`MOST` choices times servers, or :data:`CELLS` resources of servers in slots.
    """
    for size, most, what in (
        (choices * a.machines.size, MOST, "choices times servers"),
        (a.machines.capacity.size * end, CELLS, "resources of servers in slots"),
    ):
        if size > most:
            raise NotApplicableError(f"{size:,} {what}, more than {most:,}")


@dataclass(frozen=True, eq=False)
class Choices:
    """``c`` choices of jobs: an option (its PS type is −1 in a ring) and when it starts."""

    job: Ints
    start: Ints
    slots: Ints
    worker_type: Ints
    ps_type: Ints
    workers: Ints
    together: Bools

    @property
    def size(self) -> int:
        """Number of choices."""
        return len(self.job)

    def take(self, which: Ints) -> Choices:
        """Return the choices of those indices."""
        return Choices(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


def choices(options: Options, earliest: Ints, end: int) -> Choices:
    """Return all choices of jobs, from slots `earliest` ``(n,)`` on, that complete by the beginning of slot `end`."""
    which, later = members(starts(options, earliest, end))
    job = options.job[which]
    same = ("slots", "worker_type", "ps_type", "workers", "together")
    return Choices(job=job, start=earliest[job] + later, **{name: getattr(options, name)[which] for name in same})

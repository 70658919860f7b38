"""Shared parts of Zhou's exact models: choices of jobs, a horizon that contains an optimum, and size limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from schedgap.instances.arrays import Bools, Ints, members
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.moldable import RunOptions
from schedgap.instances.views.zhou import Architecture, ZhouView
from schedgap.models.engine.moldable import starts

MOST = 250_000
"""Largest product of choices and servers for a MILP over all choices; above it, Pyomo needs many gigabytes."""

CELLS = 10_000_000
"""Largest table of resources by server and slot; a larger one would take gigabytes."""

TINY = "gen/20jobs?jobs=3"
"""Three jobs on the servers of gen/20jobs; with PSs the monolithic models have thousands of rows even here."""

TINIER = "gen/20jobs?jobs=2&servers_per_type=1&slot_s=21600"


def skip(name: str) -> Callable[[ZhouView], str | None]:
    """Return a function that gives the reason why models of an architecture cannot run on a view, or ``None``."""
    return lambda view: view.architectures[name].reason


def horizon(a: Architecture) -> int:
    """Return a slot by whose beginning some optimal schedule of all jobs completes.

    It is A + Σ d_j: the last arrival plus every job's shortest duration. Take an optimal schedule, number the jobs by
    completion, and let D_l be the sum of the first l durations d. If its last completion is after A + D_n, let i be the
    smallest number such that c_l > A + D_l for all l ≥ i. Jobs before i complete by A + D_{i − 1} (c_{i − 1} is at most
    that, or there are none). Run the others one by one, each alone and at its fastest, from A + D_{i − 1} on: all have
    arrived, each fits, and c_l = A + D_l is earlier than before. Since weights are nonnegative, that is no worse.
    """
    return int(a.arrival.max() + a.options.shortest.sum())


def refuse_huge(a: Architecture, *, choices: int = 0, end: int = 0) -> None:
    """Raise an error if a MILP over so many choices, or a table of free resources up to slot `end`, is too large.

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
class StartChoices:
    """The ``c`` ways to start jobs: job, types (PS type −1 in a ring), workers, layout and duration, and the start."""

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

    def take(self, which: Ints) -> StartChoices:
        """Return the choices with the indices `which`."""
        return StartChoices(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


def choices(options: RunOptions, earliest: Ints, end: int) -> StartChoices:
    """Return all choices that start in slots `earliest` ``(n,)`` or later and complete by the beginning of `end`."""
    which, later = members(starts(options, earliest, end))
    job = options.job[which]
    same = ("slots", "worker_type", "ps_type", "workers", "together")
    return StartChoices(job=job, start=earliest[job] + later, **{name: getattr(options, name)[which] for name in same})

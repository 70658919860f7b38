"""Checker for Hadar's schedules: gangs, copies, capacity, arrivals, work; and the utility of what completes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec
from schedgap.instances.views.hadar import COMPLETE, FORKED, Schedule, View

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

SHORTFALL = 1e-8
"""Relative work that may be missing: ten times what views and models round (:data:`.ROUNDING`)."""

FIELDS = ("job", "slot", "server", "gpus")


@dataclass(frozen=True, eq=False)
class Done:
    """What a well-formed schedule does for each job.

    Attributes
    ----------
    last
        ``(n,)`` last slot of each job, −1 where it does not appear.
    work
        ``(n,)`` iterations done.
    """

    last: Ints
    work: Array

    @property
    def appears(self) -> NDArray[np.bool_]:
        """Which jobs appear."""
        return self.last >= 0


def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Re-check a schedule against a view.

    Parameters
    ----------
    view, decision
        What was to be decided, and the decision.
    problem
        Copies may run on their own in ``hadar.forked``; gangs run whole in the others, and every job completes in
        ``hadar.complete``.
    claims
        None are known.
    """
    table, malformed = entries(view, decision)
    if malformed:
        return Verdict(None, malformed)
    if problem == FORKED.id:
        violations, done = copies(view, table)
    else:
        violations, done = gangs(view, table)
    violations = [*shared(view, table), *violations, *unfinished(view, done)]
    if problem == COMPLETE.id:
        violations += missing(view, done)
    objective = float(utilities(view, done).sum())
    return Verdict(objective, tuple(violations), *_measured(view, table, done, objective))


def entries(view: View, decision: Schedule) -> tuple[Ints, tuple[str, ...]]:
    """Return the ``(entries, 4)`` table of job, slot, server and GPUs, or one line that says what is malformed."""
    columns = [np.asarray(getattr(decision, name)) for name in FIELDS]
    empty = np.zeros((0, 4), np.int64)
    for name, column in zip(FIELDS, columns, strict=True):
        if column.ndim != 1 or column.dtype.kind not in "iu":
            return empty, (f"{name}: a list of whole numbers, not {column.dtype} of shape {column.shape}",)
        if len(column) != len(columns[0]):
            return empty, (f"{name}: {len(column)} entries, {FIELDS[0]} has {len(columns[0])}",)
    table = np.column_stack([column.astype(np.int64) for column in columns])
    sizes = (view.size, view.slots, view.servers.size)
    for name, column, size in zip(FIELDS, table.T, sizes, strict=False):
        if len(column) and not 0 <= column.min() <= column.max() < size:
            wrong = column[(column < 0) | (column >= size)][0]
            return empty, (f"{name} {wrong}: they are numbered from 0 to {size - 1}",)
    odd = np.flatnonzero((table[:, 3] < 1) | (table[:, 3] > view.servers.gpus[table[:, 2]]))
    if odd.size:
        job, slot, server, gpus = table[odd[0]].tolist()
        return empty, (
            f"{_at(view, job, slot)}: {gpus} GPUs of server {view.servers.names[server]},"
            f" an entry has 1 to {view.servers.gpus[server]}",
        )
    return table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))], ()


def shared(view: View, table: Ints) -> Iterator[str]:
    """Yield a line for a repeated entry, a server beyond its GPUs, and a job that runs before its arrival."""
    job, slot, server, gpus = table.T
    again = np.flatnonzero((table[1:, :3] == table[:-1, :3]).all(axis=1))
    if again.size:
        j, t, h, _ = table[again[0]].tolist()
        yield f"{_at(view, j, t)}: server {view.servers.names[h]} occurs twice"
    cells, cell = np.unique(slot * view.servers.size + server, return_inverse=True)
    used = np.bincount(cell, gpus, len(cells))
    over = np.flatnonzero(used > view.servers.gpus[cells % view.servers.size])
    if over.size:
        t, h = divmod(int(cells[over[0]]), view.servers.size)
        name, available = view.servers.names[h], view.servers.gpus[h]
        yield f"slot {t}: {used[over[0]]:g} GPUs of server {name} given out, {available} available"
    early = np.flatnonzero(slot < view.arrival[job])
    if early.size:
        j, t = int(job[early[0]]), int(slot[early[0]])
        yield f"{_at(view, j, t)}: runs before its arrival in slot {view.arrival[j]}"


def gangs(view: View, table: Ints) -> tuple[list[str], Done]:
    """Return what gangs do: in each slot all GPUs of a job at the rate of its slowest type, or none."""
    job, slot, server, gpus = table.T
    first = np.flatnonzero((np.diff(job, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0))
    if not first.size:
        return [], _done(view, job, slot, np.zeros(0))
    rate = np.minimum.reduceat(view.workload.rates[job, view.servers.gpu_type[server]], first)
    width = np.add.reduceat(gpus, first)
    job, slot = job[first], slot[first]
    wanted = view.workload.gpus[job]
    lines = [
        f"{_at(view, job[i], slot[i])}: {width[i]} GPUs, its gang is all {wanted[i]} or none"
        for i in np.flatnonzero(width != wanted)[:1]
    ]
    return lines + unable(view, job, slot, rate), _done(view, job, slot, wanted * rate * view.slot_s)


def copies(view: View, table: Ints) -> tuple[list[str], Done]:
    """Return what copies do: each entry is one, of at most a gang's GPUs, that advances on its own."""
    job, slot, server, gpus = table.T
    rate = view.workload.rates[job, view.servers.gpu_type[server]]
    most = view.workload.gpus[job]
    lines = [
        f"{_at(view, job[i], slot[i])}: a copy of {gpus[i]} GPUs, its gang has {most[i]}"
        for i in np.flatnonzero(gpus > most)[:1]
    ]
    return lines + unable(view, job, slot, rate), _done(view, job, slot, gpus * rate * view.slot_s)


def unable(view: View, job: Ints, slot: Ints, rate: Array) -> list[str]:
    """Return a line where a job holds GPUs on which its rate is 0."""
    return [f"{_at(view, job[i], slot[i])}: holds GPUs that it cannot run on" for i in np.flatnonzero(rate <= 0)[:1]]


def _done(view: View, job: Ints, slot: Ints, iterations: Array) -> Done:
    last = np.full(view.size, -1, np.int64)
    np.maximum.at(last, job, slot)
    return Done(last, np.bincount(job, iterations, view.size).astype(float))


def unfinished(view: View, done: Done) -> Iterator[str]:
    """Yield a line for a job that appears and does not complete."""
    short = np.flatnonzero(done.appears & (done.work < view.workload.work * (1 - SHORTFALL)))
    if short.size:
        j = int(short[0])
        name, asked = view.workload.ids[j], view.workload.work[j]
        more = f" ({len(short)} jobs fall short)" if len(short) > 1 else ""
        yield f"{name} does {done.work[j]:.9g} of its {asked:.9g} iterations; a job that appears completes{more}"


def missing(view: View, done: Done) -> Iterator[str]:
    """Yield a line where a job does not appear."""
    absent = np.flatnonzero(~done.appears)
    if absent.size:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        yield f"{view.workload.ids[int(absent[0])]} is rejected{more}, but every job completes here"


def utilities(view: View, done: Done) -> Array:
    """Return ``(n,)`` utilities of completing at the end of the last slot; 0 for jobs that do not appear."""
    worth = np.zeros(view.size)
    jobs = np.flatnonzero(done.appears)
    slots = np.maximum(done.last[jobs] - view.arrival[jobs] + 1, 1)
    worth[jobs] = view.utilities.value(jobs, slots * view.slot_s)
    return worth


def _measured(
    view: View, table: Ints, done: Done, objective: float
) -> tuple[dict[str, float | int | bool], dict[str, object]]:
    """Return metrics and quantities.

    What Figure 1 calls CRU counts GPUs (26 of 30 GPU rounds are its 87 %, 28 of 36 its 78 %), so it is the GRU;
    HadarE's counts servers, the share of busy ones.
    """
    completed = int(done.appears.sum())
    completion = np.where(done.appears, done.last - view.arrival + 1, 0)
    ttd = max(int(done.last.max()) + 1 - int(view.arrival.min()), 0)
    metrics: dict[str, float | int | bool] = {
        "completed": completed,
        "rejected": view.size - completed,
        "ttd_rounds": ttd,
    }
    quantities: dict[str, object] = {"ttd_rounds": ttd, "completion_slots": completion, "objective": objective}
    if completed and ttd:
        _, slot, server, gpus = table.T
        busy = len(np.unique(slot * view.servers.size + server))
        metrics["mean_completion_slots"] = float(completion[done.appears].mean())
        metrics["gru"] = float(gpus.sum() / (view.servers.gpus.sum() * ttd))
        metrics["busy_servers"] = busy / (view.servers.size * ttd)
    return metrics, quantities


def _at(view: View, job: int, slot: int) -> str:
    return f"{view.workload.ids[job]} in slot {slot}"


QUANTITIES = (
    *("completed", "rejected", "ttd_rounds", "mean_completion_slots", "gru", "busy_servers"),
    "completion_slots",
)

VERIFIERS.register(VerifierSpec("hadar", check, lambda problem: QUANTITIES))

"""Report of a log: the executed schedule against the best one found and the bound, and why jobs waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from schedgap.harness.check.rigid import metric
from schedgap.harness.show.measures import LOG, STARTS, WAITING
from schedgap.harness.show.page.columns import columns
from schedgap.harness.show.table import Column, Table, table
from schedgap.harness.show.text import clean, number, percent
from schedgap.harness.show.text import ratio as shown_ratio
from schedgap.harness.show.waiting import StartDecision, Why
from schedgap.harness.studies.compare.row import Comparison, Row, ratio
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES

WORDS = {
    "flow": "mean completion time",
    "slowdown": "mean bounded slowdown",
    "weighted": "weighted mean completion time",
    "makespan": "makespan",
    "idle": "GPU-hours idle while a job waited",
}
UNITS = {name: "" if unit == "1" else f" {unit}" for name, (_, unit, *_) in OBJECTIVES.items()}
NAMES = {
    "rigid.fcfs": "first come, first served",
    "rigid.easy": "with EASY backfilling",
    "rigid.conservative": "with conservative backfilling",
    "rigid.srtf": "SRTF",
}
EXECUTED = ("rigid.executed", "rigid.interrupted")


@dataclass(frozen=True)
class Measured:
    """Values of one objective: as executed, the best found without interruptions, and the bound, with their methods."""

    objective: str
    executed: float | None
    best: float | None
    best_by: str
    bound: float | None
    bound_by: str

    @property
    def words(self) -> str:
        """The objective in words, with its unit unless the words already contain it (GPU-hours)."""
        unit = "" if self.objective == "idle" else UNITS[self.objective].strip()
        return WORDS[self.objective] + (f" [{unit}]" if unit else "")

    @property
    def at_most(self) -> float | None:
        """Upper estimate of the ratio of the executed schedule to the optimum."""
        if self.executed is None or self.bound is None:
            return None
        return ratio("min", self.executed, self.bound)


def executed(rows: Sequence[Row]) -> Row | None:
    """Return the row of the executed schedule, if it is verified."""
    return next((row for row in rows if base_id(row.method) in EXECUTED and row.verified), None)


def measures(rows: Sequence[Row]) -> list[Measured]:
    """Return the values of each objective."""
    ran, measured = executed(rows), []
    decided = [row for row in rows if row.verified and not row.problem.endswith(".preemptive")]
    for objective in OBJECTIVES:
        name, problem = metric(objective), f"rigid.{objective}"
        values = [(float(row.metrics[name] or 0.0), clean(row.method, 60)) for row in decided if name in row.metrics]
        # A bound on schedules without interruptions says nothing about an executed schedule that has some.
        problems = {f"{problem}.preemptive"} | ({problem} if ran is None or ran.method != EXECUTED[1] else set())
        valid = [row for row in rows if row.verified is not False and row.problem in problems]
        bounds = [(row.own_bound, clean(row.method, 60)) for row in valid if row.own_bound is not None]
        best, bound = min(values, default=(None, "")), max(bounds, default=(None, ""))
        value = ran.metrics.get(name) if ran else None
        measured.append(Measured(objective, None if value is None else float(value), *best, *bound))
    return measured


def answer(run: Comparison, rows: Sequence[Row]) -> str:
    """Return the answer about a log: ratio to the optimum, avoidable waiting, and other schedules; ``""`` if no log."""
    ran = executed(rows)
    if ran is None or len({row.fingerprint for row in rows}) > 1:
        return ""
    objective = ran.problem.split(".")[1]
    values = next(each for each in measures(rows) if each.objective == objective)
    unit = UNITS[objective]
    above = f", at most {shown_ratio(values.at_most, True)[2:]} × the optimum" if values.at_most else ""
    text = f"{WORDS[objective]} as executed {number(values.executed)}{unit}{above}"
    if why := why_of(run, rows):
        # Name the submission times with the most avoidable waiting or, if the log has no clock, the job sizes.
        groups = why.groups(1)
        group = next((each for each in groups if each.by == "submitted"), groups[-1])
        whose = f"submitted on {group.name}" if group.by == "submitted" else f"of size {group.name}"
        most = f"{percent(group.share)} of the avoidable waiting fell on jobs {whose}"
        text += f"; {most if why.avoidable.sum() > 1e-9 else 'no waiting could have been avoided'}"
    others = [
        f"{NAMES[row.method.partition('?')[0]]} {number(row.objective)}{unit}"
        for row in rows
        if row.verified and row.method.partition("?")[0] in NAMES and "estimates" not in row.method
    ]
    best = f"; the best schedule found {number(values.best)}{unit}" if values.best is not None else ""
    return text + (f"; the same jobs {', '.join(others)}" if others else "") + best


def why_of(run: Comparison, rows: Sequence[Row]) -> Why | None:
    """Return how long jobs wait in the executed schedule and in the bound on flow times; None if either is missing."""
    ran = executed(rows)
    source = next((row for row in rows if row.method == "rigid.bound" and row.name in run.prices), None)
    if ran is None or source is None or ran.name not in run.decisions:
        return None
    view = PAPERS.get("rigid").view(run.instances[ran.fingerprint])
    return Why(view, run.decisions[ran.name], run.prices[source.name])


def when(time: int, why: Why) -> str:
    """Return a time in ticks as date and time (UTC), or as hours since the start of a log without dates."""
    began, seconds = why.view.instance.began_s, time * why.view.tick_s
    if began is None:
        return f"{number(seconds / 3600)} h"
    return datetime.fromtimestamp(began + seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def tables(run: Comparison, rows: Sequence[Row]) -> list[Table]:
    """Return three tables about a log: all objectives, waiting by group of jobs, and the most expensive decisions."""
    instance = run.instances.get(rows[0].fingerprint)
    if rows[0].paper != "rigid" or len({row.fingerprint for row in rows}) > 1:
        return []
    if instance is None or not any(job.history for job in instance.jobs):
        return []
    measured = [each for each in measures(rows) if {each.executed, each.best, each.bound} != {None}]
    shown = [table("as executed, the best found, and the bound", SIDE_BY_SIDE, measured)] if measured else []
    why = why_of(run, rows)
    if why is None:
        return shown
    waited, avoidable = float(why.waited.sum()), float(why.avoidable.sum())
    must = max(round(waited - avoidable, 9), 0.0)
    caption = (
        f"waiting: {number(waited)} h in total, of which {number(must)} h unavoidable (also in the bound's"
        f" schedule) and {number(avoidable)} h avoidable; {number(why.fragmentation())} GPU-hours were free while a job"
        " waited that needed no more GPUs than were free"
    )
    shown.append(table(caption, GROUPS, why.groups()))
    if starts := why.decisions():
        caption = "the most expensive decisions: starts while shorter jobs with no more GPUs waited"
        shown.append(table(caption, decisions(why), starts))
    return shown


SIDE_BY_SIDE: tuple[Column[Measured], ...] = columns(
    LOG,
    objective={"text": attrgetter("words")},
    executed={},
    best={},
    bound={},
    at_most={},
    best_by={},
    bound_by={},
)

GROUPS: tuple[Column[Any], ...] = columns(
    WAITING,
    by={},
    name={"text": lambda group: clean(group.name, 40)},
    jobs={},
    waited_h={},
    avoidable_h={},
    share={},
)


def decisions(why: Why) -> tuple[Column[StartDecision], ...]:
    """Return the columns of the table of starts."""
    view = why.view
    hours = view.duration / view.ticks_of_hour
    return columns(
        STARTS,
        job={"text": lambda d: clean(view.instance.jobs[d.job].id, 40)},
        start={"text": lambda d: when(d.start, why)},
        gpus={"of": lambda d: int(view.gpus[d.job])},
        lasted={"of": lambda d: float(hours[d.job])},
        others={},
        cost_h={},
    )

"""Report of a log: the executed schedule against the best one found and the bound, and why jobs waited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

from schedgap.harness.show.ladder import (
    BOUND,
    EXECUTED,
    FOUND,
    LIMITS,
    PERFECT,
    STEPS,
    UNKNOWN,
    WAITING,
    Ladder,
    Rung,
    Values,
    executed,
    ladder,
    schedules,
    values,
)
from schedgap.harness.show.measures import LADDER, LOG, STARTS
from schedgap.harness.show.measures import WAITING as GROUPED
from schedgap.harness.show.page.columns import columns
from schedgap.harness.show.table import Column, Table, table
from schedgap.harness.show.text import clean, number, percent
from schedgap.harness.show.text import ratio as shown_ratio
from schedgap.harness.show.waiting import StartDecision, Why
from schedgap.harness.studies.compare.row import Comparison, Row, ratio
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES
from schedgap.instances.text import counted

WORDS = {
    "flow": "mean completion time",
    "slowdown": "mean bounded slowdown",
    "weighted": "weighted mean completion time",
    "makespan": "makespan",
    "idle": "GPU-hours idle while a job waited",
}
UNITS = {name: "" if unit == "1" else f" {unit}" for name, (_, unit, *_) in OBJECTIVES.items()}
UNITS["waiting"] = " h"
WORDS["waiting"] = "mean waiting"


def answer(run: Comparison, rows: Sequence[Row]) -> str:
    """Return the answer about a log: the ladder, what its steps are, and avoidable waiting; ``""`` if it is no log."""
    ran = executed(rows)
    if ran is None or len({row.fingerprint for row in rows}) > 1:
        return ""
    view, objective = viewed(run, rows), ran.problem.split(".")[1]
    unit = UNITS[objective]
    found, waits = ladder(view, rows, objective), ladder(view, rows, WAITING)
    texts = [f"{WORDS[objective]}, with hindsight (durations and arrivals known), {_hindsight(found, unit)}"]
    texts += [_online(found, unit), _ran(found, unit), _steps(found, unit)]
    texts.append(f"mean waiting: {_chain(waits)}{_open(values(view, rows, WAITING))}")
    if why := why_of(run, rows):
        texts.append(_avoidable(why, values(view, rows, WAITING)))
    return "; ".join(text for text in texts if text)


def _hindsight(found: Ladder, unit: str) -> str:
    bound, best = found.rung(BOUND), found.rung(FOUND)
    parts = [f"is at least {number(bound.value, side='at least')}{unit}"] if bound else []
    parts += [f"{number(best.value)}{unit} in the best schedule found"] if best else []
    return ", and ".join(parts)


def _online(found: Ladder, unit: str) -> str:
    perfect, limits = found.rung(PERFECT), found.rung(LIMITS)
    if perfect is None:
        return ""
    text = f"the best online rule with perfect estimates reaches {number(perfect.value)}{unit} ({perfect.by})"
    if limits is not None:
        lucky = limits.by == perfect.by
        named = ", the same rule" if lucky else f" ({limits.by})"
        return f"{text}, with the users' limits {number(limits.value)}{unit}{named}"
    return f"{text}; there is none with the users' limits: {found.absent}"


def _ran(found: Ladder, unit: str) -> str:
    ran, bound = found.rung(EXECUTED), found.rung(BOUND)
    if ran is None:
        return ""
    factor = ratio("min", ran.value, bound.value) if bound else None
    above = f", at most {shown_ratio(factor, True)[2:]} × the optimum" if factor else ""
    return f"as executed {number(ran.value)}{unit}{above}"


def _steps(found: Ladder, unit: str) -> str:
    """Return the steps of the ladder by name; a negative last one is explained."""
    steps = [f"{rung.step} {number(rung.above)}{unit}" for rung in found.rungs if rung.above is not None]
    last = found.rung(EXECUTED)
    better = last is not None and last.above is not None and last.above < 0 and last.step in {UNKNOWN, STEPS[EXECUTED]}
    return ", ".join(steps) + " (what ran is better than all online rules here)" * better


def _chain(found: Ladder) -> str:
    """Return the values of rungs from the lowest to the executed one, in hours."""
    names = {BOUND: "at least", FOUND: "best found", PERFECT: "perfect estimates", LIMITS: "users' limits"}
    names[EXECUTED] = "executed"
    return ", ".join(f"{names[rung.name]} {height(rung)} h" for rung in found.rungs)


def height(rung: Rung) -> str:
    """Return the value of a rung; a bound is rounded down."""
    return number(rung.value, side="at least" if rung.name == BOUND else "exactly")


def _open(waits: Values) -> str:
    """Return how far the best waiting found is above the least one that is certified."""
    return f" (found at most {shown_ratio(waits.open, True)[2:]} × the bound)" if waits.open else ""


def _avoidable(why: Why, waits: Values) -> str:
    """Return how much waiting was avoidable, from both sides, and on whose jobs the best schedule saves it."""
    total, low, high = avoidable(why, waits)
    if total <= 0:
        return "no job waited"
    text = f"of {number(total)} h of waiting {between_hours(low, high)} were avoidable"
    if low <= 0:
        return text
    # Name the submission times of which most is saved or, if the log has no clock, the job sizes.
    groups = why.groups(1)
    group = next((each for each in groups if each.by == "submitted"), groups[-1])
    whose = f"submitted on {group.name}" if group.by == "submitted" else f"of size {group.name}"
    return f"{text}, {percent(group.share)} of what the best schedule found saves on jobs {whose}"


def avoidable(why: Why, waits: Values) -> tuple[float, float, float]:
    """Return the hours waited, and the least and most of them that were avoidable.

    At least what the best schedule found saves, at most what the best bound allows.
    """
    total, jobs = float(why.waited.sum()), why.view.size
    high = total if waits.bound is None else min(max(total - waits.bound * jobs, 0.0), total)
    return total, min(max(float(why.saved.sum()), 0.0), high), high


def between_hours(low: float, high: float) -> str:
    """Return a range of hours in words, or a single number if both ends print alike."""
    least, most = number(low, side="at least"), number(high, side="at most")
    return f"{number(low)} h" if number(low) == number(high) else f"between {least} h and {most} h"


def viewed(run: Comparison, rows: Sequence[Row]) -> Any:
    """Return the view of the log that rows are about."""
    return PAPERS.get("rigid").view(run.instances[rows[0].fingerprint])


def why_of(run: Comparison, rows: Sequence[Row]) -> Why | None:
    """Return how long jobs wait as executed, in the best schedule found and in the bound; None if one is missing."""
    ran = executed(rows)
    source = next((row for row in rows if row.method == "rigid.bound" and row.name in run.prices), None)
    decided = [(value, i) for i, (value, row) in enumerate(schedules(rows, WAITING)) if row.name in run.decisions]
    if ran is None or source is None or not decided or ran.name not in run.decisions:
        return None
    best = schedules(rows, WAITING)[min(decided)[1]][1]
    return Why(viewed(run, rows), run.decisions[ran.name], run.prices[source.name], run.decisions[best.name])


def when(time: int, why: Why) -> str:
    """Return a time in ticks as date and time (UTC), or as hours since the start of a log without dates."""
    began, seconds = why.view.instance.began_s, time * why.view.tick_s
    if began is None:
        return f"{number(seconds / 3600)} h"
    return datetime.fromtimestamp(began + seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def tables(run: Comparison, rows: Sequence[Row]) -> list[Table]:
    """Return tables about a log: the ladder, all objectives, waiting by group of jobs, the most expensive decisions."""
    instance = run.instances.get(rows[0].fingerprint)
    if rows[0].paper != "rigid" or len({row.fingerprint for row in rows}) > 1:
        return []
    if instance is None or not any(job.history for job in instance.jobs):
        return []
    view, ran = viewed(run, rows), executed(rows)
    shown = []
    if ran is not None:
        objective = ran.problem.split(".")[1]
        found = ladder(view, rows, objective)
        absent = f"; no rung of the users' limits: {found.absent}" if found.absent else limits_noted(view)
        caption = f"the ladder of {words(objective)}, from what nobody can beat to what was executed{absent}"
        shown.append(table(caption, LADDER_COLUMNS, both(found, ladder(view, rows, WAITING))))
    measured = [values(view, rows, objective) for objective in (*OBJECTIVES, WAITING)]
    measured = [each for each in measured if {each.executed, each.best, each.bound} != {None}]
    if measured:
        shown.append(table("as executed, the best found, and the bound", SIDE_BY_SIDE, measured))
    why = why_of(run, rows)
    if why is None:
        return shown
    total, low, high = avoidable(why, values(view, rows, WAITING))
    slower = " (with the time that slower types cost)" * (view.moves is not None)
    caption = (
        f"waiting{slower}: {number(total)} h in total, of which {between_hours(low, high)} avoidable: the best schedule"
        f" found saves {number(low)} h, and the bound allows {number(high, side='at most')} h at most. Both are about"
        " all jobs together; a group's part is its part in that schedule, and an indication by rigid.bound;"
        f" {number(why.fragmentation())} GPU-hours were free while a job waited that needed no more GPUs than were free"
    )
    shown.append(table(caption, GROUPS, why.groups()))
    if starts := why.decisions():
        caption = "the most expensive decisions: starts while shorter jobs with no more GPUs waited"
        shown.append(table(caption, decisions(why), starts))
    return shown


def words(objective: str) -> str:
    """Return an objective in words, with its unit unless the words already contain it (GPU-hours)."""
    unit = "" if objective == "idle" else UNITS[objective].strip()
    return WORDS[objective] + (f" [{unit}]" if unit else "")


def limits_noted(view: Any) -> str:
    """Return what to know about the users' time limits: how many jobs have none, or ran for longer."""
    without, notes = view.size - view.asked, []
    if without:
        notes.append(f"{counted(without, 'job has', 'jobs have')} no time limit: their run times count as limits")
    if view.overran:
        notes.append(f"{counted(view.overran, 'job', 'jobs')} ran for longer than their limit, which is raised to that")
    return f"; {'; '.join(notes)}" if notes else ""


class BothRungs(NamedTuple):
    """A rung of a ladder, and the same rung of the mean waiting."""

    own: Rung
    waiting: Rung


def both(found: Ladder, waits: Ladder) -> list[BothRungs]:
    """Return the rungs of a ladder with those of the mean waiting, which has the same unless a bound is missing."""
    return [BothRungs(one, waits.rung(one.name) or Rung(one.name, math.nan, "")) for one in found.rungs]


LADDER_COLUMNS: tuple[Column[BothRungs], ...] = columns(
    LADDER,
    rung={"of": attrgetter("own.name")},
    value={"of": attrgetter("own.value"), "text": lambda each: height(each.own)},
    waiting_h={"of": attrgetter("waiting.value"), "text": lambda each: height(each.waiting)},
    above={"of": attrgetter("own.above")},
    step={"of": attrgetter("own.step")},
    by={"of": attrgetter("own.by")},
)

SIDE_BY_SIDE: tuple[Column[Values], ...] = columns(
    LOG,
    objective={"text": lambda each: words(each.objective)},
    executed={},
    best={},
    bound={},
    at_most={},
    open={},
    best_by={},
    bound_by={},
)

GROUPS: tuple[Column[Any], ...] = columns(
    GROUPED,
    by={},
    name={"text": lambda group: clean(group.name, 40)},
    jobs={},
    waited_h={},
    saved_h={},
    share={},
    indicated_h={},
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

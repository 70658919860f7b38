"""Checker for Zhou's schedules: types, work, bandwidth, capacity, windows; and their cost, weight or completion times.

Slots, arrivals, rates, capacities, τ, loads and F are read from the instance
(:mod:`schedgap.certificates.reading.zhou`).
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.certificates.reading.zhou import RawArchitecture, Zhou, zhou_of
from schedgap.harness.check import moldable
from schedgap.harness.check.moldable import AT, PlannedRuns
from schedgap.harness.check.registry import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.check.rules import EXCESS, LARGEST, Range, Rows, overlaps, refuse, refusing, well_formed
from schedgap.instances.views.zhou import ZhouSchedule

WINDOWS: dict[str, Range] = dict.fromkeys(("window_start", "window_slots", "window_rounds", "window_tau"), (1, LARGEST))

IDLE = 10
"""A schedule without windows ends within this multiple of the last arrival plus the slots of all runs. In a longer one,
all servers idle while jobs wait: a slot must be wrong."""


@refusing
def check(facts: Zhou, decision: ZhouSchedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check a schedule of moldable jobs.

    Problems are ``zhou.<ps|ra>.`` and one of ``completion`` (every job has one run), ``preemptive`` (or several),
    ``weight`` (jobs run from slot 1 on and complete by τ, or not at all) and ``cost`` (the heaviest job runs next to
    the loads, by τ). A claim ``restarts_take_2_slots`` sets the cost of an interruption.
    """
    _, name, kind = problem.split(".")
    of = facts.architectures[name]
    restart = max((int(claim.split("_")[2]) for claim in claims if claim.startswith("restarts_take_")), default=0)
    plan = PlannedRuns(decision, of, 1, restart)
    twice = AT + "its previous run ends with slot {before}"
    windows = Rows({}, **well_formed(decision, WINDOWS)[0])
    lines = [
        *moldable.placements(plan),
        *moldable.unfinished(plan),
        *(overlaps(plan.runs, twice) if kind == "preemptive" else moldable.several(plan)),
    ]
    if kind in ("completion", "preemptive"):
        absent = plan.jobs.broken(plan.jobs.runs == 0, "{job} does not run{more}, but every job completes here")  # (2a)
        lines += [*moldable.capacity(plan), *absent, *moldable.early(plan, facts.arrival)]
        last = int(plan.runs.end.max(initial=0))
        limit = max(facts.slots, IDLE * (int(facts.arrival.max()) + int(plan.runs.slots.sum())))
        if windows.window_start.size:
            lines += _windows(facts, plan, windows)
        elif last > limit:
            idle = "all servers idle for longer than jobs run"
            lines.append(f"the last run ends before slot {last}: {idle} (limit {limit})")
    else:
        late = plan.runs.end > of.deadline
        lines += plan.runs.broken(late, f"{AT}completes at {{end}}, after τ = {of.deadline}")  # (7b)
        if windows.window_start.size:
            lines.append("windows: only problems with arrivals have them; here all jobs are present at the start")
        lines += moldable.capacity(plan) if kind == "weight" else []
    if kind == "cost":
        return _priced(of, plan, lines)
    return _measured(facts, plan, windows, kind, lines)


# ---------------------------------------------------------------- completion times


def _windows(facts: Zhou, plan: PlannedRuns, windows: Rows) -> list[str]:
    """Check the windows of Algorithm 1, and that each run lies within one round of a window.

    A window has rounds of ``τ_i = 2^(i−1)`` slots and begins at τ_i or later, after the previous window. A window of α
    rounds, some of which are used, begins at ``α·τ_i`` or later; it may be cut short after its last run.
    """
    start, slots, rounds, tau = (vars(windows)[name] for name in WINDOWS)
    made = Rows({}, window=np.arange(start.size), start=start, slots=slots, rounds=rounds, tau=tau)
    made.before, made.above = np.roll(start + slots, 1), np.roll(tau, 1)
    made.before[0], made.above[0] = 1, 0
    used = tau.astype(float) * np.stack((rounds - 1, rounds))  # as integers, these products may overflow
    window = "window {window}: "
    odd = [
        *made.broken(start < made.before, window + "starts in slot {start}, the previous ends before slot {before}"),
        *made.broken(
            (tau & (tau - 1) > 0) | (tau <= made.above) | (tau > start),
            window + "from slot {start}, τ = {tau} is not a power of two above {above} and at most {start}",
        ),
        *made.broken(
            (slots <= used[0]) | (slots > np.maximum(start, used[1])),
            window + "{slots} slots from slot {start} are not α rounds of {tau}, of which {rounds} are used",
        ),
    ]
    if odd:
        return odd
    runs, at = plan.runs, np.searchsorted(start, plan.runs.start, "right") - 1
    begins, tau, rounds = start[at], tau[at], rounds[at]
    outside = (at < 0) | (runs.end > begins + slots[at])
    first, last = (runs.start - begins) // tau, (runs.end - 1 - begins) // tau
    arrival = facts.arrival[runs.job]
    run = f"{AT}its run, up to slot {{last}}, is not within one "
    also = {"last": runs.end - 1, "begins": begins, "rounds": rounds, "tau": tau, "arrival": arrival}
    between = f"{run}of the rounds of {{tau}} slots ({{rounds}} from slot {{begins}})"
    late = f"{AT}arrives in slot {{arrival}}, after its batch was made at τ = {{tau}}"
    return [
        *runs.broken(outside, f"{run}window", **also),
        *runs.broken(~outside & ((first >= rounds) | (first != last)), between, **also),
        *runs.broken(~outside & (arrival > tau), late, **also),
    ]


def _measured(facts: Zhou, plan: PlannedRuns, windows: Rows, kind: str, lines: list[str]) -> Verdict:
    """Return the verdict on completion times or on completed weight; times are in slots.

    ``workers_mean`` is the mean over jobs of each job's mean number of workers over time.
    """
    runs, completion = plan.runs, np.zeros(plan.read.size, np.int64)
    np.maximum.at(completion, runs.job, runs.end)
    done, weights = completion > 0, plan.read.weight
    first = np.ones(plan.read.size, np.int64) if kind == "weight" else facts.arrival
    metrics: dict[str, float | int | bool] = {"completed": int(done.sum())}
    if done.any():
        took, makespan = (completion - first)[done], int(completion.max() - first.min())
        busy = np.bincount(runs.job, runs.slots, plan.read.size)[done]
        held = np.bincount(runs.job, runs.slots * runs.total, plan.read.size)[done]
        gpus = plan.entries.takes[:, 0] @ runs.slots[plan.entries.run]
        metrics |= {
            "mean_completion_slots": float(took.mean()),
            "max_completion_slots": int(took.max()),
            "makespan_slots": makespan,
            "gpu_utilisation": float(gpus / max(plan.read.capacity[:, 0].sum() * makespan, 1e-300)),
            "workers_mean": float((held / busy).mean()),
        }
    if windows.window_start.size and kind != "weight":
        metrics |= {"windows": windows.window_start.size, "realised_alpha": int(windows.window_rounds.max())}
    objective = weights[done].sum() if kind == "weight" else weights @ completion
    return Verdict(float(objective), tuple(lines), metrics, {"completion": completion, **metrics})


def _priced(of: RawArchitecture, plan: PlannedRuns, lines: list[str]) -> Verdict:
    """Return the verdict on the run of the heaviest job on loaded servers; the objective is its cost at prices (11)."""
    runs, entries, wanted = plan.runs, plan.entries, int(of.weight.argmax())
    other = f"the heaviest job runs, {of.ids[wanted]}, and no other"
    refuse(lines if runs.job.tolist() == [wanted] else [*lines, other])
    loads = of.loads(entries.server, int(runs.start[0]), int(runs.end[0]))
    there = of.capacity[entries.server][:, :, None]
    over = (loads + entries.takes[:, :, None] > there * (1 + EXCESS)).any(axis=2)
    free = (there - loads).min(axis=2)
    lines = []
    for r, resource in enumerate(of.hardware.resources):
        text = f"{{taken:.12g}} {resource} of {{server}} taken, {{free:.9g}} available next to the loads"
        lines += entries.broken(over[:, r], text, taken=entries.takes[:, r], free=free[:, r])
    part = np.divide(loads, there, out=np.zeros(loads.shape), where=there > 0)
    price = np.expm1(part * math.log(of.base)).sum(axis=2)
    run = {"start": runs.start, "slots": runs.slots, "workers": runs.total, "servers": runs.hosts}
    metrics = {name: int(column[0]) for name, column in run.items()}
    return Verdict(float((price * entries.takes).sum()), tuple(lines), metrics, metrics)


PLAN = (
    *("completed", "mean_completion_slots", "max_completion_slots", "makespan_slots", "gpu_utilisation"),
    *("workers_mean", "completion"),
)
QUANTITIES = {
    "completion": (*PLAN, "windows", "realised_alpha"),
    "preemptive": PLAN,
    "weight": PLAN,
    "cost": ("start", "slots", "workers", "servers"),
}
"""Metrics and quantities of each kind of problem."""


VERIFIERS.register(VerifierSpec("zhou", zhou_of, check, lambda problem: QUANTITIES[problem.rpartition(".")[2]]))

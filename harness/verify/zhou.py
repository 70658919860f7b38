"""Checker for Zhou's schedules: types, work, bandwidth, capacity, windows; and what they cost, weigh and take.

Rates, capacities and λ are computed again from the instance (:mod:`schedgap.harness.verify.elastic`). Three things of a
view's :class:`~schedgap.instances.views.zhou.Architecture` say which problem is posed, and are taken from there: the
deadline τ, the loads of ``zhou.*.cost``, and F, an optimum itself where the instance does not say it. So are slots and
arrivals.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec, elastic, slotted
from schedgap.harness.verify.elastic import AT, Hardware, Plan
from schedgap.harness.verify.rules import LARGEST, SHORTFALL, Range, Rows, overlaps, refuse, refusing, well_formed
from schedgap.instances.views.zhou import RESOURCES, RESTARTS, Architecture, Schedule, View

WINDOWS: dict[str, Range] = dict.fromkeys(("window_start", "window_slots", "window_rounds", "window_tau"), (1, LARGEST))

IDLE = 10
"""A schedule without windows ends within so many times the last arrival and the slots of all runs together: servers
that all idle while jobs wait for longer are an error in a slot, not a decision."""


@refusing
def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Return the verdict on a schedule.

    Problems are ``zhou.<ps|ra>.`` and one of ``completion`` (every job runs once), ``preemptive`` (in several runs),
    ``weight`` (from slot 1 on, or not at all, until τ) and ``cost`` (the heaviest job runs, until τ, beside the loads).
    A claim of :data:`~schedgap.instances.views.zhou.RESTARTS` is what an interruption costs.
    """
    _, name, kind = problem.split(".")
    instance, of = view.instance, view.architectures[name]
    restart = max((RESTARTS[claim] for claim in claims if claim in RESTARTS), default=0)
    workers, ps = instance.worker_types, () if name == "ra" else instance.ps_types
    parts = instance.cluster.servers, workers, ps
    room, by_worker, by_ps = ([(x.gpus, x.cpus, x.memory_gb, x.bandwidth_gbps) for x in part] for part in parts)
    machines = Hardware(instance, RESOURCES, workers, ps, room, by_worker, by_ps, name == "ra")
    plan = elastic.Plan(decision, machines, view.slot_s, 1, restart)
    twice = AT + "its run before ends with slot {before}"
    windows = Rows({}, **well_formed(decision, WINDOWS)[0])
    lines = [
        *elastic.placements(plan),
        *elastic.unfinished(plan),
        *(overlaps(plan.runs, twice) if kind == "preemptive" else elastic.several(plan)),
    ]
    if kind in ("completion", "preemptive"):
        absent = plan.jobs.broken(plan.jobs.runs == 0, "{job} does not run{more}, but every job completes here")  # (2a)
        lines += [*elastic.capacity(plan), *absent, *elastic.early(plan, view.arrival)]
        last = int(plan.runs.end.max(initial=0))
        limit = max(view.slots, IDLE * (int(view.arrival.max()) + int(plan.runs.slots.sum())))
        if windows.window_start.size:
            lines += _windows(view, plan, windows)
        elif last > limit:
            told = f"the last run ends before slot {last}: all servers idle for longer than jobs run (limit {limit})"
            lines.append(told)
    else:
        late = plan.runs.end > of.deadline
        lines += plan.runs.broken(late, f"{AT}completes at {{end}}, after τ = {of.deadline}")  # (7b)
        if windows.window_start.size:
            lines.append("windows: they are of jobs that come one after another, here all are there")
        lines += elastic.capacity(plan) if kind == "weight" else []
    if kind == "cost":
        return _priced(view, of, plan, lines)
    return _measured(view, plan, windows, kind, lines)


# ---------------------------------------------------------------- completion times


def _windows(view: View, plan: Plan, windows: Rows) -> list[str]:
    """Return what is wrong with windows of Algorithm 1, or which job's run is not within one round of one.

    A window has rounds of ``τ_i = 2^(i−1)`` slots, begins at τ_i or later and after the window before. One of α rounds,
    of which some are used, begins at ``α·τ_i`` or later; it may be cut short after its last run.
    """
    start, slots, rounds, tau = (vars(windows)[name] for name in WINDOWS)
    made = Rows({}, window=np.arange(start.size), start=start, slots=slots, rounds=rounds, tau=tau)
    made.before, made.above = np.roll(start + slots, 1), np.roll(tau, 1)
    made.before[0], made.above[0] = 1, 0
    used = tau.astype(float) * np.stack((rounds - 1, rounds))  # such a product may be beyond all whole numbers
    window = "window {window}: "
    odd = [
        *made.broken(start < made.before, window + "starts in slot {start}, the one before ends before slot {before}"),
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
    arrival = view.arrival[runs.job]
    run = f"{AT}its run, up to slot {{last}}, is not within one "
    also = {"last": runs.end - 1, "begins": begins, "rounds": rounds, "tau": tau, "arrival": arrival}
    between = f"{run}of the rounds of {{tau}} slots ({{rounds}} from slot {{begins}})"
    late = f"{AT}arrives in slot {{arrival}}, after its batch was made at τ = {{tau}}"
    return [
        *runs.broken(outside, f"{run}window", **also),
        *runs.broken(~outside & ((first >= rounds) | (first != last)), between, **also),
        *runs.broken(~outside & (arrival > tau), late, **also),
    ]


def _measured(view: View, plan: Plan, windows: Rows, kind: str, lines: list[str]) -> Verdict:
    """Return the verdict on completion times, or on the weight that completes; times are in slots.

    The number of workers is the mean over jobs, of a job with several runs its mean over time.
    """
    runs, completion = plan.runs, np.zeros(view.size, np.int64)
    np.maximum.at(completion, runs.job, runs.end)
    done, weights = completion > 0, np.array([job.weight for job in view.instance.jobs])
    first = np.ones(view.size, np.int64) if kind == "weight" else view.arrival
    metrics: dict[str, float | int | bool] = {"completed": int(done.sum())}
    if done.any():
        took, makespan = (completion - first)[done], int(completion.max() - first.min())
        busy = np.bincount(runs.job, runs.slots, view.size)[done]
        held = np.bincount(runs.job, runs.slots * runs.total, view.size)[done]
        gpus = plan.entries.takes[:, 0] @ runs.slots[plan.entries.run]
        metrics |= {
            "mean_completion_slots": float(took.mean()),
            "max_completion_slots": int(took.max()),
            "makespan_slots": makespan,
            "gpu_utilisation": float(gpus / max(plan.hardware.capacity[:, 0].sum() * makespan, 1e-300)),
            "workers_mean": float((held / busy).mean()),
        }
    if windows.window_start.size and kind != "weight":
        metrics |= {"windows": windows.window_start.size, "realised_alpha": int(windows.window_rounds.max())}
    objective = weights[done].sum() if kind == "weight" else weights @ completion
    return Verdict(float(objective), tuple(lines), metrics, {"completion": completion, **metrics})


def _priced(view: View, of: Architecture, plan: Plan, lines: list[str]) -> Verdict:
    """Judge the run of the heaviest job in what the loads leave free, at the prices (11) that they make."""
    instance, machines, runs, entries = view.instance, plan.hardware, plan.runs, plan.entries
    wanted = max(range(view.size), key=lambda j: instance.jobs[j].weight)
    other = f"the heaviest job runs, {instance.jobs[wanted].id}, and no other"
    refuse(lines if runs.job.tolist() == [wanted] else [*lines, other])
    loads = of.loads[entries.server][:, :, runs.start[0] - 1 : runs.end[0] - 1]
    there = machines.capacity[entries.server][:, :, None]
    over = (loads + entries.takes[:, :, None] > there * (1 + SHORTFALL)).any(axis=2)
    free = (there - loads).min(axis=2)
    lines = []
    for r, resource in enumerate(RESOURCES):
        told = f"{{taken:.9g}} {resource} of {{server}} taken, {{free:.9g}} available beside the loads"
        lines += entries.broken(over[:, r], told, taken=entries.takes[:, r], free=free[:, r])
    base = 2.0 * view.slots * len(machines.servers) * len(RESOURCES) * of.unit_worth + 1.0
    part = np.divide(loads, there, out=np.zeros(loads.shape), where=there > 0)
    price = np.expm1(part * math.log(base)).sum(axis=2)
    run = {"start": runs.start, "slots": runs.slots, "workers": runs.total, "servers": runs.hosts}
    metrics = {name: int(one[0]) for name, one in run.items()}
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
"""What is measured of decisions of each kind of problem."""


def posed(view: View, problem: str) -> dict[str, int | float]:
    """Return what certificates have of a problem: the length of slots, and those before τ where these alone count."""
    _, name, kind = problem.split(".")
    due = {"slots": view.architectures[name].deadline - 1} if kind in ("weight", "cost") else {}
    return slotted(view, problem) | due


VERIFIERS.register(VerifierSpec("zhou", check, lambda problem: QUANTITIES[problem.rpartition(".")[2]], posed))

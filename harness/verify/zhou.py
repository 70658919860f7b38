"""Checker for Zhou's schedules: types, work, bandwidth, capacity, windows; and what they cost, weigh and take.

Rates, capacities and λ are computed again from the instance (:mod:`schedgap.harness.verify.elastic`). Three things of a
view's :class:`~schedgap.instances.views.zhou.Architecture` say which problem is posed, and are taken from there: the
deadline τ, the loads of ``zhou.*.cost``, and F, an optimum itself where the instance does not say it. So are slots and
arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.verify.elastic import (
    LARGEST,
    SHORTFALL,
    Hardware,
    Plan,
    absent,
    at,
    capacity,
    early,
    expanded,
    malformed,
    outside,
    placements,
    read,
    several,
    suits,
    unfinished,
    uses,
    whole_numbers,
)
from schedgap.instances.schema import Instance
from schedgap.instances.views.zhou import RESOURCES, Architecture, Schedule, View

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

WINDOW_FIELDS = ("window_start", "window_slots", "window_rounds", "window_tau")

IDLE = 10
"""A schedule without windows ends within so many times the last arrival and the slots of all runs together: servers
that all idle while jobs wait for longer are an error in a slot, not a decision."""


def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Re-check a schedule against a view.

    Parameters
    ----------
    view, decision
        What was to be decided, and the decision.
    problem
        ``zhou.<ps|ra>.`` and one of ``completion`` (every job runs once), ``preemptive`` (in several runs), ``weight``
        (from slot 1 on, or not at all, until τ) and ``cost`` (the heaviest job runs, until τ, beside the loads).
    claims
        None are known.
    """
    _, architecture, kind = problem.split(".")
    of = view.architectures[architecture]
    instance = view.instance
    hardware = hardware_of(instance, ring=architecture == "ra")
    wrong = malformed(decision, hardware, view.size, first=1) or _malformed_windows(decision)
    if wrong:
        return Verdict(None, (wrong,))
    plan = read(decision, hardware, instance, view.slot_s)
    windows = np.stack([np.asarray(getattr(decision, name)).astype(np.int64) for name in WINDOW_FIELDS])
    lines = [*placements(plan, hardware, instance), *unfinished(plan, instance)]
    if kind in ("completion", "preemptive"):
        lines += [*capacity(plan, hardware), *absent(plan, instance), *early(plan, view.arrival, instance)]
        lines += _apart(plan, instance) if kind == "preemptive" else several(plan, instance)
        lines += _windows(view, plan, windows) if windows.size else _idle(view, plan)
        return _judged_completion(view, hardware, plan, windows, lines)
    lines += [*several(plan, instance), *_until(plan, of.deadline, instance)]
    if windows.size:
        lines.append("windows: they are of jobs that come one after another, here all are there")
    if kind == "weight":
        return _judged_weight(view, hardware, plan, [*lines, *capacity(plan, hardware)])
    return _judged_cost(view, of, hardware, plan, lines)


def hardware_of(instance: Instance, ring: bool) -> Hardware:
    """Return what the instance says of servers and types; resources are GPUs, CPUs, gigabytes and Gbit/s."""
    names, group = expanded(instance)
    groups, workers = instance.cluster.servers, instance.worker_types
    servers = () if ring else instance.ps_types
    parts = [
        np.array([[x.gpus, x.cpus, x.memory_gb, x.bandwidth_gbps] for x in of], float).reshape(-1, len(RESOURCES))
        for of in (groups, workers, servers)
    ]
    return Hardware(
        servers=names,
        resources=RESOURCES,
        capacity=parts[0][group],
        workers=workers,
        ps=servers,
        worker_takes=parts[1],
        ps_takes=parts[2],
        able=suits(instance, workers, group),
        ring=ring,
    )


def _malformed_windows(decision: Schedule) -> str | None:
    columns = {name: np.asarray(getattr(decision, name)) for name in WINDOW_FIELDS}
    if wrong := whole_numbers(columns):
        return wrong
    lines = (outside(name, column, 1, LARGEST) for name, column in columns.items())
    return next((line for line in lines if line), None)


# ---------------------------------------------------------------- completion times


def _apart(plan: Plan, instance: Instance) -> Iterator[str]:
    """Yield a line where two runs of a job overlap in time."""
    order = np.lexsort((plan.start, plan.job))
    job, start, end = plan.job[order], plan.start[order], plan.end[order]
    both = np.flatnonzero((job[1:] == job[:-1]) & (start[1:] < end[:-1]))
    if both.size:
        i = int(order[both[0] + 1])
        yield f"{at(plan, i, instance)}: its run before ends with slot {end[both[0]] - 1}"


def _idle(view: View, plan: Plan) -> Iterator[str]:
    """Yield a line where a schedule without windows ends much later than one in which some job always runs."""
    last = int(plan.end.max(initial=0))
    limit = max(view.slots, IDLE * (int(view.arrival.max()) + int(plan.slots.sum())))
    if last > limit:
        yield f"the last run ends before slot {last}: all servers idle for longer than jobs run (limit {limit})"


def _windows(view: View, plan: Plan, windows: Ints) -> Iterator[str]:
    """Yield a line where windows are not those of Algorithm 1, and where a job's run is not within one round of one."""
    if wrong := _odd_window(windows):
        yield wrong
        return
    within = np.searchsorted(windows[0], plan.start, "right") - 1
    start, slots, rounds, tau = windows[:, within]
    out = (within < 0) | (plan.end > start + slots)
    if out.any():
        i = int(out.argmax())
        yield f"{at(plan, i, view.instance)}: its run, up to slot {plan.end[i] - 1}, is not within one window"
    first = (plan.start - start) // tau
    across = ~out & ((first >= rounds) | (first != (plan.end - 1 - start) // tau))
    if across.any():
        i = int(across.argmax())
        told = f"rounds of {tau[i]} slots ({rounds[i]} from slot {start[i]})"
        yield f"{at(plan, i, view.instance)}: its run, up to slot {plan.end[i] - 1}, is not within one of the {told}"
    late = ~out & (view.arrival[plan.job] > tau)
    if late.any():
        i = int(late.argmax())
        arrives = view.arrival[plan.job[i]]
        yield f"{at(plan, i, view.instance)}: arrives in slot {arrives}, after its batch was made at τ = {tau[i]}"


def _odd_window(windows: Ints) -> str | None:
    """Say which window is none: rounds of ``τ_i = 2^(i−1)`` slots, from τ_i on and after the window before.

    A window of α rounds, of which some are used, begins at ``α·τ_i`` or later. It may be cut short after its last run.
    """
    last, before = 0, 1
    for w, (start, slots, rounds, tau) in enumerate(windows.T.tolist()):
        if start < before:
            return f"window {w}: starts in slot {start}, the one before ends before slot {before}"
        if tau & (tau - 1) or not last < tau <= start:
            later = f" above {last}" if w else ""
            return f"window {w}: from slot {start}, τ = {tau} is not a power of two{later} and at most {start}"
        if not tau * (rounds - 1) < slots <= max(start, tau * rounds):
            return f"window {w}: {slots} slots from slot {start} are not α rounds of {tau}, of which {rounds} are used"
        last, before = tau, start + slots
    return None


def _completion(plan: Plan, jobs: int) -> Ints:
    """Return ``(n,)`` completions ``c``, 0 for jobs that do not run."""
    found = np.zeros(jobs, np.int64)
    np.maximum.at(found, plan.job, plan.end)
    return found


def _judged_completion(view: View, hardware: Hardware, plan: Plan, windows: Ints, lines: list[str]) -> Verdict:
    completion = _completion(plan, view.size)
    weights = np.array([job.weight for job in view.instance.jobs])
    metrics, quantities = _measured(hardware, plan, completion, view.arrival)
    if windows.size:
        alpha = {"windows": windows.shape[1], "realised_alpha": int(windows[2].max())}
        metrics, quantities = metrics | alpha, quantities | alpha
    return Verdict(float(weights @ completion), tuple(lines), metrics, quantities)


def _measured(
    hardware: Hardware, plan: Plan, completion: Ints, first: Ints
) -> tuple[dict[str, float | int | bool], dict[str, object]]:
    """Return metrics and quantities; times in slots, from ``(n,)`` slots `first` in which jobs could begin.

    The number of workers is the mean over jobs, of a job with several runs its mean over time.
    """
    done = completion > 0
    metrics: dict[str, float | int | bool] = {"completed": int(done.sum())}
    if done.any():
        took = (completion - first)[done]
        makespan = int(completion.max() - first.min())
        busy = np.bincount(plan.job, plan.slots, completion.size)[done]
        held = np.bincount(plan.job, plan.slots * plan.total, completion.size)[done]
        gpus = uses(plan, hardware)[:, 0] @ plan.slots[plan.run]
        metrics |= {
            "mean_completion_slots": float(took.mean()),
            "max_completion_slots": int(took.max()),
            "makespan_slots": makespan,
            "gpu_utilisation": float(gpus / max(hardware.capacity[:, 0].sum() * makespan, 1e-300)),
            "workers_mean": float((held / busy).mean()),
        }
    return metrics, {"completion": completion, **metrics}


# ---------------------------------------------------------------- until τ


def _until(plan: Plan, deadline: int, instance: Instance) -> Iterator[str]:
    """Yield a line where a run completes after τ, (7b)."""
    late = plan.end > deadline
    if late.any():
        i = int(late.argmax())
        yield f"{at(plan, i, instance)}: completes at {plan.end[i]}, after τ = {deadline}"


def _judged_weight(view: View, hardware: Hardware, plan: Plan, lines: list[str]) -> Verdict:
    completion = _completion(plan, view.size)
    weights = np.array([job.weight for job in view.instance.jobs])
    first = np.ones(view.size, np.int64)
    objective = float(weights[completion > 0].sum())
    return Verdict(objective, tuple(lines), *_measured(hardware, plan, completion, first))


def _judged_cost(view: View, of: Architecture, hardware: Hardware, plan: Plan, lines: list[str]) -> Verdict:
    """Judge the run of the heaviest job in what the loads leave free, at the prices (11) that they make."""
    instance = view.instance
    wanted = max(range(view.size), key=lambda j: instance.jobs[j].weight)
    if plan.job.tolist() != [wanted]:
        lines.append(f"the heaviest job runs, {instance.jobs[wanted].id}, and no other")
    if lines:
        return Verdict(None, tuple(lines))
    loads = of.loads[plan.server][:, :, plan.start[0] - 1 : plan.end[0] - 1]
    there = hardware.capacity[plan.server][:, :, None]
    taken = uses(plan, hardware)
    over = np.argwhere((loads + taken[:, :, None] > there * (1 + SHORTFALL)).any(axis=2))
    for e, r in over[:1].tolist():
        free = float((there[e, r] - loads[e, r]).min())
        name = hardware.servers[plan.server[e]]
        lines.append(f"{taken[e, r]:.9g} {RESOURCES[r]} of {name} taken, {free:.9g} available beside the loads")
    base = 2.0 * view.slots * len(hardware.servers) * len(RESOURCES) * of.unit_worth + 1.0
    unit = np.divide(1.0, there, out=np.zeros(there.shape), where=there > 0)
    price = (np.expm1(loads * unit * math.log(base)) * unit).sum(axis=2)
    metrics: dict[str, float | int | bool] = {
        "start": int(plan.start[0]),
        "slots": int(plan.slots[0]),
        "workers": int(plan.total[0]),
        "servers": int(plan.hosts[0]),
    }
    return Verdict(float((price * taken).sum()), tuple(lines), metrics, metrics)


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

VERIFIERS.register(VerifierSpec("zhou", check, lambda problem: QUANTITIES[problem.rpartition(".")[2]]))

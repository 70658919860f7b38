"""Run what a cluster might change on the jobs of its log: the policies first, then changes of the best stand-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from schedgap.harness.engine.study import Finished, Running, Stages, Study, command_line, execute
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.measures import WHATIF, kinds
from schedgap.harness.show.table import to_json_lines, to_parquet
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import certify
from schedgap.harness.studies.resampling import interval_of_sums
from schedgap.harness.studies.whatif.change import UNCHANGED, Change, columns_of, of_cluster
from schedgap.harness.studies.whatif.row import BASE, CLUSTER, EXECUTED, LIMITS, POLICY, ChangeRow, WhatIf
from schedgap.harness.studies.whatif.task import ChangedResult, ChangedTask, Waits
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.rigid import ASKED, CONSIDERED, affordable, knowledge
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.importers import Options, read_trace
from schedgap.instances.importers.registry import DEFAULTS
from schedgap.instances.importers.rows import list_bad
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance
from schedgap.instances.schema.columns import REQUESTED

RAN = ("rigid.executed", "rigid.interrupted")
"""Methods that return the schedule in the log."""

USUAL_BASE = "rigid.easy"
"""The base if the log does not say when all jobs ran; also the policy of limits if the base uses none."""

LIMIT_FACTORS = (0.5, 0.0)
"""Factors on time limits: half of them, and exact ones."""

HINDSIGHT = ("rigid.sjf", "rigid.smallest_area")
"""Rules that know the run times, run on every cluster: what is possible there with hindsight, at little cost."""

BOUNDS = ("rigid.bound", "rigid.starts")
"""Bounds of every cluster: one in closed form, and a tighter one on schedules that interrupt no job, as changes do."""

BOUND_S = 5.0
"""Most seconds for a bound of a cluster."""


def policies(instance: Instance) -> list[str]:
    """Return the online policies that interrupt no job, with the users' time limits if the log has any.

    A policy that can use limits has a parameter `estimates`; of the others, only those that know no run times count.
    """
    asked = any(limit is not None for limit in columns_of(instance).texts(REQUESTED))
    chosen = []
    for spec in HEURISTICS:
        if spec.paper != "rigid" or spec.problem != "rigid.flow" or spec.settings or spec.id in RAN:
            continue
        if _estimates(spec.id):
            chosen.append(affordable(f"{spec.id}?estimates=requested" if asked else spec.id, len(instance.jobs)))
        elif spec.id == "rigid.fcfs":
            chosen.append(spec.id)
    return chosen


def what_if(
    format: str,
    log: str | Path,
    options: Options = DEFAULTS,
    base: str = "",
    *,
    seed: int = 0,
    limits: Limits | None = None,
    tell: Callable[[Instance], None] = lambda instance: None,
    given: dict[str, Any] | None = None,
    **running: Unpack[Running],
) -> WhatIf:
    """Run changes of a cluster online on the jobs of its log, and compare the hours of waiting that they save.

    >>> sg.what_if("sacct", "log.txt").table[["change", "saved_h", "most_saved_h"]]  # doctest: +SKIP

    Parameters
    ----------
    format, log, options
        The log (:func:`schedgap.instances.importers.import_trace`); its `history` is read whatever the options say.
    base
        The policy that changes start from, such as ``easy``; by default the one whose waits are closest to those in the
        log, which is no policy that could be run on another cluster.
    seed, limits
        Seed and limits of each method.
    tell
        Called with the instance before anything runs.
    given
        Options that the recorded command line repeats.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If the log cannot be read, there is no such policy, or an option makes no sense; nothing has run then.
    """
    instance, rows = read_trace(format, log, replace(options, history=True))
    wanted = _named(base, policies(instance)) if base else ""
    tell(instance)
    limits = limits or Limits()
    command = command_line({"what_if": True, "base": base, **(given or {})}, "certify", format, str(log))
    meta = {"command": command, "base": wanted, "rules": f"the base {wanted or 'closest to the log'}"}
    planned = stages(instance, wanted, seed=seed, limits=limits)
    found = execute(STUDY, planned, meta, instances=[instance], **running)
    list_bad(rows, found.folder)
    return found


def stages(instance: Instance, wanted: str = "", *, seed: int = 0, limits: Limits) -> Stages:
    """Return the stages: everything on the cluster as it is, then the base on other clusters, and with other limits."""
    known, sized = policies(instance), sent(instance)
    short = replace(limits, time_limit_s=min(limits.seconds, BOUND_S))

    def tasks(pairs: Sequence[tuple[str, Change]]) -> Sequence[ChangedTask]:
        return [
            ChangedTask(*sized, method, seed, change=change, limits=short if method in BOUNDS else limits)
            for method, change in dict.fromkeys(pairs)
        ]

    def first(done: Sequence[Any]) -> Sequence[ChangedTask]:
        return tasks([(method, UNCHANGED) for method in (*RAN, *known, *HINDSIGHT, *BOUNDS)])

    def second(done: Sequence[Any]) -> Sequence[ChangedTask]:
        if (base := base_of(done, known, wanted)) is None or base.waits is None:
            return []
        pairs = [(limiting(base.row.method), Change(limits=factor)) for factor in LIMIT_FACTORS]
        methods = [base.row.method, *HINDSIGHT, *BOUNDS]
        return tasks([*pairs, *((one, change) for change in of_cluster(instance, base.waits.pools) for one in methods)])

    return [first, second]


def _named(name: str, known: Sequence[str]) -> str:
    """Return the policy of that name, which may lack ``rigid.`` and its settings."""
    for one in known:
        if name in (one, base_id(one), base_id(one).removeprefix("rigid.")):
            return one
    raise UnknownNameError(unknown("policy of logs", name, [base_id(one).removeprefix("rigid.") for one in known]))


def limiting(base: str) -> str:
    """Return the policy on which other time limits are tried: the base if it uses them, else EASY."""
    if not _estimates(base):
        return f"{USUAL_BASE}?estimates=requested"
    return base if knowledge(base) == ASKED else f"{base_id(base)}?estimates=requested"


def _estimates(policy: str) -> bool:
    """Return whether a policy goes by run times, of which it can know the true ones or the users' limits."""
    return any(parameter.name == "estimates" for parameter in HEURISTICS.get(base_id(policy)).parameters)


def base_of(done: Sequence[ChangedResult], known: Sequence[str], wanted: str = "") -> ChangedResult | None:
    """Return the result of the base: the wanted policy or, of those `known` that ran, the closest to the log."""
    ran = [one for one in done if one.change == UNCHANGED and one.waits and one.row.method in known]
    named = [one for one in ran if one.row.method == wanted]
    usual = [one for one in ran if base_id(one.row.method) == USUAL_BASE]
    apart = [(one.waits.apart, i) for i, one in enumerate(ran) if one.waits and one.waits.apart is not None]
    nearest = [ran[i] for _, i in sorted(apart)[:1]]
    return next(iter([*named, *nearest, *usual, *ran]), None)


# ---------------------------------------------------------------- collecting


def collected(found: Finished) -> WhatIf:
    """Return the changes, those that save most first, each with an interval and the bound of its cluster."""
    known = {name: None for instance in found.instances.values() for name in policies(instance)}
    base = base_of(found.results, [*known], found.meta["base"])
    waits = base.waits if base else None
    certified = dict(zip((one.key for one in found.results), judged(found), strict=True))
    least = _least(found.results, certified)
    # A bound and a rule with hindsight are no rows, nor is the schedule in a log that does not record it.
    ran = (one.row.method for one in found.results if one.waits and one.row.method in RAN)
    shown = {(method, False) for method in (*known, *ran)} | ({(base.row.method, True)} if base else set())
    rows = [
        _row(one, certified[one.key], base, least, found.results)
        for one in found.results
        if (one.row.method, one.change.cluster) in shown or one.change.limits is not None or certified[one.key].wrong
    ]
    rows.sort(key=lambda row: (_PLACE.get(row.kind, 2), row.saved_h is None, -(row.saved_h or 0.0)))
    return WhatIf(
        meta=found.meta,
        rows=rows,
        instances=found.instances,
        folder=found.folder,
        jobs=sum(waits.jobs) if waits else 0,
        apart_h=waits.apart if waits else None,
        chosen=bool(base and base.row.method == found.meta["base"]),
    )


_PLACE = {EXECUTED: 0, BASE: 1}


def _least(results: Sequence[ChangedResult], certified: Mapping[str, Row]) -> dict[Change, tuple[float, str]]:
    """Return the least mean wait on each cluster, in hours, and its model; other limits do not change a cluster.

    What fits a cluster fits a larger one. So a bound of the larger holds for the smaller, too.
    """
    bounds: dict[Change, tuple[float, str]] = {}
    for one in results:
        if one.least_h is not None and not certified[one.key].wrong:
            bounds[one.change] = max((one.least_h, one.row.method), bounds.get(one.change, (0.0, "")))
    larger = [bound for change, bound in bounds.items() if change.gpus > 0 or change.merged or change == UNCHANGED]
    if larger:
        bounds[UNCHANGED] = max(larger)
    fewer = {change: max(bound, bounds.get(UNCHANGED, bound)) for change, bound in bounds.items() if change.gpus < 0}
    return bounds | fewer


def _row(
    one: ChangedResult,
    row: Row,
    base: ChangedResult | None,
    least: Mapping[Change, tuple[float, str]],
    results: Sequence[ChangedResult],
) -> ChangeRow:
    """Return the row of a result."""
    cluster = one.change if one.change.cluster else UNCHANGED
    bound, model = least.get(cluster, (None, None))
    known = [(r.waits.mean, r.row.method) for r in results if r.waits and r.waits.jobs and _fits(r, cluster)]
    best_h, best_by = min(known, default=(None, None))
    kind = _kind(one, base)
    numbers: dict[str, Any] = {}
    if one.waits is not None:
        numbers["wait_h"] = one.waits.mean
        if base is not None and base.waits is not None:
            numbers |= saved(base.waits, one.waits)
    if base is not None and base.waits is not None and bound is not None:
        numbers["most_saved_h"] = (base.waits.mean - bound) * sum(base.waits.jobs)
    return ChangeRow(
        change=one.change.words or ("as executed" if kind == EXECUTED else _named_policy(row.method)),
        kind=kind,
        least_wait_h=bound,
        bound_from=model,
        best_wait_h=best_h,
        best_by=best_by,
        reason=row.reason and row.reason.removeprefix(f"rigid: {row.instance}: "),
        **{name: getattr(row, name) for name in SHARED},
        **numbers,
    )


SHARED = ("instance", "fingerprint", "method", "status", "verified", "violations", "key")
"""Fields that a change has in common with the row of its method."""


def _fits(one: ChangedResult, cluster: Change) -> bool:
    """Return whether a schedule is one on that cluster without interruptions; time limits do not change it."""
    mine = one.change if one.change.cluster else UNCHANGED
    return mine == cluster and bool(one.row.verified) and not one.row.problem.endswith(".preemptive")


def _named_policy(method: str) -> str:
    """Return a policy in words, with the run times that it goes by: ``easy with the users' limits``."""
    name = base_id(method).removeprefix("rigid.")
    knows = "with the users' limits" if knowledge(method) == ASKED else "that knows run times"
    planned = f", {CONSIDERED} jobs reserving" if "considered=" in method else ""
    return f"{name} {knows}{planned}" if _estimates(method) else name


def _kind(one: ChangedResult, base: ChangedResult | None) -> str:
    if one.change.cluster:
        return CLUSTER
    if one.change.limits is not None:
        return LIMITS
    if one.row.method in RAN:
        return EXECUTED
    return BASE if base is not None and one.row.method == base.row.method else POLICY


def saved(base: Waits, changed: Waits) -> dict[str, Any]:
    """Return the hours that a change saves, and their 95 % interval: the same jobs, resampled by weeks or days."""
    less = [before - after for before, after in zip(base.hours, changed.hours, strict=True)]
    numbers: dict[str, Any] = {"saved_h": base.total - changed.total}
    if base.unit:
        low, high = interval_of_sums(less, base.jobs)
        jobs = sum(base.jobs)
        numbers |= {"saved_low_h": low * jobs, "saved_high_h": high * jobs}
        numbers |= {"unit": base.unit, "units": len(base.jobs)}
    return numbers


def judged(found: Finished) -> list[Row]:
    """Return the rows of all methods, certified within each changed instance."""
    return certify(one.row for one in found.results)


def _tables(found: WhatIf) -> Mapping[str, bytes]:
    records = [row.as_dict() for row in found.rows]
    return {"rows.jsonl": to_json_lines(WHATIF, records), "rows.parquet": to_parquet(kinds(WHATIF), records)}


STUDY = Study("whatif", (ChangedResult,), collected, _tables, judged, lean=True)

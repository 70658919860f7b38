"""Run figures and tables of the papers, and compare published, measured and certified values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack
from urllib.parse import parse_qsl

from schedgap.harness.engine.result import CheckedRow, Later
from schedgap.harness.engine.study import Finished, Running, Stages, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits, Task
from schedgap.harness.show.table import to_json
from schedgap.harness.show.text import clean
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import Stage, staged
from schedgap.harness.studies.compare.run import collected as compared
from schedgap.harness.studies.compare.run import judged as judged_methods
from schedgap.harness.studies.compare.run import plan as methods_of
from schedgap.harness.studies.published import measured_as, split, together
from schedgap.harness.studies.reproduce import measure
from schedgap.harness.studies.reproduce.row import Case, ReproducedRow, Reproduction
from schedgap.harness.studies.reproduce.setting import Compared, Setting, SettingRun, find
from schedgap.harness.studies.reproduce.task import BoundTask, MethodResult, MethodTask, PartResult, SimulationResult
from schedgap.harness.studies.simulate.row import ALIASES, BOUNDED, Bound, SimulationRow
from schedgap.harness.studies.simulate.run import USUAL, resolve
from schedgap.harness.studies.simulate.run import collected as simulated
from schedgap.harness.studies.simulate.run import judged as judged_policies
from schedgap.harness.studies.simulate.run import plan as simulations_of
from schedgap.harness.studies.sweep import AbsentDataError
from schedgap.heuristics.simulator import Trace
from schedgap.heuristics.simulator.metrics import ALL, Window
from schedgap.instances.arrays import Array
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Instance

References = dict[str, str]
"""Maps references to fingerprints of instances."""


def reproduce(
    figures: str | Sequence[str],
    *,
    quick: bool = False,
    memory_mb: int = Limits.memory_mb,
    **running: Unpack[Running],
) -> Reproduction:
    """Run the settings of figures and tables, and return a verdict on each number, ordering and trend.

    Parameters
    ----------
    figures
        Ids (``hadar/fig4``), papers, ``all``, or paths of your own files.
    quick
        Whether to run the smaller versions.
    memory_mb
        Memory cap of a worker process.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a figure is unknown, or a setting is out of range. Nothing has run then.
    """
    figures = several(figures)
    settings = [one.small() if quick else one for one in find(figures)]
    tasks: dict[str, Task[Any]] = {}
    instances: dict[str, Instance] = {}
    plans: dict[str, Any] = {}
    for setting in settings:
        planned, loaded, plans[setting.id] = _plan(setting, memory_mb)
        tasks |= {task.key: task for task in planned}
        for one in loaded:
            instances[one.fingerprint] = together(instances.get(one.fingerprint, one), one)
    options = {"quick": quick, **Limits(memory_mb=memory_mb).given(Limits())}
    meta = {"command": command_line(options, "reproduce", *figures), "quick": quick, "settings": plans}
    first, *later = staged([task for task in tasks.values() if isinstance(task, MethodTask)])
    others = [task for task in tasks.values() if not isinstance(task, MethodTask)]

    def of_methods(stage: Stage, done: Sequence[Any]) -> Sequence[Task[Any]]:
        return stage([one for one in done if isinstance(one, MethodResult)])

    stages: Stages = [lambda done: [*others, *first(())], *(partial(of_methods, stage) for stage in later)]
    return execute(STUDY, stages, meta, instances=list(instances.values()), **running)


def _plan(setting: Setting, memory_mb: int) -> tuple[list[Task[Any]], list[Instance], dict[str, Any]]:
    """Return tasks, instances, and the entry in ``run.json``: content, fingerprints by run, and why data are absent."""
    tasks: list[Task[Any]] = []
    instances: list[Instance] = []
    references: dict[str, References] = {}
    absent = ""
    asked = (measured_as(split(item.quantity)[0], {*BOUNDED, *ALIASES}) for item in setting.items)
    bounded = {ALIASES.get(base, base) for base, _ in filter(None, asked)}
    for run in setting.runs:
        try:
            loaded = run.loaded()
            distinct = list({one.fingerprint: one for one in loaded.values()}.values())
            if run.policies:
                limits = replace(USUAL, memory_mb=memory_mb, time_limit_s=run.time_limit_s or USUAL.seconds)
                kinds = run.options.kinds(whole=True)
                simulations = simulations_of(distinct, resolve(run.chosen), kinds, run.seeds, limits)
                # Bounds on times run only if an item is about that time.
                tasks += [one for one in simulations if not isinstance(one, BoundTask) or one.metric in bounded]
            else:
                by_label = {_label(one): one for one in run.kinds(Limits(memory_mb=memory_mb)).values()}
                tasks += methods_of(distinct, run.specs(), run.seeds, by_label)
        except AbsentDataError as error:
            absent = str(error)
            continue
        except UsageError as error:
            raise UsageError(f"{setting.id}: {error}") from None
        instances += loaded.values()
        references[run.name] = {name: one.fingerprint for name, one in loaded.items()}
    content = setting.model_dump(mode="json", exclude_unset=True)
    return tasks, instances, {"content": content, "references": references, "absent": absent}


def _label(limits: Limits) -> str:
    """Return a label of limits, which distinguishes rows of figures that run under different limits."""
    return ", ".join(f"{name}={value}" for name, value in {"s": limits.seconds, **limits.given(Limits())}.items())


def _collected(found: Finished) -> Reproduction:
    """Certify all results by their own studies, assign them to figures, and compute the verdicts."""
    of_methods = [one for one in found.results if isinstance(one, MethodResult)]
    of_policies = [one for one in found.results if isinstance(one, SimulationResult | Bound)]
    comparison = compared(replace(found, results=of_methods))
    simulation = simulated(replace(found, results=of_policies))
    by_key = {one.row.key: one for one in found.results if isinstance(one, MethodResult | SimulationResult)}
    certified: list[Row | SimulationRow] = [*comparison.rows, *simulation.rows]
    results = [(row, by_key[row.key]) for row in certified]
    rows: list[ReproducedRow] = []
    cases: dict[str, list[Case]] = {}
    settings: dict[str, Setting] = {}
    for id, entry in found.meta["settings"].items():
        setting = settings[id] = Setting.model_validate_json(json.dumps(entry["content"]))
        items = setting.items
        cases[id] = [case for run in setting.runs for case in _cases(run, entry["references"], results, items)]
        if entry["absent"]:
            setting = settings[id] = setting.model_copy(update={"needs": entry["absent"]})
        rows += measure.rows(setting, cases[id])
    return Reproduction(
        meta=found.meta,
        rows=rows,
        instances=found.instances,
        folder=found.folder,
        settings=settings,
        cases=cases,
        comparison=comparison,
        simulation=simulation,
    )


OF_HISTORY: Mapping[str, Callable[[Trace, Window], Array]] = {
    "job_jct_s": lambda trace, window: trace.jct_s[window.jobs(trace.workload.arrival_s)],
    "round_cpu_given": lambda trace, window: trace.cpu_utilisation,
}
"""Quantities of single jobs and of single rounds, which are read from the history only if a figure is about them."""


def _cases(
    run: SettingRun,
    references: Mapping[str, References],
    results: Sequence[tuple[Any, Any]],
    items: Sequence[Compared],
) -> Iterator[Case]:
    """Yield the results of a run as cases, with the quantities that the items need."""
    names = {fingerprint: name for name, fingerprint in references.get(run.name, {}).items()}
    if run.policies:
        methods, kinds = {spec.id for spec in resolve(run.chosen)}, set(run.options.kinds(whole=True))
    else:
        methods = {spec.id for spec in run.specs()}
        kinds = {_label(one) for one in run.kinds(Limits()).values()}
    asked = [name for name in OF_HISTORY if any(measured_as(split(item.quantity)[0], {name}) for item in items)]
    for row, result in results:
        own = isinstance(row, SimulationRow) == bool(run.policies) and row.method in methods and row.seed in run.seeds
        if not own or row.fingerprint not in names or row.case[2] not in kinds:
            continue
        reference, measured, trace = names[row.fingerprint], row.measured, None
        reason = f"WRONG: {row.violations[0]}" if row.wrong and row.violations else f"{row.status}: {row.reason or ''}"
        trouble = "" if row.ok and row.status != "skipped" else clean(f"{row.method} on {reference}: {reason}", 200)
        if run.policies:
            bounds = row.bounds | {m.replace("ttd", "makespan"): bound for m, bound in row.bounds.items()}
            trace = Later(partial(getattr, result, "trace"))
            if asked and measured and (history := trace.value):
                window = Window.parse(row.window) if row.window else ALL
                measured |= {name: OF_HISTORY[name](history, window) for name in asked}
        else:
            measured = {**result.decided, **measured}
            bounds = row.bounds
        at = {**coordinates(reference, row.options if run.policies else ""), "solver_seed": row.seed}
        yield Case(run.name, (run.name, *row.case), at, row.method, measured, bounds, trouble, trace)


def coordinates(reference: str, options: str) -> dict[str, Any]:
    """Return the parameters of an instance and of options by name, which identify the points of a figure."""
    texts = (reference.partition("?")[2], options)
    return {"instance": reference, **{name: value for text in texts for name, value in parse_qsl(text)}}


def _tables(found: Reproduction) -> Mapping[str, bytes]:
    return {"figures.json": to_json(row.as_dict() for row in found.rows).encode()}


def _judged(found: Finished) -> list[CheckedRow]:
    return [*judged_methods(found), *judged_policies(found)]


STUDY = Study("reproduce", (MethodResult, PartResult, SimulationResult, Bound), _collected, _tables, _judged, lean=True)

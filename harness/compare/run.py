"""Run methods on instances and certify what they reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

from schedgap.harness.compare.certify import certify
from schedgap.harness.compare.methods import Spec, find_spec, related, select, specs, starts_from_decisions
from schedgap.harness.compare.row import Comparison, Name, Row
from schedgap.harness.compare.task import MethodResult, MethodTask
from schedgap.harness.engine.limits import Limits
from schedgap.harness.engine.result import Opened, opened
from schedgap.harness.engine.study import Finished, Reference, Running, Study, command_line, execute, names_of, reopen
from schedgap.harness.published import with_published
from schedgap.harness.table import to_parquet, types_of
from schedgap.instances import load
from schedgap.instances.canonical import to_json
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import base_id
from schedgap.instances.schema import Instance

Stages = Callable[[Sequence[MethodResult]], Sequence[MethodTask]]


def compare(
    instance: Reference | Sequence[Reference],
    methods: Sequence[str] = ("*",),
    papers: Sequence[str] = (),
    *,
    seeds: Sequence[int] = (0,),
    limits: Limits | Mapping[str, Limits] | None = None,
    command: str | None = None,
    **running: Unpack[Running],
) -> Comparison:
    """Run methods on one or more instances and return certified rows; Ctrl-C ends the run early, finished rows stay.

    Parameters
    ----------
    instance, methods, papers
        References (``gen/200jobs``, a path) or loaded instances; ids or shell patterns (``oef.*``); papers to keep to.
    seeds, limits
        Of heuristics and solver; time, gap, threads and memory of one method, or several such limits by name. Every
        method runs once with each.
    command
        How to reproduce the run, for the report; composed from the arguments where absent.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a reference or method is unknown, an instance is invalid, results cannot be written, or no cluster answers;
        nothing has run then.
    """
    kinds = dict(limits) if isinstance(limits, Mapping) else {"": limits or Limits()}
    _refuse_impossible(kinds, seeds)
    references = [instance] if isinstance(instance, str | Path | Instance) else list(instance)
    chosen = select(methods, papers)
    loaded = _examples_of_one_case([load(ref) for ref in references])
    options = {
        "instance": names_of(references),
        "paper": list(papers),
        "method": [method for method in methods if method != "*"],
        "seed": list(seeds) if tuple(seeds) != (0,) else [],
        **next(iter(kinds.values())).given(Limits()),
    }
    limits_by_name = {name: asdict(one) for name, one in kinds.items()}
    meta = {
        "command": command or command_line(options, "compare"),
        "seeds": list(seeds),
        "limits": limits_by_name.get("", limits_by_name),
    }
    return execute(
        STUDY,
        staged(plan(loaded, chosen, seeds, kinds)),
        meta,
        instances=loaded,
        **running,
    )


def _refuse_impossible(kinds: Mapping[str, Limits], seeds: Sequence[int]) -> None:
    """Raise on limits or seeds that no method could run with."""
    for limits in kinds.values():
        for seed in seeds:
            limits.options(seed)
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds = {', '.join(map(str, seeds))}: name each seed once")


def _examples_of_one_case(loaded: Sequence[Instance]) -> list[Instance]:
    """Return the instances; of several names for one content the first, with all numbers that were printed about it.

    Papers come back to an example: ``paper/oef-eq1``, ``-eq2`` and ``-eq3`` are allocations of the same tenants.
    """
    found: dict[str, Instance] = {}
    same: list[Instance] = []
    for instance in loaded:
        first = found.setdefault(instance.fingerprint, instance)
        if first is instance:
            continue
        if instance.name == first.name:
            same.append(instance)
        more = (entry for entry in instance.published if entry not in first.published)
        found[first.fingerprint] = first.model_copy(update={"published": (*first.published, *more)})
    return [*found.values(), *same]


def plan(
    instances: Sequence[Instance], chosen: Sequence[Spec], seeds: Sequence[int], kinds: Mapping[str, Limits]
) -> list[MethodTask]:
    """Return one task per instance, method, seed and kind of limits, in the order of the table."""
    if len({i.fingerprint for i in instances}) < len(instances):
        raise UsageError("two of the instances have the same content; name each once")
    return [
        MethodTask(text, instance.name, instance.fingerprint, spec.id, seed, name, limits=limits)
        for instance in instances
        for text in [to_json(instance)]
        for spec in chosen
        for seed in seeds
        for name, limits in kinds.items()
    ]


def compare_here(
    instance: Instance, methods: Sequence[str], *, seed: int = 0, limits: Limits | None = None
) -> Comparison:
    """Run methods on a loaded instance in this process, and certify what they reach as :func:`compare` does.

    For searches over thousands of small instances, and for cells of notebooks, where starting worker processes takes
    longer than the methods do. Nobody stops a method that hangs or takes all memory.

    Parameters
    ----------
    instance, methods
        The instance; ids or patterns of methods.
    seed, limits
        As in :func:`compare`.

    Raises
    ------
    UsageError
        If a method is unknown or a limit impossible.
    """
    kinds = {"": limits or Limits()}
    _refuse_impossible(kinds, [seed])
    stages = staged(plan([instance], select(methods, ()), [seed], kinds), helpers=False)
    done: list[MethodResult] = []
    while some := stages(done):
        done += [task.run() for task in some]
    meta = {"instances": {instance.fingerprint: instance.name}, "interrupted": False}
    return collected(Finished(meta, {instance.fingerprint: instance}, done))


def staged(tasks: Sequence[MethodTask], helpers: bool = True) -> Stages:
    """Return the stages of a comparison: models that start from known decisions come last, with those of the others.

    Parameters
    ----------
    tasks
        One per instance, method, seed and kind of limits.
    helpers
        Whether heuristics that only these models need run as well.
    """
    last = [task for task in tasks if starts_from_decisions(find_spec(task.method))]
    first = [task for task in tasks if not starts_from_decisions(find_spec(task.method))]
    if helpers:
        asked = {_place(task, task.method) for task in first}
        wanted = (replace(task, method=h.id, helps=True) for task in last for h in related(find_spec(task.method)))
        first += [task for task in dict.fromkeys(wanted) if _place(task, task.method) not in asked]

    def stages(done: Sequence[MethodResult]) -> Sequence[MethodTask]:
        if first and not done:
            return first
        if len(done) > len(first):
            return []
        verified = {result.row.name: result.decision for result in done if result.row.verified}
        return [replace(task, known=_known(task, verified)) for task in last]

    return stages


def _place(task: MethodTask, method: str) -> Name:
    return task.fingerprint, method, task.seed, task.limits_name


def _known(task: MethodTask, verified: Mapping[Name, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the verified decisions of heuristics that a model can start from, by method."""
    places = {h.id: _place(task, h.id) for h in related(find_spec(task.method))}
    return tuple((method, opened(verified[places[method]])) for method in sorted(places) if places[method] in verified)


def _shown(results: Iterable[MethodResult], instances: Sequence[str]) -> list[MethodResult]:
    """Return the results of methods that were asked for, in the order of instances and of registration."""
    at = {name: i for i, name in enumerate(instances)}
    order = {spec.id: i for i, spec in enumerate(specs())}

    def place(result: MethodResult) -> tuple[int, int]:
        method = result.row.method
        return at[result.row.fingerprint], order.get(method, order.get(base_id(method), 0))

    return sorted((result for result in results if not result.helps), key=place)


def collected(found: Finished) -> Comparison:
    """Put results into a comparison: in the order of the plan, with bounds, gaps and ratios certified."""
    results = _shown(found.results, list(found.instances))
    _refuse_doubles(results)
    return Comparison(
        meta=found.meta,
        folder=found.folder,
        rows=with_published(certify(one.row for one in results), found.instances, [one.decided for one in results]),
        instances=found.instances,
        decisions=Opened({r.row.name: r.decision for r in results if r.decision is not None}),
        traces=[_point(r.row, *point) for r in results for point in r.trace],
        prices={r.row.name: r.prices for r in results if r.prices is not None},
    )


def _refuse_doubles(results: Sequence[MethodResult]) -> None:
    """Raise where a method has two rows that only unnamed limits tell apart, as in merged folders."""
    seen: set[Name] = set()
    for row in (result.row for result in results):
        if row.name in seen:
            raise UsageError(
                f"{row.method} on {row.instance} ran under two limits of the same name; name them in the sweep file"
            )
        seen.add(row.name)


def _point(row: Row, time_s: float, incumbent: float | None, bound: float | None) -> dict[str, Any]:
    keys = {name: getattr(row, name) for name in ("instance", "fingerprint", "method", "seed", "limits")}
    return {**keys, "time_s": time_s, "incumbent": incumbent, "bound": bound}


TRACE = dict.fromkeys(("instance", "fingerprint", "method", "limits"), "str") | {"seed": "int"}
TRACE |= dict.fromkeys(("time_s", "incumbent", "bound"), "float")
"""Types of the fields of a point of a trace."""


def _tables(comparison: Comparison) -> Mapping[str, bytes]:
    rows = (row.as_dict() for row in comparison.rows)
    return {"rows.parquet": to_parquet(types_of(Row), rows), "traces.parquet": to_parquet(TRACE, comparison.traces)}


STUDY = Study("compare", (MethodResult,), collected, _tables)


def read_run(folder: Path) -> Comparison:
    """Read a comparison back, also one whose run was killed; decisions are read, and checked, when asked for.

    Raises
    ------
    UsageError
        If the folder is not one of a comparison, is of another version, or its files are damaged.
    """
    comparison: Comparison = reopen(folder, STUDY.kind)
    return comparison

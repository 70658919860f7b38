"""Run methods on instances and certify their bounds, gaps and ratios; mark results that contradict a bound."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Unpack

from schedgap.harness.check import differ
from schedgap.harness.engine.folder import open_stored
from schedgap.harness.engine.pacing import GOOD, LEAST_S, MOST_S
from schedgap.harness.engine.result import Opened, grouped, opened
from schedgap.harness.engine.study import Finished, Reference, Running, Study, command_line, execute, reopened, several
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.measures import COMPARE, TRACE, kinds
from schedgap.harness.show.table import to_json_lines, to_parquet
from schedgap.harness.studies.compare.methods import (
    BOUNDING,
    Spec,
    bounding,
    find_spec,
    related,
    select,
    solved_by,
    specs,
    starts_from_decisions,
)
from schedgap.harness.studies.compare.price import priced
from schedgap.harness.studies.compare.row import BROKEN, Comparison, Name, Row, better, exact, gap, ratio, refuted_by
from schedgap.harness.studies.compare.task import MethodResult, MethodTask, PartResult
from schedgap.harness.studies.published import together, with_published
from schedgap.harness.studies.statistics import parquet
from schedgap.heuristics import HEURISTICS
from schedgap.instances import load
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted, some
from schedgap.models import ModelSpec


def compare(
    instance: Reference | Sequence[Reference],
    methods: str | Sequence[str] = "*",
    papers: str | Sequence[str] = (),
    *,
    seeds: int | Sequence[int] = 0,
    solvers: str | Sequence[str] = (),
    limits: Limits | Mapping[str, Limits] | None = None,
    reference: str = "",
    bound: bool = True,
    probes: bool = True,
    command: str | None = None,
    **running: Unpack[Running],
) -> Comparison:
    """Run methods on one or more instances and return certified rows; Ctrl-C ends the run and keeps finished rows.

    Parameters
    ----------
    instance
        References (``gen/200jobs``, a path) or loaded instances. Here and below, a single value is allowed as well.
    methods, papers
        Ids or shell patterns (``oef.*``) of methods, and papers to which they are restricted. By default all methods
        run, except that those about logs, ``rigid.*``, need an instance with a history.
    solvers
        Solvers (:data:`schedgap.models.engine.solve.SOLVERS`), possibly with options of their own
        (``highs?presolve=off``); every model runs once with each, which is appended to its id.
    seeds, limits
        Seeds of heuristics and solvers; limits of one method, or several named sets of them. Every method runs once
        with each combination.
    reference
        Method that the others are compared with in the statistics; by default the paper's own, or else a baseline.
    bound
        Whether to run the cheapest model that bounds a problem if none of the methods does. Its row is not in the
        table but in :attr:`Comparison.bounds`.
    probes
        Whether the heuristics of a model's problem run beside every model, also those that were not chosen: their
        decisions may refute what it claims. Otherwise they run only where a model starts from their decisions.
    command
        The command that reproduces the run, for the report; by default derived from the arguments.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a reference, method or solver is unknown, an instance is invalid, results cannot be written, or no cluster
        answers. Nothing has run then.
    """
    kinds = dict(limits) if isinstance(limits, Mapping) else {"": limits or Limits()}
    references, methods, papers = several(instance), several(methods), several(papers)
    seeds, solvers = several(seeds), several(solvers)
    chosen = _chosen(methods, papers, solvers, reference)
    loaded = _examples_of_one_case([load(ref) for ref in references])
    options = {
        "instance": references,
        "paper": papers,
        "method": [method for method in methods if method != "*"],
        "seed": seeds if seeds != [0] else [],
        "solver": solvers,
        "reference": reference,
        "no_bound": not bound,
        **_given(next(iter(kinds.values()))),
    }
    meta = {"command": command or command_line(options, "compare"), "seeds": seeds, **_stored(kinds, reference)}
    tasks = plan(loaded, chosen, seeds, kinds, every=methods == ["*"] and not papers)
    beside = _everywhere if probes else starts_from_decisions
    news = "; ".join(filter(None, [_announced(tasks), "" if probes else _beside(tasks)]))
    return execute(STUDY, staged(tasks, beside, bound), meta, instances=loaded, news=news, **running)


def _chosen(methods: Sequence[str], papers: Sequence[str], solvers: Sequence[str], reference: str) -> list[Spec]:
    """Return the methods of a run; raise `UsageError` if one is unknown, or the reference is none of them."""
    chosen = solved_by(select(methods, papers), solvers)
    if reference and reference not in (ids := [spec.id for spec in chosen]):
        raise UsageError(unknown("method of this run, as reference", reference, ids))
    return chosen


def _stored(kinds: Mapping[str, Limits], reference: str) -> dict[str, Any]:
    """Return what ``run.json`` says of the limits and of the reference, if there is one."""
    sets = {name: asdict(one) for name, one in kinds.items()}
    return {"limits": sets.get("", sets), **({"reference": reference} if reference else {})}


def _given(limits: Limits) -> dict[str, Any]:
    """Return the options of the command line that give these limits."""
    return {"quick": limits.run_s is limits.time_limit_s is limits.nodes is None, **limits.given(Limits())}


def _announced(tasks: Sequence[MethodTask]) -> str:
    """Return the line that announces a run with searches that share its time: its methods, instances, and their end."""
    searching = [task for task in tasks if task.limits.run_s is not None]
    if not searching:
        return ""
    methods, most = len({task.method for task in tasks}), max(task.limits.run_s or 0.0 for task in searching)
    names = some(list(dict.fromkeys(task.instance_name for task in tasks)))
    ending = f"those that search end at a gap of {100 * GOOD:.0f} %, or when {most:g} s have passed"
    return f"{counted(methods, 'method')} on {names}; {ending} (--quick: {SEARCHES_S:g} s for all searches)"


def _everywhere(spec: Spec) -> bool:
    return True


def _nowhere(spec: Spec) -> bool:
    return False


def _beside(tasks: Sequence[MethodTask]) -> str:
    """Return a line on the methods that nobody chose and that run because searches start from their decisions."""
    searches = {task.method: find_spec(task.method) for task in tasks}
    starting = {name: spec for name, spec in searches.items() if starts_from_decisions(spec)}
    added = {one.id for spec in starting.values() for one in related(spec)} - searches.keys()
    if not added:
        return ""
    begin = "it starts" if len(starting) == 1 else "they start"
    why = f"since {begin} from their decisions (off: ?seeded=false)"
    return f"beside {some(list(starting))}, {counted(len(added), 'more method')} run on each instance, {why}"


def _examples_of_one_case(loaded: Sequence[Instance]) -> list[Instance]:
    """Merge instances of equal content (``paper/oef-eq1``, ``-eq2``) into one, with the published numbers of all."""
    if len({(one.fingerprint, one.name) for one in loaded}) < len(loaded):
        return list(loaded)  # an instance named twice is an error, which `execute` reports
    merged: dict[str, Instance] = {}
    for one in loaded:
        merged[one.fingerprint] = together(merged.get(one.fingerprint, one), one)
    return list(merged.values())


def plan(
    instances: Sequence[Instance],
    chosen: Sequence[Spec],
    seeds: Sequence[int],
    kinds: Mapping[str, Limits],
    every: bool = False,
) -> list[MethodTask]:
    """Return one task per instance, method, seed and limit set, in the order of the table.

    With `every`, methods of papers that are not about such an instance are left out. Raise `UsageError` if limits or
    seeds are out of range.
    """
    for limits, seed in itertools.product(kinds.values(), seeds):
        limits.options(seed)
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds = {', '.join(map(str, seeds))}: name each seed once")
    tasks = []
    for instance in instances:
        about = sent(instance)
        used = [spec for spec in chosen if not every or PAPERS.get(spec.paper).usual(instance)]
        searches = max(1, sum(map(starts_from_decisions, used)))
        for spec, seed, (name, limits) in itertools.product(used, seeds, kinds.items()):
            shares = limits.time_limit_s is limits.nodes is None and starts_from_decisions(spec)
            alone = limits if limits.run_s is None else replace(limits, run_s=None)
            own = _shared(limits, searches, len(instances)) if shares else alone
            divided = spec.stretches(len(instance.jobs)) if isinstance(spec, ModelSpec) and spec.stretches else 1
            tasks.append(MethodTask(*about, spec.id, seed, name, limits=own, stretches=divided))
    return tasks


def _shared(limits: Limits, searches: int, instances: int) -> Limits:
    """Return the limits of a search: all searches on an instance share a time."""
    if limits.run_s is None:
        return replace(limits, time_limit_s=min(limits.seconds, SEARCHES_S / searches))
    first_s = min(max(limits.run_s / 2 / searches, LEAST_S), MOST_S)
    return replace(limits, time_limit_s=first_s, run_s=limits.run_s * instances)


RUN_S = 60.0
"""Seconds of the wall clock that ``harness compare`` takes for an instance if it is not told otherwise."""


SEARCHES_S = 7.0
"""Seconds that searches share on an instance under ``--quick``. Searches are models that start from known decisions;
they go on until they have a proof or no time is left."""


def compare_here(
    instance: Instance, methods: str | Sequence[str], *, limits: Limits | None = None, probes: bool = True
) -> Comparison:
    """Run methods in this process, without a hard time or memory limit, and certify them as :func:`compare` does.

    Without `probes`, no other heuristics run: searches start from the decisions of `methods` alone, and what models
    claim is compared with these only.
    """
    done: list[MethodResult] = []
    tasks = plan([instance], select(several(methods), ()), [0], {"": limits or Limits()})
    for stage in staged(tasks, _everywhere if probes else _nowhere):
        done += [task.run() for task in stage(done)]
    meta = {"instances": {instance.fingerprint: instance.name}, "interrupted": False}
    return collected(Finished(meta, {instance.fingerprint: instance}, done))


Stage = Callable[[Sequence[MethodResult]], Sequence[MethodTask]]
"""Returns the tasks of a stage, given the results of all earlier ones."""


def staged(
    tasks: Sequence[MethodTask], beside: Callable[[Spec], bool] = _everywhere, bound: bool = False
) -> list[Stage]:
    """Return the stages of a comparison: the heuristics of the models' problems, all other methods, missing bounds.

    Stretches of time of long logs come with the first stage, and the models that put them together with the second.
    Heuristics that were not selected run `beside` the models for which it is true: models start from their decisions,
    and the decisions may refute what models claim. With `bound`, models run at the end where a decision has no bound.
    """
    selected = {_place(task, task.method): task for task in tasks}
    chosen = [(task, find_spec(task.method)) for task in tasks]
    models = [(task, spec) for task, spec in chosen if isinstance(spec, ModelSpec)]
    wanted = [(replace(task, method=h.id, helps=True), beside(spec)) for task, spec in models for h in related(spec)]
    helping = {_place(task, task.method): task for task, runs in wanted if runs}
    places = dict.fromkeys(_place(task, task.method) for task, _ in wanted)
    found = {place: selected.get(place) or helping.get(place) for place in places}
    starts = {place: task for place, task in found.items() if task}
    first = [*(part for task in tasks for part in task.apart()), *starts.values()]
    # Long tasks come first, so that no worker waits long for another's last task: searches, which share their time,
    # then other models, then heuristics. Searches that share the time of the run wait for what others leave of it.
    ordered = [task for task, spec in sorted(models, key=lambda pair: not starts_from_decisions(pair[1]))]
    paced = [task for task in ordered if task.limits.run_s is not None]
    ordered = [task for task in ordered if task.limits.run_s is None]
    rest = [task for place, task in selected.items() if place not in starts and task.method in HEURISTICS]

    def others(done: Sequence[MethodResult]) -> Sequence[MethodTask]:
        return [*(_started(task, done) for task in ordered), *rest, *(_started(task, done) for task in paced)]

    # A model that is skipped leaves its bound to the next one.
    asked = {(spec.paper, problem) for _, spec in chosen for problem in (spec.problem, spec.aims) if bound and problem}
    tries = max((len(bounding(*problem)) for problem in asked), default=0)
    return [lambda done: first, others, *[partial(unbounded, tasks)] * tries]


def _started(task: MethodTask, done: Sequence[MethodResult]) -> MethodTask:
    """Return the task of a model with the verified decisions of heuristics that the model may start from."""
    places = {_place(task, h.id) for h in related(find_spec(task.method))}
    known = [one for one in done if one.row.verified and one.row.name in places]
    mine = [one for one in done if isinstance(one, PartResult) and one.row.name == _place(task, task.method)]
    parts = [(one.at, opened(one.part)) for one in mine if one.part is not None]
    found = tuple((one.row.method, opened(one.decision)) for one in sorted(_sendable(task, known), key=_method))
    return replace(task.together(parts), known=found)


MOST_KNOWN_MB = 100.0
"""Most memory of the decisions that a task is sent: those of a log of a million jobs take 32 MB each."""


def _sendable(task: MethodTask, known: Sequence[MethodResult]) -> list[MethodResult]:
    """Return decisions that a model may start from: the best of its own problem first, as many as are not too large."""
    problem, sent_mb = find_spec(task.method).problem, 0.0
    chosen = list[MethodResult]()
    for one in sorted(known, key=lambda one: (one.row.problem != problem, _cost(one.row))):
        sent_mb += sum(getattr(part, "nbytes", 0) for part in vars(opened(one.decision)).values()) / 1e6
        if sent_mb > MOST_KNOWN_MB and chosen:
            break
        chosen.append(one)
    return chosen


def _cost(row: Row) -> float:
    """Return the objective of a row such that less is better."""
    return (row.objective or 0.0) * (-1 if row.sense == "max" else 1)


def unbounded(tasks: Sequence[MethodTask], done: Sequence[MethodResult]) -> list[MethodTask]:
    """Return tasks for bounds that verified decisions lack: for each problem, the cheapest model that is not skipped.

    A method that is made for a narrower problem needs the bound of that one, too. One bound per problem is enough for
    all seeds and limits; the model runs with those of the instance's first task.
    """
    whole = [one for one in done if not isinstance(one, PartResult)]
    status = {(one.row.fingerprint, one.row.method): one.row.status for one in whole}
    first = {task.fingerprint: task for task in reversed(tasks)}
    missing: dict[tuple[str, str], MethodTask] = {}
    for one, row in zip(done, certify(one.row for one in done), strict=True):
        if one.helps or not row.verified:
            continue
        lacking = [row.problem] * (row.best_bound is None) + [row.aims] * bool(row.aims and row.loss is None)
        for problem in lacking:
            for spec in bounding(row.paper, problem):
                if spec.skip(spec.view(first[row.fingerprint].instance)):
                    continue
                place = row.fingerprint, spec.id
                if place not in status:
                    missing[place] = replace(first[row.fingerprint], method=spec.id, helps=True)
                if status.get(place) != "skipped":
                    break
    return list(missing.values())


def _method(result: MethodResult) -> str:
    return result.row.method


def _place(task: MethodTask, method: str) -> Name:
    return task.fingerprint, method, task.seed, task.limits_name


def collected(found: Finished) -> Comparison:
    """Certify results and return the comparison, sorted by instance and by registration of methods.

    Methods that only helped are left out, unless they are wrong; so are stretches of logs, which are part of others.
    Raise `UsageError` if two rows of a method differ only in unnamed limits, as may happen in merged folders.
    """
    about = ("instance", "fingerprint", "method", "seed", "limits")
    at = {fingerprint: i for i, fingerprint in enumerate(found.instances)}
    order = {spec.id: i for i, spec in enumerate(specs())}

    def place(result: MethodResult) -> tuple[int, int]:
        method = result.row.method
        return at[result.row.fingerprint], order.get(method, order.get(base_id(method), 0))

    results = sorted((one for one in found.results if not isinstance(one, PartResult)), key=place)
    for name, count in Counter(one.row.name for one in results if not one.helps).items():
        if count > 1:
            where = found.instances[name[0]].name
            raise UsageError(f"{name[1]} on {where} ran under two limits of the same name; name each in the sweep file")
    certified = list(zip(results, certify(one.row for one in results), strict=True))
    shown = [(one, row) for one, row in certified if not one.helps or row.wrong]
    rows = with_published([row for _, row in shown], found.instances, [one.decided for one, _ in shown])
    decisions = Opened({one.row.name: one.decision for one, _ in shown if one.decision is not None})
    traces: list[Mapping[str, Any]] = [
        {name: getattr(one.row, name) for name in about} | dict(zip(TIMED, point, strict=True))
        for one, _ in shown
        for point in one.trace
    ]
    prices = {one.row.name: one.prices for one, _ in shown if one.prices is not None}
    bounds = [row for one, row in certified if one.helps and row.kind in BOUNDING and not row.wrong]
    logs = Opened({one.row.name: one.log for one in results if one.log is not None})
    return Comparison(found.meta, rows, found.instances, decisions, traces, prices, bounds, logs, folder=found.folder)


TIMED = ("time_s", "incumbent", "bound")
"""Values of a point of a trace."""


def _tables(comparison: Comparison) -> Mapping[str, bytes]:
    rows = [row.as_dict() for row in comparison.rows]
    return {
        "rows.jsonl": to_json_lines(COMPARE, rows),
        "rows.parquet": to_parquet(kinds(COMPARE), rows),
        "traces.parquet": to_parquet(kinds(TRACE), comparison.traces),
        **parquet(comparison),
    }


def judged(found: Finished) -> list[Row]:
    """Return all rows of a run, compared and certified, including those of methods that only helped others."""
    return certify(one.row for one in found.results if isinstance(one, MethodResult))


STUDY = Study("compare", (MethodResult, PartResult), collected, _tables, judged)


def read_run(folder: str | Path) -> Comparison:
    """Return the comparison in a results folder; decisions are read and checked on access."""
    return reopened(STUDY, open_stored(Path(folder), STUDY.kind))


def certify(rows: Iterable[Row]) -> list[Row]:
    """Fill in the best bound, gap, ratio, price and loss of each row; the order is kept.

    Only certified bounds count. A bound applies within its instance, to its own problem and to the problems that
    restrict it. A decision that passed the checker is a proof: if it refutes a claimed bound, a claimed infeasibility
    or a guarantee, the row that states this is wrong. If a decision lies beyond a certified bound, both rows are wrong,
    and the bound is not used.
    """
    rows = list(rows)
    done = {peers[0].fingerprint: iter(_certify_one(peers)) for peers in grouped(rows, "fingerprint")}
    return [next(done[row.fingerprint]) for row in rows]


def _certify_one(rows: Sequence[Row]) -> list[Row]:
    """Certify the rows of one instance."""
    verified = [row for row in rows if row.objective is not None and row.verified]
    bounding = [row for row in rows if row.own_bound is not None]
    refuted = [[line for peer in verified for line in _refuted(row, peer)][:1] for row in rows]
    beyond = [[line for peer in bounding for line in _contradicted(row, peer)][:1] for row in rows]
    sound = [row for row in bounding if not any(_contradicted(peer, row) for peer in verified)]
    exceeded = [next((line for peer in verified for line in _exceeded(row, peer)), None) for row in rows]
    judged = [
        row.replace(verified=False, violations=(*row.violations, *one, *other)) if one or other else row
        for row, one, other in zip(rows, refuted, beyond, strict=True)
    ]
    judged = [row.replace(refuted=line) if line else row for row, line in zip(judged, exceeded, strict=True)]
    certified = [_certified(row, judged, sound) for row in judged]
    return [priced(row, certified) for row in certified]


def _refuted(row: Row, peer: Row) -> list[str]:
    """Return a line for each statement of `row` that the verified decision of `peer` refutes, unless `row` has it."""
    if peer.objective is None or row.problem not in _and_wider(peer):
        return []
    lines = refuted_by(row, peer.method, peer.objective, exact(peer.metrics))
    return [line for line in lines if line not in row.violations]


def _exceeded(row: Row, peer: Row) -> list[str]:
    """Return a line if the decision of `peer` is better than that of `row` by more than the guarantee of `row`."""
    if row.guarantee_factor is None or peer.objective is None or row.problem not in _and_wider(peer):
        return []
    times = row.replace(best_objective=peer.objective).ratio_at_least
    if times is None or times <= row.guarantee_factor or not differ(times, row.guarantee_factor):
        return []
    return [f"{row.guarantee} is refuted: {peer.method} is {times:.6g} times better"]


def _contradicted(row: Row, peer: Row) -> list[str]:
    """Return a line if the verified objective of `row` lies beyond the certified bound of `peer`."""
    if row.objective is None or not row.verified or peer.own_bound is None:
        return []
    if peer.problem not in _and_wider(row) or not better(row, row.objective, peer.own_bound):
        return []
    return [
        f"objective {row.objective:.9g} lies beyond the certified bound {peer.own_bound:.9g} of {peer.method}: {BROKEN}"
    ]


def _certified(row: Row, peers: Sequence[Row], sound: Sequence[Row]) -> Row:
    """Fill in the best verified objective, and gap and ratio to the tightest of the `sound` certified bounds."""
    wider = _and_wider(row)
    reached = [p.objective for p in peers if p.problem == row.problem and p.verified and p.objective is not None]
    row = row.replace(best_objective=(max if row.sense == "max" else min)(reached, default=None))
    bounding = [peer for peer in sound if peer.problem in wider]
    if not bounding:
        return row
    best = (min if row.sense == "max" else max)(bounding, key=attrgetter("own_bound"))
    bound = float(best.own_bound or 0.0)
    row = row.replace(best_bound=bound, bound_from=best.method)
    if row.objective is None or row.verified is False:
        return row
    return row.replace(
        gap=gap(row.objective, bound),
        ratio=ratio(row.sense, row.objective, bound),
        ratio_is_upper=row.best_objective is None or differ(row.best_objective, bound),
    )


def _and_wider(row: Row) -> list[str]:
    """Return the row's problem and all problems that it restricts."""
    return PAPERS.get(row.paper).wider(row.problem)

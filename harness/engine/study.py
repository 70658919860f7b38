"""Run any study: plan tasks, reuse results of an earlier folder, run the rest, append to the journal, and collect.

A *study* defines its tasks, how a task runs in a worker, how its result is stored, and how results are put together.
Comparisons, sweeps, simulations, audits and searches are studies. Each is found by its kind
(:data:`schedgap.harness.engine.KINDS`), so that results folders of any kind can be read, resumed, merged and reported.
"""

from __future__ import annotations

import functools
import importlib
import json
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypedDict, TypeVar, Unpack

from schedgap.harness import environment
from schedgap.harness.engine import KINDS
from schedgap.harness.engine.folder import (
    DAMAGE,
    SCHEMA_VERSION,
    Folder,
    damage_explained,
    instance_file,
    new_folder,
    open_stored,
    told,
)
from schedgap.harness.engine.pool import Pool
from schedgap.harness.engine.result import CheckedRow, Result, Stored
from schedgap.harness.engine.sealed import inside
from schedgap.harness.engine.task import Task
from schedgap.harness.text import clean
from schedgap.instances import plugins
from schedgap.instances.canonical import read_bytes
from schedgap.instances.catalogue import load, namesake, references
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted, some

if TYPE_CHECKING:
    from schedgap.harness.engine.cluster import Cluster

F = TypeVar("F")

Reference = str | Path | Instance
"""A reference to an instance, the path of its file, or a loaded instance."""

Stages = Callable[[Sequence[Any]], Sequence[Task[Any]]]
"""A function that returns the next tasks, given all results so far; no tasks end the study."""


@dataclass(frozen=True)
class Finished:
    """The results of a study in the order of its plan, with the content of ``run.json`` and the instances."""

    meta: dict[str, Any]
    instances: dict[str, Instance]
    results: Sequence[Any]
    folder: Path | None = None


@dataclass(frozen=True)
class Study(Generic[F]):
    """A kind of study: the types of its results, the function that collects them, and tables of the whole run.

    `judged` returns the rows of results with what follows from all of them together, such as that one's objective lies
    beyond another's bound. A `lean` study drops large parts of saved results from memory, and reads them back on
    access.
    """

    kind: str
    records: tuple[type[Result], ...]
    collect: Callable[[Finished], F]
    tables: Callable[[F], Mapping[str, bytes]]
    judged: Callable[[Finished], Sequence[CheckedRow]] = lambda finished: ()
    lean: bool = False

    def restore(self, stored: Stored, key: str) -> Any:
        """Return the stored result of a key, or ``None`` if there is none; raise `ValueError` if a file is damaged."""
        if (line := stored.lines.get(key)) is None:
            return None
        for name in line["files"]:
            stored.file(key, name).content()
        return self.record(line).restored(line, stored)

    def record(self, line: Mapping[str, Any]) -> type[Result]:
        """Return the kind of result that a line of the journal holds; raise `ValueError` if it is of another study."""
        kinds = [result for result in self.records if result.record == line["record"]]
        if not kinds:
            raise ValueError(f"a line of the journal is a {clean(line['record'], 40)}, which {self.kind} has not")
        return kinds[0]


class Running(TypedDict, total=False):
    """Options that all studies share.

    Attributes
    ----------
    jobs, dask
        Number of local worker processes (0, the default: one per core), or the address of a Dask scheduler.
    results, resume
        Parent folder of a new results folder, if any; or an earlier results folder to complete. Then finished results
        of the same work, limits and code are kept, others are tried again, and instances may be added.
    on_start, on_result, on_news, on_gap
        Called with the number of tasks that will run, with each result, with what a user should know meanwhile, and
        with each task whose search asks for more seconds, and its gap, which is not yet certified.
    """

    jobs: int
    dask: str | None
    results: str | Path | None
    resume: str | Path | None
    on_start: Callable[[int], None]
    on_result: Callable[[Any], None]
    on_news: Callable[[str], None]
    on_gap: Callable[[Any, float], None]


def execute(
    study: Study[F],
    plan: Sequence[Task[Any]] | Stages,
    meta: Mapping[str, Any],
    *,
    instances: Sequence[Instance] = (),
    news: str = "",
    **running: Unpack[Running],
) -> F:
    """Run a study and return its collected results; Ctrl-C ends it early and keeps finished results.

    Parameters
    ----------
    study, plan, instances
        The kind of study, its tasks or stages of tasks, and the instances that they are about.
    meta
        The study's own entries in ``run.json``, among them ``command``. A run can be resumed only under the same
        ``rules``.
    news
        What a user should know once it is certain that the study runs.
    **running
        Workers, results folder and callbacks, see :class:`Running`.

    Raises
    ------
    UsageError
        If an option is unknown, no cluster answers, results cannot be written, or the earlier folder is of another
        run. Nothing has run then.
    """
    for name in running.keys() - Running.__annotations__.keys():
        raise UnknownNameError(unknown("option", name, Running.__annotations__))
    if running.get("jobs", 0) < 0:
        raise UsageError(f"jobs = {running['jobs']}: must be at least 0, which stands for one per core")
    by_fingerprint = {one.fingerprint: one for one in instances}
    if len(by_fingerprint) < len(instances):
        raise UsageError("two of the instances have the same content; name each once")
    plugins.refresh()
    meta = described(study.kind, meta, instances)
    resume, results = running.get("resume"), running.get("results")
    earlier = _earlier(Path(resume), meta) if resume else None
    tell: Callable[[str], None] = running.get("on_news", lambda text: None)
    workers: Pool | Cluster = Pool(running.get("jobs", 0), tell, running.get("on_gap", lambda task, gap: None))
    if (dask := running.get("dask")) is not None:
        from schedgap.harness.engine.cluster import Cluster

        workers = Cluster(dask)
    with closing(workers):
        path = earlier.path if earlier else new_folder(Path(results), meta) if results else None
        run = _Run(study, meta, by_fingerprint, Folder(path, instances, meta["command"]) if path else None, earlier)
        if news:
            tell(news)
        run.go(plan if callable(plan) else lambda done: [] if done else plan, workers, running)
    return run.concluded()


def _earlier(folder: Path, meta: Mapping[str, Any]) -> Stored:
    """Open the results folder to resume; raise `UsageError` if this run cannot continue there."""
    stored = open_stored(folder, meta["kind"])
    if not set(stored.meta["instances"]) <= set(meta["instances"]):  # the folder would lose the others
        names = some(list(stored.meta["instances"].values()))
        raise UsageError(f"{folder}: a run of {names}; only a run of at least these instances can be resumed there")
    if (rules := stored.meta.get("rules")) != meta.get("rules"):
        raise UsageError(f"{folder}: a run with {rules}; it cannot be resumed with {meta.get('rules')}")
    return stored


def several(values: Any) -> list[Any]:
    """Return `values` as a list; a single value becomes a list of one."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | Instance) else [values]


def command_line(options: Mapping[str, Any], *command: str) -> str:
    """Return the command line: a list repeats its option, a tuple is several values, and empty options are omitted."""
    words = ["harness", *command]
    for name, value in options.items():
        for entry in value if isinstance(value, list) else [value]:
            if entry is not None and entry is not False and entry != ():
                words.append(f"--{name.replace('_', '-')}")
                values = () if entry is True else entry if isinstance(entry, tuple) else (entry,)
                words += [one.name if isinstance(one, Instance) else str(one) for one in values]
    return shlex.join(words)


@dataclass
class _Run(Generic[F]):
    """A running study; `done` maps keys to results."""

    study: Study[F]
    meta: dict[str, Any]
    instances: dict[str, Instance]
    folder: Folder | None
    earlier: Stored | None = None
    done: dict[str, Any] = field(default_factory=dict)

    def go(self, plan: Stages, workers: Pool | Cluster, running: Running) -> None:
        """Run stage after stage, until there are no more tasks or Ctrl-C is pressed."""
        began = time.perf_counter()
        with suppress(KeyboardInterrupt):
            while tasks := plan(list(self.done.values())):
                self._stage({task.key: task for task in tasks}, workers, running)
            self.meta["interrupted"] = False
        if self.meta["interrupted"] and self.earlier:  # the tables keep what this run did not get to
            self.meta["plan"] = list(dict.fromkeys([*self.meta["plan"], *self.earlier.meta["plan"]]))
            self.done = {result.key: result for result in sound(self.study, self.earlier)} | self.done
        self.meta["duration_s"] = time.perf_counter() - began

    def concluded(self) -> F:
        """Collect the results in the order of the plan, and write the tables of the whole run."""
        ordered = [self.done[key] for key in self.meta["plan"] if key in self.done]
        path = self.folder.path if self.folder else None
        collected = self.study.collect(Finished(self.meta, self.instances, ordered, path))
        if self.folder:
            self.folder.finish(self.meta, self.study.tables(collected))
        return collected

    def _stage(self, tasks: Mapping[str, Task[Any]], workers: Pool | Cluster, running: Running) -> None:
        meta = self.meta
        meta["needs"] = sorted({*meta["needs"], *(one.name for task in tasks.values() for one in task.plugins)})
        meta["plan"] = list(dict.fromkeys([*meta["plan"], *tasks]))
        if self.folder:
            self.folder.describe(meta)
        self.done |= {key: result for key in tasks if (result := self._reused(key))}
        left = [task for key, task in tasks.items() if key not in self.done]
        if "on_start" in running:
            running["on_start"](len(left))
        for result in workers.run(left):
            self.done[result.key] = self._saved(result)
            if "on_result" in running:
                running["on_result"](result)

    def _reused(self, key: str) -> Any:
        """Return the result of the earlier run if it is finished and intact, else ``None``."""
        with suppress(*DAMAGE):
            if self.earlier and (result := self.study.restore(self.earlier, key)):
                result.check()
                return result if result.finished else None
        return None

    def _saved(self, result: Any) -> Any:
        """Write a result to the folder, if there is one, and return the result to keep in memory."""
        if self.folder is None:
            return result
        line = self.folder.add(result)
        stored = Stored(self.folder.path, self.meta, {result.key: line}, self.instances)
        return self.study.restore(stored, result.key) if self.study.lean else result


def described(kind: str, meta: Mapping[str, Any], instances: Sequence[Instance]) -> dict[str, Any]:
    """Return the content of ``run.json`` for a run that starts now."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        **meta,
        "command": " ".join([meta["command"], *map(shlex.quote, plugins.options())]),
        "plugins": [*meta.get("plugins", ()), *(plugin.described() for plugin in plugins.loaded())],
        "needs": [],
        "plan": [],
        "started_utc": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "instances": {one.fingerprint: one.name for one in instances},
        "versions": environment.versions(),
        "machine": environment.machine(),
        "git_commit": environment.git_commit(),
        "code": environment.code_digest(),
        "interrupted": True,
    }


def reopen(folder: str | Path, kind: str | None = None) -> Any:
    """Return the collected results of a folder; raise `UsageError` if it is not a results folder of this `kind`."""
    stored = open_stored(Path(folder), kind)
    with damage_explained(stored.path):
        study = study_of(stored.meta["kind"])
        results = sound(study, stored)
        if not stored.instances and stored.meta["instances"]:
            raise ValueError("none of its instances is as it was written")
        return study.collect(Finished(stored.meta, stored.instances, results, stored.path))


def sound(study: Study[Any], stored: Stored) -> list[Any]:
    """Return the intact results in the order of the plan, and list the damaged ones in ``stored.meta["damaged"]``.

    An unreadable line does not show which result it held, and a shorter journal none; what is missing of the plan is
    counted, unless the run was interrupted or merged without it.
    """
    results, damaged = [], []
    for key in stored.meta["plan"]:
        try:
            if result := study.restore(stored, key):
                results.append(result)
        except DAMAGE as error:
            damaged.append(told(error, 200))
    missing = len(stored.meta["plan"]) - len(results) - len(damaged)
    expected = len(stored.meta["plan"]) if stored.meta["interrupted"] else stored.meta.get("missing", 0)
    if missing and (stored.damaged or missing > expected):
        what, lines = f"{counted(missing, 'result')} missing", counted(stored.damaged, "damaged line")
        damaged.append(f"{lines} of the journal, {what}" if stored.damaged else f"{what} from the journal")
    stored.meta["damaged"] = damaged
    return results


class Checked(NamedTuple):
    """What was found about a result or a table: its label, what holds, and what is wrong; empty where that is nothing.

    Nothing holds of results that have nothing to show, such as skipped ones.
    """

    label: str
    holds: str = ""
    wrong: str = ""


def check(folder: str | Path) -> list[Checked]:
    """Check every result of a folder again, alone and together with all others, and the tables made of them."""
    stored = open_stored(Path(folder))
    with damage_explained(stored.path):
        study, plan = study_of(stored.meta["kind"]), stored.meta["plan"]
        found = {key: _checked(study, stored, key) for key in plan}
        # What does not hold is no evidence about others. Decisions were read and checked one by one, and are not kept.
        sound = [study.restore(stored, key) for key in plan if not found[key].wrong]
        finished = Finished(stored.meta, stored.instances, sound, stored.path)
        for row in study.judged(finished):
            if row.trouble:
                found[row.key] = found[row.key]._replace(wrong=clean(row.trouble, 300))
        whole = not any(one.wrong for one in found.values())
        return [*found.values(), *_names_checked(stored), *(_tables_checked(study, finished) if whole else [])]


def _names_checked(stored: Stored) -> Iterator[Checked]:
    """Find instances with the name, or the published numbers, of others that come with the package."""
    for mark, one in stored.instances.items():
        other, file = namesake(one), instance_file(mark)
        if other is None:
            continue
        if other.fingerprint != mark:
            yield Checked(file, wrong=f"it is named {clean(one.name, 60)}, which is another instance")
        elif any(number not in _published(mark, other) for number in one.published):
            yield Checked(file, wrong="it has published numbers that the packaged instance has not")


def _published(mark: str, one: Instance) -> list[Any]:
    """Return the published numbers of a packaged instance, and of worked examples of the same content."""
    return [number for other in (one, *_examples()) if other.fingerprint == mark for number in other.published]


@functools.cache
def _examples() -> list[Instance]:
    return [load(ref) for ref in references() if ref.startswith("paper/")]


def _checked(study: Study[Any], stored: Stored, key: str) -> Checked:
    label, prefix, line = key, "damaged: ", stored.lines.get(key)
    if line is None:
        return Checked(key, wrong="planned, but not in the journal; --resume runs it")
    try:
        label = study.record(line).named(line)
        result = study.restore(stored, key)
        label, prefix = result.label, ""
        holds = result.holds()
        _check_line(result, line)
        return Checked(label, holds)
    except DAMAGE as error:
        return Checked(label, wrong=prefix + told(error))


def _check_line(result: Result, line: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a line has other fields or files than its result would write."""
    written = json.loads(json.dumps({"record": result.record, "key": result.key, **result.content()}))
    stated = {name: value for name, value in line.items() if name != "files"}
    if other := different(stated, written):
        raise ValueError(f"its line has another {other} than follows from it")
    if set(line["files"]) != set(result.names()):
        raise ValueError("its line has other files than its result")


def different(one: Any, other: Any) -> str | None:
    """Return the place of the first difference of plain data, such as ``row.gap``, or ``None`` if they are equal."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return None if one == other else "value"
    for name in dict.fromkeys([*one, *other]):
        if name not in one or name not in other:
            return clean(name, 40)
        if inner := different(one[name], other[name]):
            return clean(name if inner == "value" else f"{name}.{inner}", 80)
    return None


def _tables_checked(study: Study[Any], finished: Finished) -> Iterator[Checked]:
    """Compare the tables of a folder, which other programs read, with those that its journal gives."""
    assert finished.folder
    for name, content in study.tables(study.collect(finished)).items():
        path = inside(finished.folder, name)
        if path.exists():
            same = read_bytes(path) == content
            other = "it is not the table that the journal gives; the run with --resume writes it again"
            yield Checked(name, "as the journal gives it") if same else Checked(name, wrong=other)


def study_of(kind: str) -> Study[Any]:
    """Return the study of this kind, or raise `UsageError`."""
    if kind not in KINDS:
        raise UsageError(f"results of harness {kind}: this program has no such command")
    study: Study[Any] = importlib.import_module(f"schedgap.harness.{kind}.run").STUDY
    return study


def merge(folders: Sequence[Path], results: Path) -> Any:
    """Merge results folders of one kind and code into a new folder in `results`, and return the collected results.

    Bounds from one part apply to the rows of the others. If several parts have the same result, a finished one is kept.
    Raise `UsageError` if there are fewer than two folders, or they cannot be merged.
    """
    if len({folder.resolve() for folder in folders}) < 2:
        raise UsageError("merge needs two or more different results folders")
    first, *others = parts = [open_stored(folder) for folder in folders]
    for part in others:
        if part.meta["kind"] != first.meta["kind"]:
            raise UsageError(f"{part.path}: results of harness {part.meta['kind']}, not of {first.meta['kind']}")
        if part.meta.get("code") != first.meta.get("code") or not plugins.agree(part.meta, first.meta):
            raise UsageError(
                f"{part.path}: measured by other code than {first.path}, so the two cannot be merged; "
                f"compare them with: harness diff {shlex.join([str(first.path), str(part.path)])}"
            )
    study = study_of(first.meta["kind"])
    done: dict[str, Any] = {}
    for part in parts:
        with damage_explained(part.path):
            for result in sound(study, part):
                if result.key not in done or (result.finished and not done[result.key].finished):
                    done[result.key] = result
    meta = _meta_of_all(parts)
    meta["missing"] = len(meta["plan"]) - len(done)
    instances = {mark: one for part in parts for mark, one in part.instances.items()}
    folder = Folder(new_folder(results, meta), instances.values())
    for key in filter(done.__contains__, meta["plan"]):
        folder.add(done[key])
    return _Run(study, meta, instances, folder, done=done).concluded()


def _meta_of_all(parts: Sequence[Stored]) -> dict[str, Any]:
    """Return ``run.json`` of merged parts: the common values, and each part's own values under ``merged``."""
    metas = [part.meta for part in parts]
    own = ("command", "started_utc", "duration_s", "machine", "versions", "git_commit", "limits")
    return {
        "machine": {"processor": "several machines, see run.json"},
        "versions": {},
        "limits": {},
        **{name: value for name, value in metas[0].items() if all(one.get(name) == value for one in metas)},
        "command": shlex.join(["harness", "merge", *(str(part.path) for part in parts)]),
        "started_utc": min(str(one.get("started_utc")) for one in metas),
        "duration_s": sum(float(one.get("duration_s") or 0) for one in metas),
        "instances": {mark: name for one in metas for mark, name in one["instances"].items()},
        "plan": list(dict.fromkeys(key for one in metas for key in one["plan"])),
        "plugins": list({plugin["name"]: plugin for one in metas for plugin in one.get("plugins", ())}.values()),
        "needs": sorted({name for one in metas for name in one.get("needs", ())}),
        "interrupted": False,
        "merged": [{name: one.get(name) for name in own} for one in metas],
    }

"""Run any study: plan tasks, reuse results of an earlier folder, run the rest, append to the journal, and collect.

A *study* defines its tasks, how a task runs in a worker, how its result is stored, and how results are put together.
Comparisons, sweeps, simulations, audits and searches are studies. :mod:`schedgap.harness.studies.folders` knows them
all, so that results folders of any kind can be read, merged and reported.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

from schedgap.harness.engine import environment
from schedgap.harness.engine.folder import (
    DAMAGE,
    SCHEMA_VERSION,
    Folder,
    damage_explained,
    new_folder,
    open_stored,
    told,
)
from schedgap.harness.engine.pool import Pool
from schedgap.harness.engine.result import CheckedRow, Result, Stored
from schedgap.harness.engine.task import Task
from schedgap.harness.show.text import clean
from schedgap.instances import plugins
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted, some

if TYPE_CHECKING:
    from schedgap.harness.engine.cluster import DaskCluster

F = TypeVar("F")

Reference = str | Path | Instance
"""A reference to an instance, the path of its file, or a loaded instance."""

Stages = Sequence[Callable[[Sequence[Any]], Sequence[Task[Any]]]]
"""The stages of a study, one after another: each returns its tasks, given the results of all earlier stages."""


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

    `judged` returns the rows of results after comparing them with each other: an objective beyond the bound of another
    row, for example, makes a row WRONG. A `lean` study drops large parts of saved results from memory, and reads them
    back on access.
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
    stages: Stages,
    meta: Mapping[str, Any],
    *,
    instances: Sequence[Instance] = (),
    news: str = "",
    **running: Unpack[Running],
) -> F:
    """Run a study and return its collected results; Ctrl-C ends it early and keeps finished results.

    Parameters
    ----------
    study, stages, instances
        The kind of study, its stages of tasks, and the instances that they are about.
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
    workers: Pool | DaskCluster = Pool(running.get("jobs", 0), tell, running.get("on_gap", lambda task, gap: None))
    if (dask := running.get("dask")) is not None:
        from schedgap.harness.engine.cluster import DaskCluster

        workers = DaskCluster(dask)
    with closing(workers):
        path = earlier.path if earlier else new_folder(Path(results), meta) if results else None
        run = _Started(study, meta, by_fingerprint, Folder(path, instances, meta["command"]) if path else None, earlier)
        if news:
            tell(news)
        run.go(stages, workers, running)
    return concluded(study, run.meta, by_fingerprint, run.done, run.folder)


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
            if entry is not None and entry is not False and entry not in ((), ""):
                words.append(f"--{name.replace('_', '-')}")
                values = () if entry is True else entry if isinstance(entry, tuple) else (entry,)
                words += [one.name if isinstance(one, Instance) else str(one) for one in values]
    return shlex.join(words)


def concluded(
    study: Study[F],
    meta: dict[str, Any],
    instances: dict[str, Instance],
    done: Mapping[str, Any],
    folder: Folder | None,
) -> F:
    """Collect the results `done`, by key, in the order of the plan, and write the tables of the whole run."""
    ordered = [done[key] for key in meta["plan"] if key in done]
    collected = study.collect(Finished(meta, instances, ordered, folder.path if folder else None))
    if folder:
        folder.finish(meta, study.tables(collected))
    return collected


@dataclass
class _Started(Generic[F]):
    """A running study; `done` maps keys to results."""

    study: Study[F]
    meta: dict[str, Any]
    instances: dict[str, Instance]
    folder: Folder | None
    earlier: Stored | None = None
    done: dict[str, Any] = field(default_factory=dict)

    def go(self, stages: Stages, workers: Pool | DaskCluster, running: Running) -> None:
        """Run stage after stage, until the last has ended or Ctrl-C is pressed."""
        began = time.perf_counter()
        with suppress(KeyboardInterrupt):
            for stage in stages:
                if tasks := stage(list(self.done.values())):
                    self._stage({task.key: task for task in tasks}, workers, running)
            self.meta["interrupted"] = False
        if self.meta["interrupted"] and self.earlier:  # the tables keep what this run did not get to
            self.meta["plan"] = list(dict.fromkeys([*self.meta["plan"], *self.earlier.meta["plan"]]))
            self.done = {result.key: result for result in sound(self.study, self.earlier)} | self.done
        self.meta["duration_s"] = time.perf_counter() - began

    def _stage(self, tasks: Mapping[str, Task[Any]], workers: Pool | DaskCluster, running: Running) -> None:
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
        "load": environment.load(),
        "git_commit": environment.git_commit(),
        "code": environment.code_digest(),
        "interrupted": True,
    }


def reopened(study: Study[F], stored: Stored) -> F:
    """Return the collected results of a folder of this study."""
    with damage_explained(stored.path):
        results = sound(study, stored)
        if not stored.instances and stored.meta["instances"]:
            raise ValueError("none of its instances is as it was written")
        return study.collect(Finished(stored.meta, stored.instances, results, stored.path))


def sound(study: Study[Any], stored: Stored) -> list[Any]:
    """Return the intact results in the order of the plan, and list the damaged ones in ``stored.meta["damaged"]``.

    A damaged line of the journal does not show which result it held, and a journal that was cut off shows nothing at
    all. So the results of the plan that are missing are counted, except those that an interrupted or merged run lacks.
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

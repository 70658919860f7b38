"""One way to run a study: plan → what an earlier folder already has → run → journal → collect.

A *study* is tasks, how one task runs in a worker, how its result is journalled, and how results are put together.
Comparisons, sweeps, simulations, audits and searches are studies; each is found by its kind
(:data:`schedgap.harness.engine.KINDS`), so that a results folder of any kind can be read, resumed, merged and reported.
"""

from __future__ import annotations

import importlib
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

from schedgap.harness import environment
from schedgap.harness.engine import KINDS
from schedgap.harness.engine.folder import DAMAGE, SCHEMA_VERSION, Folder, damage_explained, new_folder, open_stored
from schedgap.harness.engine.pool import Pool
from schedgap.harness.engine.result import Result, Stored
from schedgap.harness.engine.task import Task
from schedgap.harness.text import clean, counted, some
from schedgap.instances import plugins
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance

if TYPE_CHECKING:
    from schedgap.harness.engine.cluster import Cluster

F = TypeVar("F")

Reference = str | Path | Instance
"""What names an instance, or a loaded one."""

Stages = Callable[[Sequence[Any]], Sequence[Task[Any]]]
"""A function that returns the next tasks from all results so far, none at the end."""


@dataclass(frozen=True)
class Finished:
    """All that a study found: content of ``run.json``, instances by fingerprint, results in the order of the plan."""

    meta: dict[str, Any]
    instances: dict[str, Instance]
    results: Sequence[Any]
    folder: Path | None = None


@dataclass(frozen=True)
class Study(Generic[F]):
    """A kind of study: its command, types of its results, what puts them together, and files that hold all of it.

    Where it is `lean`, large parts of results that are saved leave memory, and are read back when they are asked for.
    """

    kind: str
    records: tuple[type[Result], ...]
    collect: Callable[[Finished], F]
    tables: Callable[[F], Mapping[str, bytes]]
    lean: bool = False

    def restore(self, stored: Stored, key: str) -> Any:
        """Return a result that a journal kept, ``None`` where it has none; raise `ValueError` if a file is damaged."""
        if (line := stored.lines.get(key)) is None:
            return None
        for name in line["files"]:
            stored.file(key, name).content()
        by_name = {result.record: result for result in self.records}
        return by_name[line["record"]].restored(line, stored)


class Running(TypedDict, total=False):
    """How a study runs, the same for all of them.

    Attributes
    ----------
    jobs, dask
        Worker processes here (0, the default: as many as there are cores), or the address of a Dask scheduler.
    results, resume
        Folder in which a new results folder is made, if any; or an earlier results folder to complete: finished results
        of the same work, limits and code stay, others are tried again, more instances are fine.
    on_start, on_result
        Called with the number of tasks that are going to run, and with each result.
    """

    jobs: int
    dask: str | None
    results: str | Path | None
    resume: str | Path | None
    on_start: Callable[[int], None]
    on_result: Callable[[Any], None]


def execute(
    study: Study[F],
    plan: Sequence[Task[Any]] | Stages,
    meta: Mapping[str, Any],
    *,
    instances: Sequence[Instance] = (),
    **running: Unpack[Running],
) -> F:
    """Run a study; Ctrl-C ends it early, finished results stay.

    Parameters
    ----------
    study, plan, instances
        What to run, and what it is about.
    meta
        What ``run.json`` says of it: ``command``, and whatever is its own. Under ``rules`` stands what must be the same
        for a run to be resumed.
    **running
        Workers, results folder and callbacks, see :class:`Running`.

    Raises
    ------
    UsageError
        If an option is unknown, no cluster answers, results cannot be written, or the earlier folder is of something
        else; nothing has run.
    """
    for name in running.keys() - Running.__annotations__.keys():
        raise UnknownNameError(unknown("option", name, Running.__annotations__))
    if running.get("jobs", 0) < 0:
        raise UsageError(f"jobs = {running['jobs']}: 0, for as many as there are cores, or more")
    by_fingerprint = {one.fingerprint: one for one in instances}
    if len(by_fingerprint) < len(instances):
        raise UsageError("two of the instances have the same content; name each once")
    plugins.refresh()
    meta = described(study.kind, meta, instances)
    resume, results = running.get("resume"), running.get("results")
    earlier = _earlier(Path(resume), meta) if resume else None
    workers: Pool | Cluster = Pool(running.get("jobs", 0))
    if (dask := running.get("dask")) is not None:
        from schedgap.harness.engine.cluster import Cluster

        workers = Cluster(dask)
    with closing(workers):
        path = earlier.path if earlier else new_folder(Path(results), meta) if results else None
        run = _Run(study, meta, by_fingerprint, Folder(path, instances) if path else None, earlier)
        run.go(plan if callable(plan) else lambda done: [] if done else plan, workers, running)
    return run.concluded()


def _earlier(folder: Path, meta: Mapping[str, Any]) -> Stored:
    """Return the run that is to be resumed; raise `UsageError` if this one cannot go on there."""
    stored = open_stored(folder, meta["kind"])
    if not set(stored.meta["instances"]) <= set(meta["instances"]):  # the folder would lose the others
        names = some(list(stored.meta["instances"].values()))
        raise UsageError(f"{folder}: a run of {names}; only a run of at least these instances can go on there")
    if (other := stored.meta.get("rules")) != meta.get("rules"):
        raise UsageError(f"{folder}: a run under other rules ({other}); it cannot be resumed under these")
    return stored


def several(values: Any) -> list[Any]:
    """Return values as a list, also where one stands alone."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | Instance) else [values]


def command_line(options: Mapping[str, Any], *command: str) -> str:
    """Return a command to repeat: lists are repeated options, tuples several values; what is empty is left out."""
    words = ["harness", *command]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one is not False and one != ():
                words.append(f"--{name.replace('_', '-')}")
                values = () if one is True else one if isinstance(one, tuple) else (one,)
                words += [it.name if isinstance(it, Instance) else str(it) for it in values]
    return shlex.join(words)


@dataclass
class _Run(Generic[F]):
    """A study while it runs; `done` has its results by key."""

    study: Study[F]
    meta: dict[str, Any]
    instances: dict[str, Instance]
    folder: Folder | None
    earlier: Stored | None = None
    done: dict[str, Any] = field(default_factory=dict)

    def go(self, plan: Stages, workers: Pool | Cluster, running: Running) -> None:
        """Run stage after stage."""
        began = time.perf_counter()
        with suppress(KeyboardInterrupt):
            while tasks := plan(list(self.done.values())):
                self._stage({task.key: task for task in tasks}, workers, running)
            self.meta["interrupted"] = False
        self.meta["duration_s"] = time.perf_counter() - began

    def concluded(self) -> F:
        """Put the results together in the order of the plan, and write the files that hold the whole run."""
        ordered = [self.done[key] for key in self.meta["plan"] if key in self.done]
        path = self.folder.path if self.folder else None
        found = self.study.collect(Finished(self.meta, self.instances, ordered, path))
        if self.folder:
            self.folder.finish(self.meta, self.study.tables(found))
        return found

    def _stage(self, tasks: Mapping[str, Task[Any]], workers: Pool | Cluster, running: Running) -> None:
        meta = self.meta
        meta["needs"] = sorted({*meta["needs"], *(one.name for task in tasks.values() for one in task.plugins)})
        meta["plan"] = list(dict.fromkeys([*meta["plan"], *tasks]))
        if self.folder:
            self.folder.describe(meta)
        self.done |= {key: kept for key in tasks if (kept := self._kept(key))}
        left = [task for key, task in tasks.items() if key not in self.done]
        if "on_start" in running:
            running["on_start"](len(left))
        for result in workers.run(left):
            self.done[result.key] = self._saved(result)
            if "on_result" in running:
                running["on_result"](result)

    def _kept(self, key: str) -> Any:
        """Return the result of an earlier run if it is finished and sound; what is not is tried again."""
        with suppress(*DAMAGE):
            if self.earlier and (result := self.study.restore(self.earlier, key)):
                result.check()
                return result if result.finished else None
        return None

    def _saved(self, result: Any) -> Any:
        """Write a result to the folder, if there is one, and return what is to stay of it in memory."""
        if self.folder is None:
            return result
        line = self.folder.add(result)
        stored = Stored(self.folder.path, self.meta, {result.key: line}, self.instances)
        return self.study.restore(stored, result.key) if self.study.lean else result


def described(kind: str, meta: Mapping[str, Any], instances: Sequence[Instance]) -> dict[str, Any]:
    """Return what ``run.json`` says of a run that starts now."""
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
    """Return what a results folder holds, as its study returned it; raise `UsageError` if it is none of that `kind`."""
    stored = open_stored(Path(folder), kind)
    with damage_explained(stored.path):
        study = study_of(stored.meta["kind"])
        results = sound(study, stored)
        if not stored.instances and stored.meta["instances"]:
            raise ValueError("none of its instances is as it was written")
        return study.collect(Finished(stored.meta, stored.instances, results, stored.path))


def sound(study: Study[Any], stored: Stored) -> list[Any]:
    """Return the results that are as they were written, in the order of the plan; ``meta`` then names the others.

    A line that cannot be read does not say whose it was: it is counted where planned results are missing.
    """
    results, damaged = [], []
    for key in stored.meta["plan"]:
        try:
            if result := study.restore(stored, key):
                results.append(result)
        except DAMAGE as error:
            damaged.append(clean(error, 200))
    missing = len(stored.meta["plan"]) - len(results) - len(damaged)
    if stored.damaged and missing:
        lines = counted(stored.damaged, "damaged line")
        damaged.append(f"{lines} of the journal, {counted(missing, 'result')} missing")
    stored.meta["damaged"] = damaged
    return results


def check(folder: str | Path) -> list[tuple[str, str, str]]:
    """Check every result of a folder again; return what each is, what holds, and what is wrong (empty: nothing)."""
    stored = open_stored(Path(folder))
    with damage_explained(stored.path):
        study = study_of(stored.meta["kind"])
        return [_checked(study, stored, key) for key in stored.meta["plan"]]


def _checked(study: Study[Any], stored: Stored, key: str) -> tuple[str, str, str]:
    label, trouble = key, "damaged: "
    try:
        if (result := study.restore(stored, key)) is None:
            return key, "", "planned, but not in the journal; --resume runs it"
        label, trouble = result.label, ""
        return label, result.holds(), ""
    except DAMAGE as error:
        return label, "", trouble + clean(error, 300)


def study_of(kind: str) -> Study[Any]:
    """Return the study of that kind, or raise `UsageError`."""
    if kind not in KINDS:
        raise UsageError(f"results of harness {kind}: this program has no such command")
    study: Study[Any] = importlib.import_module(f"schedgap.harness.{kind}.run").STUDY
    return study


def merge(folders: Sequence[Path], results: Path) -> Any:
    """Return what several folders of one kind and code hold together, each result once, in a new folder in `results`.

    Bounds of one part hold for the rows of the others. Of a result that several parts have, a finished one is kept. It
    raises `UsageError` if there are fewer than two, one is no results folder, or they cannot be one table.
    """
    if len({folder.resolve() for folder in folders}) < 2:
        raise UsageError("merging takes two or more results folders")
    first, *others = parts = [open_stored(folder) for folder in folders]
    for part in others:
        if part.meta["kind"] != first.meta["kind"]:
            raise UsageError(f"{part.path}: results of harness {part.meta['kind']}, not of {first.meta['kind']}")
        if part.meta.get("code") != first.meta.get("code") or not plugins.agree(part.meta, first.meta):
            raise UsageError(
                f"{part.path}: measured by other code than {first.path}, so the two cannot be one table; "
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
    """Return ``run.json`` of merged parts: what is the same everywhere, and each part's own under ``merged``."""
    metas = [part.meta for part in parts]
    told = ("command", "started_utc", "duration_s", "machine", "versions", "git_commit", "limits")
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
        "plugins": list({it["name"]: it for one in metas for it in one.get("plugins", ())}.values()),
        "needs": sorted({name for one in metas for name in one.get("needs", ())}),
        "interrupted": False,
        "merged": [{name: one.get(name) for name in told} for one in metas],
    }

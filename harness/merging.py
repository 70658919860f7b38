"""Results folders of several machines, put together: the parts of one sweep become one table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.comparing import assemble, finished, task_results
from harness.comparison import Comparison
from harness.run import Run
from harness.store import Store, new_folder, read_run
from harness.tasks import TaskResult
from instances.errors import UsageError
from instances.schema import Instance


def merge(folders: Sequence[Path], results: Path) -> Comparison:
    """Return one comparison with the rows of all folders, each row once, certified anew, in a new results folder.

    Bounds of one part hold for the rows of the others. Of a row that several parts have, a finished one is kept.

    Parameters
    ----------
    folders
        Results folders of the same code.
    results
        Folder in which the new one is made.

    Raises
    ------
    UsageError
        If there are fewer than two, one is no results folder, or they cannot be one table.
    """
    if len({folder.resolve() for folder in folders}) < 2:
        raise UsageError("merging takes two or more results folders")
    runs = [read_run(folder) for folder in folders]
    _refuse_strangers(folders, runs)
    found = _by_key(runs)
    _refuse_doubles(list(found.values()))
    instances = {mark: instance for run in runs for mark, instance in run.instances.items()}
    meta = _meta(folders, runs) | {"plan": _plan(runs)}
    store = _filled(new_folder(results, meta), meta, list(instances.values()), list(found.values()))
    run = assemble(meta, list(instances.values()), meta["plan"], found.values())
    store.finish(run)
    return Comparison(run, store.folder)


def _refuse_strangers(folders: Sequence[Path], runs: Sequence[Run]) -> None:
    """Raise where rows were not measured by the same code: the same name would mean different things."""
    for folder, run in zip(folders[1:], runs[1:], strict=True):
        if run.meta.get("code") != runs[0].meta.get("code"):
            raise UsageError(
                f"{folder}: results of other code than {folders[0]}; harness diff compares them, one table they are not"
            )


def _by_key(runs: Sequence[Run]) -> dict[str, TaskResult]:
    """Return the results by key, finished ones before others, earlier runs before later ones."""
    found: dict[str, TaskResult] = {}
    for run in runs:
        for result in task_results(run):
            known = found.get(result.row.key)
            if known is None or (finished(result.row) and not finished(known.row)):
                found[result.row.key] = result
    return found


def _refuse_doubles(results: Sequence[TaskResult]) -> None:
    """Raise where a method has two rows that only unnamed limits tell apart."""
    seen: set[object] = set()
    for row in (result.row for result in results):
        if row.name in seen:
            raise UsageError(
                f"{row.method} on {row.instance} ran under two limits of the same name; name them in the sweep file"
            )
        seen.add(row.name)


def _plan(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(key for run in runs for key in run.meta["plan"]))


def _meta(folders: Sequence[Path], runs: Sequence[Run]) -> dict[str, Any]:
    """Return what ``run.json`` says: of what is the same everywhere that, and each part's own beside it."""
    metas = [run.meta for run in runs]
    told = ("command", "started_utc", "duration_s", "machine", "versions", "git_commit", "limits")
    shared = {name: metas[0].get(name) for name in told if all(m.get(name) == metas[0].get(name) for m in metas)}
    return {
        "schema_version": metas[0]["schema_version"],
        "machine": {"processor": "several machines, see run.json"},
        "versions": {},
        "limits": {},
        **shared,
        "command": shlex.join(["harness", "merge", *map(str, folders)]),
        "started_utc": min(str(meta.get("started_utc")) for meta in metas),
        "duration_s": sum(float(meta.get("duration_s") or 0) for meta in metas),
        "instances": {mark: name for meta in metas for mark, name in meta["instances"].items()},
        "seeds": sorted({seed for meta in metas for seed in meta["seeds"]}),
        "code": metas[0].get("code"),
        "interrupted": False,
        "merged": [{name: meta.get(name) for name in told} for meta in metas],
    }


def _filled(folder: Path, meta: dict[str, Any], instances: Sequence[Instance], results: Sequence[TaskResult]) -> Store:
    store = Store(folder)
    store.add_instances(instances)
    store.write_run(meta)
    for result in results:
        store.add(result)
    return store

"""What logs of batch systems share: the resource by which jobs are counted, ids that are used again, releases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from schedgap.instances.importers import history
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.importers.table import LOOK_AHEAD, check_format
from schedgap.instances.text import counted

UNITS = {"gpus": "GPU", "cpus": "CPU", "nodes": "node"}
"""Resources by which jobs may be counted, and their units."""

SUSPENDED = "SUSPENDED"
"""Status of a run after which the same job goes on (:func:`requeued`)."""

LIMIT = re.compile(r"(\d{1,9}:){0,3}\d{1,9}(\.\d{1,9})?")

Holding = tuple[Mapping[str, float], str, Mapping[str, int]]
"""What a run holds: amounts by resource, its GPU type, and its GPUs by server (empty if the log does not say)."""


def check_records(path: Path, text: str, format: str, recognise: Callable[[str], int], wanted: str) -> None:
    """Raise `InstanceError` if none of the first lines is a record; the very first may be cut off, or a comment."""
    if not any(recognise(line) for line in text[:LOOK_AHEAD].splitlines()):
        check_format(path, text, format, wanted)


def by_resource(
    held: Iterable[Holding], index: pd.Index, resource: str | None, notes: list[str]
) -> tuple[pd.DataFrame, str]:
    """Return ``gpus``, ``type`` and ``hosts`` of each run by the resource asked for, or the first that the log has.

    The second value is the unit. Runs without a GPU type are on the only type, if there is only one.
    """
    rows = list(held)
    amounts = pd.DataFrame([amounts for amounts, *_ in rows], index, columns=list(UNITS), dtype=float).fillna(0.0)
    types = pd.Series([type for _, type, _ in rows], index, dtype=object)
    chosen = resource or next((name for name in UNITS if amounts[name].any()), "nodes")
    frame = pd.DataFrame({"gpus": np.ceil(amounts[chosen]), "type": ""}, index)
    frame["hosts"] = pd.Series([hosts for *_, hosts in rows], index, dtype=object)
    if chosen != "gpus":
        notes.append(f"jobs are counted by {chosen}" + ("" if resource else ": the log has no GPUs"))
        frame["hosts"] = frame["hosts"].map(lambda hosts: dict.fromkeys(hosts, 0))
        return frame, UNITS[chosen]
    return frame.assign(type=on_the_only_type(types, frame["gpus"] > 0, notes)), UNITS[chosen]


def on_the_only_type(types: pd.Series, holds: pd.Series, notes: list[str]) -> pd.Series:
    """Return the GPU types of runs; those that hold GPUs of no type are on the only type, if there is only one."""
    untyped = (types == "") & holds
    if len(named := set(types) - {""}) != 1 or not untyped.any():
        return types
    (only,) = named
    notes.append(f"{counted(int(untyped.sum()), 'job')} without a GPU type: on {only}, the only one")
    return types.where(~untyped, only)


def distinct(ids: pd.Series, submit: pd.Series, notes: list[str]) -> pd.Series:
    """Return the ids, with ``(2)`` and so on for further jobs with the same id: those submitted at another time."""
    jobs = pd.DataFrame({"id": ids, "submit": submit}).drop_duplicates().sort_values("submit", kind="stable")
    number = jobs.groupby("id").cumcount() + 1
    if not (number > 1).any():
        return ids
    notes.append(f"{counted(int((number > 1).sum()), 'job')} with an id of an earlier job: told apart by (2), (3), …")
    names = jobs["id"].where(number == 1, jobs["id"] + "(" + number.astype(str) + ")")
    keys = pd.MultiIndex.from_frame(pd.DataFrame({"id": ids, "submit": submit}))
    return pd.Series(names.set_axis(pd.MultiIndex.from_frame(jobs)).reindex(keys).to_numpy(), ids.index)


def released(submit: pd.Series, eligible: pd.Series, start: pd.Series, notes: list[str]) -> pd.Series:
    """Return when jobs were released: when they became eligible, if that is after their submission."""
    eligible = eligible.where(~(eligible > start), start)
    later = eligible > submit
    if later.any():
        note = "became eligible after their submission: they count as submitted then"
        notes.append(f"{counted(int(later.sum()), 'job')} {note}")
    return submit.where(~later, eligible)


def requeued(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the lines with a new id for each requeue of a job, except after a preemption or suspension."""
    frame = frame.sort_values("start", kind="stable")
    again = frame.groupby("id")
    before, ended = again["status"].shift(), again["end"].shift()
    fresh = before.notna() & ~before.isin(["PREEMPTED", SUSPENDED])
    if not before.notna().any():
        return frame.sort_index()
    attempt = fresh.groupby(frame["id"]).cumsum()
    if again_released := int(fresh.sum()):
        requeues = counted(again_released, "requeue")
        notes.append(f"{requeues}: separate jobs, released when the previous attempt has ended")
    names = frame["id"].where(attempt == 0, frame["id"] + "#" + (attempt + 1).astype(str))
    submit = frame["submit"].where(~fresh, np.fmax(frame["submit"], ended)).groupby(names).transform("first")
    return frame.assign(id=names, submit=submit).sort_index()


def attempts(rows: FileRows, frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the runs without those that occur twice or overlap; after a requeue, they are of another job.

    A job ended as its last run did.
    """
    runs = requeued(history.once(rows, rows.kept(frame)), notes).sort_values("start", kind="stable")
    return runs.assign(status=runs.groupby("id")["status"].transform("last").replace(SUSPENDED, "")).sort_index()


def limit_s(text: str) -> float:
    """Return a time limit in seconds from a number or ``[[d:]h:]mm:ss``; NaN if it is neither."""
    if not LIMIT.fullmatch(text):
        return float("nan")
    return sum(float(part) * unit for part, unit in zip(text.split(":")[::-1], (1, 60, 3600, 86400), strict=False))

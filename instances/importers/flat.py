"""Traces that are one CSV table with a header and a job per line: what such a format says about itself is data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import Column, check_unique, duration, gang, header_of, read_table
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

NEVER_RAN = "they have no duration"

SLURM = (
    Column("job_id", "text", "the name of the job"),
    Column("user", "text", "the name of a user", blank=True),
    gang("gpu_num"),
    Column("state", "text", "a status such as COMPLETED", blank=True),
    Column("submit_time", "date", "a date such as 2020-06-09 18:41:01"),
    duration("duration", blank=True),
)
FIELDS = {"id": "job_id", "submit_s": "submit_time", "gpus": "gpu_num", "duration_s": "duration", "status": "state"}
"""Columns of the logs of Slurm that Helios and Acme publish, and the fields that they are."""


@dataclass(frozen=True)
class Flat:
    """A format of one table.

    Attributes
    ----------
    id, title, layout, source, licence
        As in :class:`~schedgap.instances.importers.registry.ImporterSpec`.
    columns
        What is read.
    fields
        Column of each field of :class:`~schedgap.instances.importers.trace.TraceJob`; without an ``id``, that is the
        job's place in the file.
    per_s
        Units of time in a second, for arrivals and durations.
    about
        Further fields of :class:`~schedgap.instances.importers.trace.Trace`.
    """

    id: str
    title: str
    layout: str
    source: str
    licence: str
    columns: Sequence[Column]
    fields: Mapping[str, str]
    per_s: float = 1.0
    about: Mapping[str, Any] = field(default_factory=dict)

    def read(self, path: Path, options: Options) -> Instance:
        """Return the instance of a trace (see :func:`schedgap.instances.importers.import_trace`)."""
        frame = read_table(path, self.id, self.columns)
        if "id" in self.fields:
            check_unique(path, frame[self.fields["id"]])
        on_gpus = frame[frame[self.fields["gpus"]] > 0]
        ran = on_gpus[on_gpus[self.fields["duration_s"]].notna()]
        places = ran.index.map({line: place for place, line in enumerate(frame.index)})
        jobs = [self.job(f"job-{at}", row) for at, row in zip(places, ran.to_dict("records"), strict=True)]
        left_out = {NO_GPU: len(frame) - len(on_gpus), NEVER_RAN: len(on_gpus) - len(ran)}
        return to_instance(Trace(self.id, path, jobs, left_out, **self.about), options)

    def job(self, name: str, row: Mapping[Any, Any]) -> TraceJob:
        """Return the job of a line."""
        found = {"id": name, **{key: row[column] for key, column in self.fields.items()}}
        found |= {key: int(found[key]) for key in ("gpus", "iterations") if key in found}
        found |= {key: found[key] / self.per_s for key in ("submit_s", "duration_s")}
        return TraceJob(**found | {"status": found.get("status") or None})


def register(format: Flat) -> None:
    """Register an importer of one table."""
    about = (format.id, format.title, format.layout, format.source, format.licence)
    IMPORTERS.register(ImporterSpec(*about, format.read, header_of(format.columns)))

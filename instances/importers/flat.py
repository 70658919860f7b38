"""Traces that are one CSV table with a header and a job per line: ``formats.toml`` says how such a format looks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from schedgap.instances.importers import table
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import Column, check_unique, header_of, read_table
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

NEVER_RAN = "they have no duration"

KINDS = {kind: getattr(table, kind) for kind in ("gang", "work", "duration", "arrival")}
"""Kinds of columns that know what is right."""


@dataclass(frozen=True)
class Flat:
    """What a format of one table adds to its :class:`~schedgap.instances.importers.registry.ImporterSpec`.

    Attributes
    ----------
    fields
        Column of each field of :class:`~schedgap.instances.importers.trace.TraceJob`; without an ``id``, that is the
        job's place in the file.
    per_s
        Units of time in a second, for arrivals and durations.
    about
        Further fields of :class:`~schedgap.instances.importers.trace.Trace`.
    """

    id: str
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


def _column(name: str, kind: Any, **limits: Any) -> Column:
    return KINDS[kind](name, **limits) if kind in KINDS else Column(name, kind, **limits)


def _register(id: str, columns: Mapping[str, dict[str, Any]], words: Mapping[str, str], **facts: Any) -> None:
    fields = {given.pop("field"): name for name, given in columns.items() if "field" in given}
    flat = Flat(id, [_column(name, **given) for name, given in columns.items()], fields, **facts)
    IMPORTERS.register(ImporterSpec(id, read=flat.read, recognise=header_of(flat.columns), **words))


for _id, _facts in tomllib.loads(resources.files(__package__).joinpath("formats.toml").read_text("utf-8")).items():
    _words = {name: _facts.pop(name) for name in ("title", "layout", "source", "licence")}
    _register(_id, _facts.pop("columns"), _words, **_facts)

"""Jobs as columns: a log of a million jobs takes an array per field, and a :class:`Job` exists only while it is used.

A column is named like its field, with a dot for the fields of a job's history (``history.requested_s``). It is an array
of numbers, or a list of values in plain data with ``None`` for jobs that leave the field at its default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema, to_json

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import limits
from schedgap.instances.schema.base import Name, violation
from schedgap.instances.schema.job import MOST_RUNS, History, Job

Column = Sequence[Any] | NDArray[Any]

INSIDE = "history"
"""Field of a job whose own fields are columns."""

GPU_TYPE, RUNS, HOSTS, REQUESTED, PARTITION, ELSEWHERE = (
    f"{INSIDE}.{name}" for name in ("gpu_type", "runs", "hosts", "requested_s", "partition", "durations_s")
)
"""Columns of histories."""

LEAST = {"submit_s": ("f", 0), "gpus": ("i", 1), "epochs": ("i", 1), "weight": ("f", 0), "duration_s": ("f", 0)}
"""Columns that importers of logs make as arrays, with their kinds of numbers and least values."""

TEXTS = ("tenant", "status", PARTITION, GPU_TYPE)
USUAL = {"id", *LEAST, *TEXTS, "rates", RUNS, HOSTS, REQUESTED, ELSEWHERE}
"""Columns that importers of logs make."""

CHUNK = 10_000
"""Jobs that are made at a time."""

_FIELDS = {name: field.default for name, field in Job.model_fields.items() if name != INSIDE}
_FIELDS |= {f"{INSIDE}.{name}": field.default for name, field in History.model_fields.items()}
DEFAULTS = {name: list(value) if isinstance(value, tuple) else value for name, value in _FIELDS.items()}
"""Default of each column, as plain data; pydantic's marker for fields that every job has."""


class PlainJobs(Sequence[dict[str, Any]]):
    """Jobs as plain data, as in canonical JSON, made from `columns` on demand. Do not change the columns."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> PlainJobs:
        """Return the columns of jobs as plain data."""
        if isinstance(rows, PlainJobs):
            return rows
        jobs = list(rows)
        insides = [job.get(INSIDE, {}) for job in jobs]
        names = dict.fromkeys(chain.from_iterable(jobs))
        columns = {name: [job.get(name) for job in jobs] for name in names if name != INSIDE}
        inner = dict.fromkeys(chain.from_iterable(insides))
        return cls(columns | {f"{INSIDE}.{name}": [one.get(name) for one in insides] for name in inner})

    def __len__(self) -> int:
        return len(self.columns.get("id", ()))

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> PlainJobs: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | PlainJobs:
        if isinstance(index, slice):
            return PlainJobs({name: column[index] for name, column in self.columns.items()})
        at = range(len(self))[index]
        return next(iter(self[at : at + 1]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        defaults = [DEFAULTS[name] for name in self.columns]
        names = [name.removeprefix(f"{INSIDE}.") for name in self.columns]
        inside = [name.startswith(f"{INSIDE}.") for name in self.columns]
        for first in range(0, len(self), CHUNK):
            parts = [column[first : first + CHUNK] for column in self.columns.values()]
            lists = (part.tolist() if isinstance(part, np.ndarray) else part for part in parts)
            for values in zip(*lists, strict=True):
                job: dict[str, Any] = {}
                own: dict[str, Any] = {}
                for name, value, default, nested in zip(names, values, defaults, inside, strict=True):
                    if value is not None and value != default:
                        (own if nested else job)[name] = value
                if own:
                    job[INSIDE] = own
                yield job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(dict.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def in_file(self, name: str) -> list[Any]:
        """Return a column as a file has it: plain data, ``None`` where a job has the default."""
        column, default = self.columns[name], DEFAULTS[name]
        values = column.tolist() if isinstance(column, np.ndarray) else column
        return [None if value == default else value for value in values]

    def texts(self, name: str) -> Column:
        """Return a column ``(n,)`` of texts or other values in plain data, ``None`` where a job has none."""
        column = self.columns.get(name)
        return [None] * len(self) if column is None else column

    def numbers(self, name: str, default: float) -> Array:
        """Return a column ``(n,)`` of numbers, with the default where a job has none."""
        column = self.columns.get(name)
        if column is None:
            return np.full(len(self), default, float)
        if not isinstance(column, np.ndarray):
            column = [default if value is None else value for value in column]
        return np.asarray(column, float)

    def pairs(self, name: str) -> tuple[Ints, Array]:
        """Return the pairs ``(k, 2)`` in a column of lists of pairs of numbers, and the job ``(k,)`` of each."""
        column = self.columns.get(name, ())
        if isinstance(column, np.ndarray):
            return np.repeat(np.arange(len(column)), column.shape[1]), column.reshape(-1, 2)
        counts = np.array([len(pairs or ()) for pairs in column], np.int64)
        found = np.array([pair for pairs in column for pair in pairs or ()], float)
        return np.repeat(np.arange(counts.size), counts), found.reshape(-1, 2)


_Number = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
_JOBS, _NAMES = TypeAdapter(tuple[Job, ...]), TypeAdapter(list[Name])
_RATES, _SECONDS = TypeAdapter(list[Mapping[Name, _Number]]), TypeAdapter(set[_Number])
_PLACES = TypeAdapter(list[list[Mapping[Name, Annotated[int, Field(ge=1, strict=True)]]]])


class JobTable(Sequence[Job]):
    """The jobs of an instance as columns; they are made on demand, and not kept."""

    def __init__(self, plain: PlainJobs) -> None:
        self.plain = plain

    @classmethod
    def validated(cls, columns: Mapping[str, Column]) -> JobTable:
        """Return the jobs in the columns of a file; raise `ValidationError` if one is invalid."""
        sizes = {n: len(column) if isinstance(column, list | np.ndarray) else -1 for n, column in columns.items()}
        if wrong := [name for name in columns if name not in DEFAULTS]:
            raise violation(f"jobs.{wrong[0]}", "a column", f"known: {', '.join(DEFAULTS)}")
        if "id" not in sizes or len(found := set(sizes.values())) > 1 or -1 in found:
            right = "a list of jobs, or columns: lists of equal length, one of them of ids"
            raise violation("jobs", f"columns {', '.join(columns)}" if columns else "{}", right)
        plain, rows = PlainJobs(columns), []
        for first in range(0, len(plain), CHUNK):
            try:
                jobs = _JOBS.validate_json(to_json(list(plain[first : first + CHUNK])))
            except ValidationError as error:
                raise _further(error, first) from None
            rows.append(PlainJobs.of(_JOBS.dump_python(jobs, mode="json", exclude_defaults=True)))
        names = dict.fromkeys(chain.from_iterable(part.columns for part in rows))
        whole = {name: [*chain.from_iterable(part.texts(name) for part in rows)] for name in names}
        return cls(PlainJobs({name: _narrow(column) for name, column in whole.items()}))

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> JobTable:
        """Return the jobs in some columns; raise `ValidationError` if one is invalid.

        Columns of a log as an importer makes them are tested as a whole, others job by job.
        """
        return cls(PlainJobs(columns)) if _sound(columns) else cls.validated(columns)

    @cached_property
    def ids(self) -> Column:
        """The ids of the jobs."""
        return self.plain.columns["id"]

    def __len__(self) -> int:
        return len(self.plain)

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> JobTable: ...
    def __getitem__(self, index: int | slice) -> Job | JobTable:
        if isinstance(index, slice):
            return JobTable(self.plain[index])
        at = range(len(self))[index]
        return next(iter(self[at : at + 1]))

    def __iter__(self) -> Iterator[Job]:
        for first in range(0, len(self), CHUNK):
            yield from _JOBS.validate_json(to_json(list(self.plain[first : first + CHUNK])))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Job.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"JobTable({len(self):,} jobs)"

    def doubtful(self, gpus: Mapping[str, int], tenants: Collection[str], end_s: float) -> Sequence[int]:
        """Return the numbers of jobs that may contradict the rest of their instance; all others do not.

        The cluster has these `gpus` by type; without `tenants`, jobs may name any.
        """
        plain, every = self.plain, range(len(self))
        columns = plain.columns
        names, owners = {*plain.texts(GPU_TYPE)}, {*plain.texts("tenant")} - {None}
        known = names <= gpus.keys() | {None} and (not tenants or owners <= {*tenants})
        if not known or not columns.keys() <= USUAL:
            return every
        rates = plain.texts("rates")
        kinds = {id(rate): rate for rate in (*rates, *plain.texts(ELSEWHERE)) if rate}
        if not all(rate.keys() <= gpus.keys() for rate in kinds.values()):
            return every
        room = {key: sum(gpus[name] for name, one in rate.items() if one > 0) for key, rate in kinds.items()}
        most = np.array([room[id(rate)] if rate else sum(gpus.values()) for rate in rates])
        submit = plain.numbers("submit_s", 0.0)
        wrong = (submit >= end_s) | (plain.numbers("gpus", 1) > most)
        wrong |= plain.numbers("epochs", 1) > limits.MAX_ITERATIONS
        job, run = plain.pairs(RUNS)
        wrong[job[run[:, 0] < submit[job]]] = True
        return [int(at) for at in np.flatnonzero(wrong)]


def _sound(columns: Mapping[str, Column]) -> bool:
    """Return whether all jobs in columns of an importer are surely valid; others are then looked at one by one."""
    sizes = {len(column) for column in columns.values()}
    if not columns.keys() <= USUAL or len(sizes) != 1 or not sizes.pop():
        return False
    for name, (kind, least) in LEAST.items():
        column = columns.get(name)
        if not isinstance(column, np.ndarray) or column.dtype.kind != kind or not (column >= least).all():
            return False
        if not np.isfinite(column).all():
            return False
    texts = {name: {*columns.get(name, (None,))} for name in TEXTS}
    asked, hosts = columns.get(REQUESTED, ()), columns.get(HOSTS, ())
    try:
        _NAMES.validate_python(columns["id"])
        for found in texts.values():
            _NAMES.validate_python([*(found - {None})])
        for name in ("rates", ELSEWHERE):
            _RATES.validate_python([*{id(rates): rates for rates in columns.get(name, ()) if rates}.values()])
        _SECONDS.validate_python({*asked} - {None})
        _PLACES.validate_python([*{id(on): on for on in hosts if on}.values()])
    except ValidationError:
        return False
    job, run = PlainJobs(columns).pairs(RUNS)
    counts = np.bincount(job, minlength=len(columns["id"]))
    before = np.where(np.diff(job, prepend=-1) == 0, np.append(0.0, run[:-1, 1])[: len(run)], 0.0)
    placed = np.array([len(on or ()) for on in hosts]) if len(hosts) else 0
    ordered = (before <= run[:, 0]) & (run[:, 0] <= run[:, 1]) & np.isfinite(run[:, 1])
    in_full = (placed == 0) | (placed == counts)
    return None not in texts[GPU_TYPE] and bool(ordered.all() and np.all(in_full)) and counts.max() <= MOST_RUNS


def _narrow(column: list[Any]) -> Column:
    """Return a column as an array, if every job has a number of the same kind there."""
    kinds = {type(value) for value in column}
    return np.array(column) if kinds in ({int}, {float}) else column


def _further(error: ValidationError, first: int) -> ValidationError:
    """Return an error about some of the jobs, with their numbers counted from the first job."""
    lines: list[InitErrorDetails] = []
    for detail in error.errors(include_url=False):
        at, *rest = detail["loc"]
        kind = PydanticCustomError(detail["type"], "{said}", {"said": detail["msg"]})
        lines.append({"type": kind, "loc": ("jobs", int(at) + first, *rest), "input": detail["input"]})
    return ValidationError.from_exception_data(error.title, lines)


class _TupleOrTable:
    """The schema of an instance's jobs: a tuple, or a table, which is taken as it is."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = handler.generate_schema(tuple[Job, ...])

        def valid(value: Any, validate: Any) -> Any:
            return value if isinstance(value, JobTable) else validate(value)

        def plain(value: Any, serialise: Any) -> Any:
            return list(value.plain) if isinstance(value, JobTable) else serialise(value)

        given = core_schema.no_info_wrap_validator_function(valid, inner)
        written = core_schema.wrap_serializer_function_ser_schema(plain, schema=inner)
        return core_schema.json_or_python_schema(inner, given, serialization=written)


Jobs = Annotated[Sequence[Job], _TupleOrTable()]

"""Results of tasks, which a journal stores and restores; large parts are read only when needed.

Decisions are stored as gzipped JSON: dataclasses of arrays, numbers, strings, ``None``, and tuples or mappings of them.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import gzip
from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json  # five times as fast as json, and two, on a history of 139,000 rows

from schedgap.harness.engine.sealed import KeptFile
from schedgap.harness.show.measures import MeasureTable
from schedgap.harness.show.text import clean
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

if TYPE_CHECKING:
    import pandas as pd


K = TypeVar("K")
R = TypeVar("R", bound="DataRow")
T = TypeVar("T")


class DataRow:
    """A row of a study's results: a dataclass of plain data, with a flag `ok` that says whether all went well.

    `measures` describes each of its columns, in the order of files.
    """

    ok: Any
    measures: ClassVar[MeasureTable]

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)
    """A NaN would pass every comparison, and a stored row may come from anyone."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, in order."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[type-var]


def grouped(rows: Iterable[T], *fields: str) -> list[list[T]]:
    """Group rows by the values of `fields`; groups are in order of first appearance."""
    key, groups = attrgetter(*fields), dict[Any, list[T]]()
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def typed(kind: type[T], content: Any) -> T:
    """Build a dataclass, or another type, from plain data, ignoring unknown fields; raise `ValueError` if none fits."""
    try:
        return cast(T, _adapter(kind).validate_python(content))
    except ValidationError as error:
        raise ValueError(in_words(error)) from error


def in_words(error: ValidationError) -> str:
    """Return the first place where data have another form than expected, and what is wrong there."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "it"
    return f"{clean(where, 80)}: {clean(first['msg'], 120)}"


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


class CheckedRow(DataRow):
    """A row about a method on an instance: its status, the checker's verdict, and the published numbers.

    Rows with the same `case` are compared with each other; its first element is the fingerprint of the instance.
    `measured` maps quantities to the values that published numbers are compared with. `in_order` says whether the
    status is that of a success.
    """

    instance: Any
    method: Any
    case: Any
    measured: Any
    published: Any
    verified: Any
    violations: Any
    in_order: Any
    key: Any

    @property
    def trouble(self) -> str:
        """What the checker found wrong, in words; empty if it found nothing."""
        return ("; ".join(self.violations) or "it is WRONG, for no stated reason") if self.wrong else ""

    @property
    def wrong(self) -> bool:
        """True if the checker found a violated constraint or claim, or another objective."""
        return self.verified is False

    @property
    def failed(self) -> bool:
        """True if the method failed; a skipped or WRONG row did not fail."""
        return not self.in_order and not self.wrong

    @property
    def ok(self) -> bool:
        """True if the method did not fail and the row is not WRONG."""
        return bool(self.in_order) and not self.wrong


@dataclass(frozen=True)
class Observation:
    """What statistics use of a result: a method on an instance, measured in one way, which is called a problem.

    Attributes
    ----------
    kind, sense
        Kind of the method (``online``, ``baseline``, …); ``max`` or ``min``.
    gap, upper
        Certified gap of a verified result, or ``None``; whether it is only an upper estimate.
    objective
        Positive value of a verified result that did not fail, or ``None``.
    failed
        Whether the method failed.
    solve_s, allowed_s
        Seconds that it took, or that it was allowed if it failed; and seconds that it was allowed.
    """

    method: str
    problem: str
    limits: str
    instance: str
    fingerprint: str
    kind: str
    sense: str
    gap: float | None
    upper: bool
    objective: float | None
    failed: bool
    solve_s: float | None = None
    allowed_s: float = 0.0


_writers: dict[str, Callable[[Any], str]] = {}


def shown_by(**writers: Callable[[Any], str]) -> None:
    """Set the functions that show results in notebooks, as ``html`` and ``latex``.

    The module of pages calls this, so that results need not import pages.
    """
    _writers.update(writers)


@dataclass(repr=False)
class Found(Generic[R]):
    """The results of a study as plain data, which :mod:`schedgap.harness.show.page` displays.

    `meta` is the content of ``run.json`` (:func:`schedgap.harness.engine.study.described`), `rows` are the rows of its
    table, `instances` maps fingerprints to instances, and `folder` is the results folder, if the run was saved.
    """

    meta: dict[str, Any]
    rows: list[R]
    instances: Mapping[str, Instance] = field(default_factory=dict)
    folder: Path | None = field(default=None, kw_only=True)
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    kind: ClassVar[str]
    fields: ClassVar[Sequence[str]]
    """Kind of the study, and names of a row's fields."""

    def __repr__(self) -> str:
        names = list(self.meta.get("instances", {}).values()) or [one.name for one in self.instances.values()]
        about = [names[0] if len(names) == 1 else f"{len(names)} instances"] if names else []
        bad, state = sum(not row.ok for row in self.rows), "interrupted" if self.interrupted else ""
        parts = [*about, counted(len(self.rows), "row"), f"{bad} not in order" if bad else "", state, self.folder]
        return f"{type(self).__name__}({', '.join(str(part) for part in parts if part)})"

    def _repr_html_(self) -> str | None:
        return _writers["html"](self) if _writers else None

    def _repr_latex_(self) -> str | None:
        return _writers["latex"](self) if _writers else None

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the run early."""
        return bool(self.meta.get("interrupted"))

    @property
    def ok(self) -> bool:
        """True if every row is `ok`."""
        return all(row.ok for row in self.rows)

    def once(self, make: Callable[[Self], T]) -> T:
        """Return ``make(run)``, computed at the first call only, so that terminal, page and files show one result."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast(T, self._made[make])

    def observations(self) -> list[Observation]:
        """Return what statistics use of the rows; studies without statistics have none."""
        return []

    @property
    def table(self) -> pd.DataFrame:
        """Tidy frame: a line per row, a column per field and parameter (:mod:`schedgap.harness.show.tidy`)."""
        from schedgap.harness.show.tidy import tidy

        return tidy(self.rows)

    @property
    def columns(self) -> pd.Series[str]:
        """Meaning of each column of :attr:`table`, with its unit."""
        from schedgap.harness.show.tidy import legend

        return legend(self.rows[0].measures if self.rows else {}, [*self.table])


@dataclass(frozen=True)
class Stored:
    """A results folder as read from disk: the content of ``run.json``, and the intact instances by fingerprint.

    `lines` maps each key to the last intact line of the journal; `damaged` counts the damaged lines.
    """

    path: Path
    meta: dict[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
    instances: dict[str, Instance] = field(repr=False)
    damaged: int = 0

    def instance(self, mark: str) -> Instance:
        """Return the instance with this fingerprint, or raise ``ValueError``."""
        if mark not in self.instances:
            raise ValueError(f"instances/{mark}.json is missing, or not the instance that was run")
        return self.instances[mark]

    def file(self, key: str, name: str) -> KeptFile:
        """Return the file `name` of the result with this key."""
        return KeptFile(self.path, name, self.lines[key]["files"].get(name))


class Result(ABC):
    """The result of a task, stored as a line of the journal and, for its large parts, files.

    It has the ``key`` of its task and a ``label`` for progress; a resumed run keeps it if it is ``finished``.
    """

    record: ClassVar[str]
    """Name of this kind of result in the journal."""

    key: Any
    label: Any
    finished: Any

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return the fields of the result's line in the journal, as plain data."""

    def parts(self) -> Mapping[str, Any]:
        """Return the content of the result's files, by path in the results folder; it may be `Later`.

        Text is written as it is, a decision or plain data as gzipped JSON.
        """
        return {}

    def names(self) -> Iterable[str]:
        """Return the paths of the result's files in the results folder."""
        return self.parts()

    def files(self) -> Mapping[str, bytes]:
        """Return the result's files as bytes, by path in the results folder."""
        return {name: written(opened(part)) for name, part in self.parts().items()}

    def check(self) -> None:
        """Raise ``ValueError`` if the result's files contradict its line in the journal."""
        for part in self.parts().values():
            opened(part)

    def holds(self) -> str:
        """Derive again everything that follows from the result's files and from the registered methods and rules.

        Return in words what holds (``history re-checked``), or an empty string if there is nothing to derive. Raise
        ``ValueError`` if something does not hold.
        """
        self.check()
        return ""

    @classmethod
    def named(cls, content: Mapping[str, Any]) -> str:
        """Return a name for a line of the journal that cannot be restored."""
        return str(content["key"])

    @classmethod
    @abstractmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Self:
        """Return the result stored in a line of the journal."""


class RowResult(Result):
    """A result that has a row about a method on an instance."""

    row: Any

    @classmethod
    def named(cls, content: Mapping[str, Any]) -> str:
        """Return the method, or policy, of a line of the journal."""
        row = content.get("row")
        told = (row.get("method") or row.get("policy")) if isinstance(row, dict) else None
        return clean(told or content["key"], 80)

    @property
    def key(self) -> str:
        """Key of the task."""
        return str(self.row.key)

    @property
    def label(self) -> str:
        """Text about the result while a study runs."""
        return f"{self.row.method}: {self.row.status}"


@dataclass(eq=False)
class Later(Generic[T]):
    """A value that a picklable function reads on first access."""

    read: Callable[[], T]

    @cached_property
    def value(self) -> T:
        """The value, read on first access."""
        return self.read()


def opened(value: T | Later[T]) -> T:
    """Return `value`, or the value that it reads if it is a :class:`Later`."""
    return value.value if isinstance(value, Later) else value


class Opened(UserDict[K, Any]):
    """A mapping whose :class:`Later` values are read on first access."""

    def __getitem__(self, key: K) -> Any:
        return opened(self.data[key])


LONG = 10_000
"""Number of elements from which on arrays are stored as bytes: reading them as text would take too much memory."""

COMPRESSION = 5
"""Level of gzip: histories become as small as at the slowest level, in a sixth of the time."""


def encode(decision: Any) -> dict[str, Any]:
    """Return a decision's fields as plain data that preserve the types and shapes of arrays."""
    return {f.name: to_plain(getattr(decision, f.name)) for f in dataclasses.fields(decision)}


def decode(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Return the decision of type `kind` with these fields; raise ``ValueError`` if the fields do not match."""
    try:
        return kind(**{name: from_plain(value) for name, value in fields.items()})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error


def to_plain(value: Any) -> Any:
    """Return a value of a decision as plain data; large arrays become bytes of the narrowest exact type."""
    if isinstance(value, np.ndarray):
        about = {"dtype": str(value.dtype), "shape": list(value.shape)}
        if value.size < LONG or value.dtype.kind not in "iuf":
            return about | {"data": value.ravel().tolist()}
        ends = map(np.min_scalar_type, (value.min(), value.max()))
        with np.errstate(over="ignore"):
            narrow = value.astype(np.float32 if value.dtype.kind == "f" else np.result_type(*ends))
        if not np.array_equal(narrow, value, equal_nan=True):
            narrow = value
        return about | {"bytes": narrow.dtype.str, "data": base64.b64encode(narrow.tobytes()).decode()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": {str(key): to_plain(item) for key, item in value.items()}}
    return value


def from_plain(value: Any) -> Any:
    """Invert :func:`to_plain`."""
    if isinstance(value, dict) and "dtype" in value:
        data = value["data"]
        flat = np.frombuffer(base64.b64decode(data), value["bytes"]) if "bytes" in value else data
        return np.array(flat, value["dtype"]).reshape(value["shape"])
    if isinstance(value, dict):
        return {key: from_plain(item) for key, item in value["mapping"].items()}
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    return value


def written(content: Any) -> bytes:
    """Return the bytes of a file with this content: text as it is, anything else as gzipped JSON."""
    return content.encode() if isinstance(content, str) else packed(content)


def packed(content: Any) -> bytes:
    """Return a decision or plain data as gzipped JSON; equal content gives equal bytes."""
    plain = encode(content) if dataclasses.is_dataclass(content) else content
    return gzip.compress(to_json(plain), COMPRESSION, mtime=0)

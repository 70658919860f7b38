"""What comes of tasks: results that a journal keeps and gives back; large parts are read when they are asked for.

Decisions are kept as gzipped JSON: dataclasses of arrays, numbers, texts, ``None``, or tuples and mappings of these.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import gzip
import importlib
from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from pydantic import TypeAdapter
from pydantic_core import to_json  # five times as fast as json, and two, on a history of 139,000 rows

from schedgap.harness.engine.sealed import KeptFile
from schedgap.harness.text import counted
from schedgap.instances.schema import Instance

if TYPE_CHECKING:
    import pandas as pd


K = TypeVar("K")
R = TypeVar("R", bound="DataRow")
T = TypeVar("T")


class DataRow:
    """A row of what a study found: a dataclass of plain data, which knows whether all went well (`ok`)."""

    ok: Any

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, in order."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[type-var]


def grouped(rows: Iterable[T], *fields: str) -> list[list[T]]:
    """Return the rows that have fields in common together, in the order in which they come first."""
    key, groups = attrgetter(*fields), dict[Any, list[T]]()
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def typed(kind: type[T], content: Any) -> T:
    """Return an object of a dataclass from plain data; raise `ValueError` if a value has not its field's type.

    Fields that the dataclass does not know are left out.
    """
    return cast(T, _adapter(kind).validate_python(content))


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


class CheckedRow(DataRow):
    """A row about a method on an instance: how it ended, what the checker says, and published numbers beside it.

    `case` is what rows share that are compared with each other, the fingerprint of the instance first; `measured` is
    what published numbers can be compared with, by quantity; `in_order` tells whether the status is one of a success.
    """

    instance: Any
    method: Any
    case: Any
    measured: Any
    published: Any
    verified: Any
    in_order: Any

    @property
    def wrong(self) -> bool:
        """Whether the checker refuted it."""
        return self.verified is False

    @property
    def failed(self) -> bool:
        """Whether the method did not end in order (being skipped or WRONG is another matter)."""
        return not self.in_order and not self.wrong

    @property
    def ok(self) -> bool:
        """Whether the method ended in order and every certificate held."""
        return bool(self.in_order) and not self.wrong


@dataclass(repr=False)
class Found(Generic[R]):
    """What a study found, as plain data; :mod:`schedgap.harness.page` knows how it is shown.

    `meta` is the content of ``run.json`` (:func:`schedgap.harness.engine.study.described`), `rows` are those of its
    table, `instances` stand by fingerprint, and `folder` is the results folder, if it was saved.
    """

    meta: dict[str, Any]
    rows: list[R]
    instances: Mapping[str, Instance] = field(default_factory=dict)
    folder: Path | None = field(default=None, kw_only=True)

    kind: ClassVar[str]
    fields: ClassVar[Sequence[str]]
    """Kind of the study, and fields of a row."""

    def __repr__(self) -> str:
        names = list(self.meta.get("instances", {}).values()) or [one.name for one in self.instances.values()]
        about = [names[0] if len(names) == 1 else f"{len(names)} instances"] if names else []
        bad, state = sum(not row.ok for row in self.rows), "interrupted" if self.interrupted else ""
        told = [*about, counted(len(self.rows), "row"), f"{bad} not in order" if bad else "", state, self.folder]
        return f"{type(self).__name__}({', '.join(str(one) for one in told if one)})"

    def _repr_html_(self) -> str:
        # By name, as a study is found by its kind: results know of no page.
        html: str = importlib.import_module("schedgap.harness.page").to_fragment(self)
        return html

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run early."""
        return bool(self.meta.get("interrupted"))

    @property
    def ok(self) -> bool:
        """Whether every row is in order."""
        return all(row.ok for row in self.rows)

    @property
    def table(self) -> pd.DataFrame:
        """One line per row, columns as its fields."""
        import pandas as pd

        return pd.DataFrame([row.as_dict() for row in self.rows])


@dataclass(frozen=True)
class Stored:
    """A results folder as it was found: content of ``run.json``, and by fingerprint the instances that are unchanged.

    `lines` has the journal's lines by key, the last sound one of each; `damaged` counts those that are not.
    """

    path: Path
    meta: dict[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
    instances: dict[str, Instance] = field(repr=False)
    damaged: int = 0

    def instance(self, mark: str) -> Instance:
        """Return the instance with that fingerprint, or raise ``ValueError``."""
        if mark not in self.instances:
            raise ValueError(f"instances/{mark}.json is missing, or not the instance that was run")
        return self.instances[mark]

    def file(self, key: str, name: str) -> KeptFile:
        """Return a file of the result with that key."""
        return KeptFile(self.path, name, self.lines[key]["files"].get(name))


class Result(ABC):
    """What comes of a task; it is kept as a line of the journal, and files beside it.

    It has the ``key`` of its task, a ``label`` that progress shows, and knows whether it is ``finished``, so that a
    resumed run need not try it again.
    """

    record: ClassVar[str]
    """What lines of the journal call it."""

    key: Any
    label: Any
    finished: Any

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what the journal keeps, as plain data."""

    def parts(self) -> Mapping[str, Any]:
        """Return what is kept in files, by path inside the results folder: decisions and plain data, perhaps later."""
        return {}

    def files(self) -> Mapping[str, bytes]:
        """Return the content of the files."""
        return {name: packed(opened(part)) for name, part in self.parts().items()}

    def check(self) -> None:
        """Raise ``ValueError`` if its files do not hold what its line says."""
        for part in self.parts().values():
            opened(part)

    def holds(self) -> str:
        """Check everything again, and say what holds, in words; raise ``ValueError`` if something does not."""
        self.check()
        return ""

    @classmethod
    @abstractmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Self:
        """Return the result that a journal kept."""


class RowResult(Result):
    """A result that is a row about a method on an instance, and what is kept beside it."""

    row: Any

    @property
    def key(self) -> str:
        """Key of its task."""
        key: str = self.row.key
        return key

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"{self.row.method}: {self.row.status}"


@dataclass(eq=False)
class Later(Generic[T]):
    """A value that a function (picklable, to let it travel) reads when it is first asked for."""

    read: Callable[[], T]

    @cached_property
    def value(self) -> T:
        """What was read."""
        return self.read()


def opened(value: T | Later[T]) -> T:
    """Return a value, read now if it is a :class:`Later` one."""
    return value.value if isinstance(value, Later) else value


class Opened(UserDict[K, Any]):
    """A mapping some of whose values are :class:`Later` ones, read when they are first asked for."""

    def __getitem__(self, key: K) -> Any:
        return opened(self.data[key])


LONG = 10_000
"""Numbers of an array from which on they are kept as bytes: the run of 5,000 jobs has five million, which as text takes
300 MB to read."""

COMPRESSION = 5
"""Level of gzip: on a history of 21 MB as small as the slowest level (2.6 MB), in a sixth of its time."""


def encode(decision: Any) -> dict[str, Any]:
    """Return a decision's fields as plain data; arrays keep their type and shape."""
    return {f.name: to_plain(getattr(decision, f.name)) for f in dataclasses.fields(decision)}


def decode(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Return the decision of type `kind` with these fields, or raise ``ValueError`` if it has others."""
    try:
        return kind(**{name: from_plain(value) for name, value in fields.items()})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error


def to_plain(value: Any) -> Any:
    """Return a value of a decision as plain data."""
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
    """Return the value of what :func:`to_plain` returned."""
    if isinstance(value, dict) and "dtype" in value:
        data = value["data"]
        flat = np.frombuffer(base64.b64decode(data), value["bytes"]) if "bytes" in value else data
        return np.array(flat, value["dtype"]).reshape(value["shape"])
    if isinstance(value, dict):
        return {key: from_plain(item) for key, item in value["mapping"].items()}
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    return value


def packed(content: Any) -> bytes:
    """Return a decision or plain data as gzipped JSON, the same bytes for the same content."""
    plain = encode(content) if dataclasses.is_dataclass(content) else content
    return gzip.compress(to_json(plain), COMPRESSION, mtime=0)

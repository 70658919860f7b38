"""What comes of tasks: results that a journal keeps and gives back; large parts are read when they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from schedgap.instances.canonical import read
from schedgap.instances.schema import Instance

if TYPE_CHECKING:
    import pandas as pd

K = TypeVar("K")
R = TypeVar("R", bound="DataRow")
T = TypeVar("T")


class DataRow:
    """A row of what a study found: a dataclass of plain data."""

    @property
    def ok(self) -> bool:
        """Whether all went well."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, in order."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Return the row with these fields, as a journal keeps them; what it does not know is left out."""
        known = {f.name: content[f.name] for f in fields(cls) if f.name in content}  # type: ignore[arg-type]
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[type-var]


@dataclass
class Found(Generic[R]):
    """What a study found, as plain data; :mod:`schedgap.harness.page` knows how it is shown.

    Attributes
    ----------
    meta
        Content of ``run.json``: ``schema_version, command, started_utc, duration_s, versions`` (name → version),
        ``machine`` (name → text), ``limits`` (name → value), ``git_commit``.
    rows
        Rows of its table.
    instances
        Instances by fingerprint.
    folder
        Results folder, where it was saved.
    """

    meta: dict[str, Any]
    rows: list[R]
    instances: Mapping[str, Instance] = field(default_factory=dict)
    folder: Path | None = field(default=None, kw_only=True)

    kind: ClassVar[str]
    """Kind of the study."""

    fields: ClassVar[Sequence[str]]
    """Fields of a row."""

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
    """A results folder as it was found.

    Attributes
    ----------
    path, meta
        The folder, and the content of ``run.json``.
    lines
        The journal's lines by key, the last one of each; a line torn by a kill is left out.
    instances
        Instances of the run by fingerprint.
    """

    path: Path
    meta: dict[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
    instances: dict[str, Instance] = field(repr=False)

    def instance(self, name: str) -> Instance:
        """Return the instance in a file of the folder; names from a file never lead out of it."""
        path = (self.path / name).resolve()
        if not path.is_relative_to(self.path.resolve()):
            raise ValueError(f"{name}: outside of the folder")
        return read(path)


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

    def files(self) -> Mapping[str, bytes]:
        """Return what is kept in files, by path inside the results folder."""
        return {}

    def check(self) -> None:
        """Raise ``ValueError`` if its files do not hold what its line says."""
        return

    @classmethod
    @abstractmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Self:
        """Return the result that a journal kept."""


class Later(Generic[T]):
    """A value that is read when it is first asked for.

    Parameters
    ----------
    read
        Reads it; picklable.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read

    @classmethod
    def known(cls, value: T) -> Later[T]:
        """Return one that need not be read."""
        one = cls(lambda: value)
        one._value = value
        return one

    def __reduce__(self) -> Any:
        """Travel with the value where it is known, else with what reads it."""
        return (Later.known, (self._value,)) if hasattr(self, "_value") else (Later, (self._read,))

    def get(self) -> T:
        """Return the value."""
        if not hasattr(self, "_value"):
            self._value = self._read()
        return self._value


def opened(value: T | Later[T]) -> T:
    """Return a value, read now if it is a :class:`Later` one."""
    return value.get() if isinstance(value, Later) else value


class Opened(Mapping[K, T]):
    """A mapping some of whose values are read when they are first asked for.

    Parameters
    ----------
    values
        Values, or :class:`Later` ones.
    """

    def __init__(self, values: Mapping[K, T | Later[T]]) -> None:
        self._values = values

    def __getitem__(self, key: K) -> T:
        return opened(self._values[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

"""What a study consists of: tasks that a worker process can run, and results that a journal can keep."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from harness.engine.limits import Limits
from harness.environment import code_digest
from harness.text import clean
from instances.errors import NotApplicableError

if TYPE_CHECKING:
    from harness.engine.folder import Stored


class Result(Protocol):
    """What comes of a task; it is kept as a line of the journal, and files beside it."""

    record: ClassVar[str]
    """What lines of the journal call it."""

    @property
    def key(self) -> str:
        """Key of its task."""
        ...

    @property
    def label(self) -> str:
        """What progress shows."""
        ...

    @property
    def finished(self) -> bool:
        """Whether a resumed run need not try it again."""
        ...

    def content(self) -> dict[str, Any]:
        """Return what the journal keeps, as plain data."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Return what is kept in files, by path inside the results folder."""
        ...

    def check(self) -> None:
        """Raise ``ValueError`` if its files do not hold what its line says."""
        ...

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Self:
        """Return the result that a journal kept."""
        ...


R = TypeVar("R", bound=Any)
T = TypeVar("T")


@dataclass(frozen=True)
class Task(ABC, Generic[R]):
    """A piece of work of a study; picklable. Whatever happens to it becomes a result.

    Parameters
    ----------
    limits
        What it may take.
    code
        Digest of the code at planning time: results keep the plan's key even if a file is edited while they run.
    """

    limits: Limits = field(default_factory=Limits, kw_only=True)
    code: str = field(default_factory=code_digest, kw_only=True)

    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Return all that the result depends on beside limits and code."""

    @abstractmethod
    def attempt(self) -> R:
        """Do it."""

    @abstractmethod
    def failed(self, status: Any, reason: str) -> R:
        """Return the result of a task that could not be finished."""

    @property
    def key(self) -> str:
        """Name of the result: the same for the same work under the same limits and code, in any order."""
        parts = [type(self).__name__, self.identity(), asdict(self.limits), self.code]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which its worker is killed."""
        return self.limits.time_limit_s

    def run(self) -> R:
        """Do it in this process; what cannot be done is ``skipped``, what raises is an ``error``.

        Only running out of memory is raised.
        """
        try:
            return self.attempt()
        except NotApplicableError as reason:
            return self.failed("skipped", str(reason))
        except MemoryError:
            raise  # a result needs memory as well; the pool makes it
        except Exception as error:  # any failure is a result, so that one task cannot end a run
            return self.failed("error", clean(f"{type(error).__name__}: {error}", 300))


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


K = TypeVar("K")


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
        value = self._values[key]
        return value.get() if isinstance(value, Later) else value

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

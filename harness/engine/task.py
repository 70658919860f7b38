"""What a study consists of: tasks that a worker process can run. Whatever happens to one becomes a result."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from schedgap.harness.engine.limits import Limits
from schedgap.harness.environment import code_digest
from schedgap.harness.text import clean
from schedgap.instances import plugins
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.plugins import Plugin

R = TypeVar("R", bound=Any)


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
        """Name of the result: the same for the same work under the same limits, code and plug-ins, in any order."""
        parts = [type(self).__name__, self.identity(), asdict(self.limits), self.code]
        if self.plugins:  # a method of one plug-in may ask for those of others
            parts.append([plugin.digest for plugin in plugins.loaded()])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def plugins(self) -> list[Plugin]:
        """Plug-ins that registered something which its identity names."""
        return plugins.used(_texts(self.identity()))

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


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)

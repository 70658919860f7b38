"""What a study consists of: tasks that a worker process can run, and limits of what one may take."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from schedgap.harness.environment import code_digest
from schedgap.harness.text import clean
from schedgap.instances import plugins
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.plugins import Plugin
from schedgap.instances.ranges import LEAST_MEMORY_MB, MOST_MEMORY_MB

if TYPE_CHECKING:
    from schedgap.instances.schema import Instance
    from schedgap.models.solve import SolveOptions


@dataclass(frozen=True)
class Limits:
    """What one task may take; an impossible limit raises `UsageError`.

    Parameters
    ----------
    time_limit_s
        Seconds for the solver, or for a task that does not solve. Where absent, 20, or less for searches, which share
        what a study gives all of them.
    rel_gap, threads, memory_mb
        Passed to the solver; memory cap of a worker process.
    all_sizes, cross_check
        Run methods above their stated size, too; ask PuLP/CBC for a second opinion on every model.
    """

    time_limit_s: float | None = None
    rel_gap: float = 1e-6
    threads: int = 1
    memory_mb: int = 4096
    all_sizes: bool = False
    cross_check: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise UsageError(f"time limit = {self.seconds:g} s: must be a positive number of seconds")
        if not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            right = f"a worker takes between {LEAST_MEMORY_MB} and {MOST_MEMORY_MB} MB"
            raise UsageError(f"memory = {self.memory_mb} MB: {right}")

    @property
    def seconds(self) -> float:
        """Return the time limit, or the usual one where there is none."""
        return 20.0 if self.time_limit_s is None else self.time_limit_s

    def given(self, usual: Limits) -> dict[str, Any]:
        """Return what differs from the usual limits, by option of the command line."""
        named = {"time_limit_s": "time-limit", "all_sizes": "all"}
        return {named.get(name, name): value for name, value in vars(self).items() if value != getattr(usual, name)}

    def options(self, seed: int) -> SolveOptions:
        """Return the solver's options, or raise `UsageError` if a limit is impossible for it."""
        from schedgap.models.solve import SolveOptions

        same = {name: getattr(self, name) for name in ("rel_gap", "threads", "cross_check")}
        return SolveOptions(time_limit_s=self.seconds, seed=seed, **same)


R = TypeVar("R", bound=Any)


@dataclass(frozen=True)
class Task(ABC, Generic[R]):
    """A piece of work of a study; picklable. Whatever happens to it becomes a result.

    `limits` is what it may take, `code` the digest of the code at planning time: results keep the plan's key even if a
    file is edited while they run.
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
        return self.limits.seconds

    def run(self) -> R:
        """Do it in this process: what cannot be done is ``skipped``, what raises (but lack of memory) an ``error``."""
        try:
            return self.attempt()
        except NotApplicableError as reason:
            return self.failed("skipped", str(reason))
        except MemoryError:
            raise  # a result needs memory as well; the pool makes it
        except Exception as error:  # a result, so that one task cannot end a run
            return self.failed("error", clean(f"{type(error).__name__}: {error}", 300))


@dataclass(frozen=True)
class InstanceTask(Task[R]):
    """A task about an instance, which travels as JSON text; each worker parses it once."""

    instance_json: str
    instance_name: str
    fingerprint: str

    @property
    def instance(self) -> Instance:
        """The instance."""
        return _parsed(self.fingerprint, self.instance_json)

    @property
    def about(self) -> dict[str, Any]:
        """What its row is about, by field."""
        return {"instance": self.instance_name, "fingerprint": self.fingerprint, "key": self.key}


@functools.lru_cache(maxsize=8)
def _parsed(fingerprint: str, text: str) -> Instance:
    from schedgap.instances.canonical import validate

    return validate(json.loads(text), where=fingerprint[:12])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)

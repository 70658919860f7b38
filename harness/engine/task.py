"""Tasks, which worker processes run, and the limits of one task."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import sysconfig
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from schedgap.harness.engine.environment import code_digest
from schedgap.harness.show.text import clean
from schedgap.instances import plugins
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.plugins import Plugin
from schedgap.instances.ranges import LEAST_MEMORY_MB, MOST_MEMORY_MB

if TYPE_CHECKING:
    from schedgap.instances.schema import Instance
    from schedgap.models.engine.solve import SolveOptions


@dataclass(frozen=True)
class Limits:
    """Limits of one task; a limit out of range raises `UsageError`.

    Parameters
    ----------
    time_limit_s
        Seconds for the solver, or for a task that does not solve. By default 20; models that search until their limit
        share the time of the run instead.
    rel_gap, threads, memory_mb
        Relative gap and threads of the solver; memory cap of a worker process.
    all_sizes, cross_check
        Whether to run methods above their stated size, and to solve every model by PuLP/CBC as well.
    nodes
        Limit by count (:class:`schedgap.models.engine.solve.SolveOptions`), with which a search does the same on every
        machine. With it and without `time_limit_s`, only the worker's own limit is in seconds.
    run_s
        Seconds of the wall clock after which a run should end. Models that search until their limit share what other
        methods leave of them (:mod:`schedgap.harness.engine.pacing`).
    solver_logs
        Whether to keep what HiGHS writes about each solve. It limits nothing. A task that is killed leaves no log.
    repeat
        How often a method runs to measure its time. It limits nothing. From 2 on, one more run comes first, as a
        warm-up that is not measured; times are medians, with the shortest and the longest.
    """

    time_limit_s: float | None = None
    rel_gap: float = 1e-6
    threads: int = 1
    memory_mb: int = 4096
    all_sizes: bool = False
    cross_check: bool = False
    nodes: int | None = None
    run_s: float | None = None
    solver_logs: bool = False
    repeat: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise UsageError(f"time limit = {self.seconds:g} s: must be a positive number of seconds")
        if self.run_s is not None and not 0 < self.run_s < math.inf:
            raise UsageError(f"time of a run = {self.run_s:g} s: must be a positive number of seconds")
        if self.repeat < 1:
            raise UsageError(f"repeat = {self.repeat}: must be 1 or more")
        if self.nodes is not None and self.nodes < 0:
            raise UsageError(f"nodes = {self.nodes}: must be 0 or more")
        if not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            raise UsageError(f"memory = {self.memory_mb} MB: must be between {LEAST_MEMORY_MB} and {MOST_MEMORY_MB} MB")

    @property
    def seconds(self) -> float:
        """The time limit, or the default."""
        return 20.0 if self.time_limit_s is None else self.time_limit_s

    def given(self, usual: Limits) -> dict[str, Any]:
        """Return the limits that differ from `usual`, by option of the command line."""
        named = {"time_limit_s": "time-limit", "all_sizes": "all"}
        values = {name: value for name, value in vars(self).items() if name != "run_s"}  # has no option of this kind
        return {named.get(name, name): value for name, value in values.items() if value != getattr(usual, name)}

    def options(self, seed: int) -> SolveOptions:
        """Return the options of the solver; raise `UsageError` if a limit is out of its range."""
        from schedgap.models.engine.solve import SolveOptions

        same = {name: getattr(self, name) for name in ("rel_gap", "threads", "nodes", "cross_check")}
        limit_s = self.seconds if self.nodes is None else self.time_limit_s
        return SolveOptions(time_limit_s=limit_s, seed=seed, **same)


R = TypeVar("R", bound=Any)


@dataclass(frozen=True)
class Task(ABC, Generic[R]):
    """A picklable unit of work of a study; whatever happens to it becomes a result.

    `limits` are its limits, and `code` is the digest of the code when it was planned, so that its key stays the same
    even if a file is edited during the run.
    """

    limits: Limits = field(default_factory=Limits, kw_only=True)
    code: str = field(default_factory=code_digest, kw_only=True)

    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Return the fields that determine the result, together with limits and code."""

    @abstractmethod
    def attempt(self) -> R:
        """Do the work and return its result."""

    @abstractmethod
    def failed(self, status: Any, reason: str) -> R:
        """Return the result of a task that was not finished, with this status and reason."""

    @property
    def key(self) -> str:
        """Key of the result, a digest of the work, its limits, the code and the plug-ins; independent of order."""
        parts = [type(self).__name__, self.identity(), asdict(self.limits), self.code]
        if self.plugins:  # a method of one plug-in may use those of others
            parts.append([plugin.digest for plugin in plugins.loaded()])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def plugins(self) -> list[Plugin]:
        """Plug-ins that registered something that the task's identity names."""
        return plugins.used(_texts(self.identity()))

    @property
    def hard_limit_s(self) -> float:
        """Seconds after which the worker of this task is killed; its waiting for a processor does not count."""
        return self.limits.seconds

    def received(self) -> Self:
        """Return the task as the worker that received it runs it."""
        return self

    def run(self) -> R:
        """Run the task in this process and turn errors, except `MemoryError`, into results.

        `NotApplicableError` becomes a result with status ``skipped``, any other error one with status ``error``.
        """
        try:
            return self.attempt()
        except NotApplicableError as reason:
            return self.failed("skipped", str(reason))
        except MemoryError:
            raise  # making a result needs memory, too; the pool does it once the cap is lifted
        except Exception as error:  # a failed result, so that one task cannot end a run
            return self.failed("error", clean(f"{type(error).__name__}: {error}{_where(error)}", 300))


OURS = Path(__file__).parents[2], *map(Path, sysconfig.get_paths().values())
"""Folders of this package, of Python and of installed packages."""


def _where(error: Exception) -> str:
    """Return the last line of the user's own code, such as a plug-in's, in which an error occurred, if any."""
    frames = traceback.extract_tb(error.__traceback__)
    files = [(Path(frame.filename), frame.lineno) for frame in frames if not frame.filename.startswith("<")]
    own = [f" ({file.name}, line {line})" for file, line in files if not {*OURS} & {*file.parents}]
    return own[-1] if own else ""


@dataclass(frozen=True)
class InstanceTask(Task[R]):
    """A task about an instance. Workers get it as it was validated, and unpack it once.

    The task of a worker that has its instance is sent without it, with `packed` empty.
    """

    packed: bytes
    instance_name: str
    fingerprint: str

    @property
    def instance(self) -> Instance:
        """The instance."""
        return _unpacked(self.fingerprint, self.packed)

    @property
    def about(self) -> dict[str, Any]:
        """Fields of the task's row that identify the instance and the task."""
        return {"instance": self.instance_name, "fingerprint": self.fingerprint, "key": self.key}

    def alone(self) -> Self:
        """Return the task without its instance."""
        return replace(self, packed=b"")

    def received(self) -> Self:
        """Unpack the instance, unless this process has it, and return the task without its bytes."""
        _unpacked(self.fingerprint, self.packed)
        return self.alone()


def sent(instance: Instance) -> tuple[bytes, str, str]:
    """Return the first fields of a task about an instance: it is packed, with its name and fingerprint."""
    return pickle.dumps(instance, pickle.HIGHEST_PROTOCOL), instance.name, instance.fingerprint


KEPT = 8
"""Instances that a process keeps."""

_instances: dict[str, Instance] = {}


def _unpacked(fingerprint: str, packed: bytes) -> Instance:
    """Return an instance, which the process keeps until it has used :data:`KEPT` others."""
    instance = _instances.pop(fingerprint, None) or pickle.loads(packed)
    while len(_instances) >= KEPT:
        del _instances[next(iter(_instances))]
    _instances[fingerprint] = instance
    return instance


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)

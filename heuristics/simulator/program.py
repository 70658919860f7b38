"""External schedulers: ``exec:./my_scheduler`` names a program, in any language, that decides round by round.

The program reads one JSON object per line from standard input and answers each one except the last with one line on
standard output (``harness schema policy`` prints the schema)::

    {"type": "hello", "version": 1, …}       cluster and jobs, once      {"type": "hello", "version": 1}
    {"type": "state", "round": 7, …}         at the start of a round     {"type": "assignment", "round": 7, "run": […]}
    {"type": "end"}                          nothing more follows

Jobs, servers and GPU types are identified by their index in ``hello``. The program must flush each line. It has 60
seconds per answer, unless its ``hello`` asks for more (``"answer_s": 600``). Its standard error is discarded, except
for the last line, which is quoted if the program fails. Naming a program runs its author's code with your permissions;
programs run only if a user names them.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from schedgap.heuristics.simulator.policies import POLICIES, PolicySpec
from schedgap.heuristics.simulator.state import Assignment, State
from schedgap.instances.canonical import describe, read_bytes
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import pairs
from schedgap.instances.schema import Record, rule

VERSION = 1
"""Version of the protocol."""

FAMILY = "exec"
"""Prefix of the ids of programs, before the colon."""

MOST_BYTES = 2**24
"""Longest answer: an assignment on the 100,000 servers of the largest simulation takes a third of it."""

ANSWER_S = 60.0
"""Seconds per answer, unless the program asks for more; a program that hangs must not use up the simulation's time."""

LARGEST = 2**31 - 1
"""Largest index and largest number of GPUs in an answer."""

GRACE_S = 1.0
"""Seconds that a program has to exit after the end message."""

HINTS = {
    errno.ENOEXEC: "it is neither compiled for this machine nor a script that begins with #!/usr/bin/env python3 or so",
    errno.ENOENT: "the interpreter named in its first line does not exist",
}
"""Explanations of system errors whose own text does not help."""


class ProgramError(RuntimeError):
    """A program died or violated the protocol; the message says which, and in which round."""


class Message(Record):
    """Base of all messages and their parts."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)


class ServerFacts(Message):
    """A server."""

    name: str
    gpu_type: int
    """Index into `gpu_types`."""
    gpus: int
    cpus: float
    memory_gb: float


class JobFacts(Message):
    """The constant properties of a job; an online scheduler must not use them before a state lists the job."""

    id: str
    tenant: str
    arrival_s: float
    leave_s: float | None
    """When its tenant leaves; null for never."""
    gpus: int
    """Size of its gang: it runs with exactly this many GPUs or not at all."""
    iterations: float
    """Its total work."""
    weight: float
    rates: tuple[float, ...]
    """Iterations per second of one GPU of each type, 0 if it cannot run there; a gang has its slowest type's rate."""


class Hello(Message):
    """The first line: cluster and jobs, in the order of their indices."""

    type: Literal["hello"] = "hello"
    version: int = VERSION
    round_s: float
    """Length of a round in seconds."""
    settings: dict[str, str]
    """Settings after the ``?`` of the policy's name: ``exec:./mine?alpha=2`` sends ``{"alpha": "2"}``."""
    gpu_types: tuple[str, ...]
    servers: tuple[ServerFacts, ...]
    jobs: tuple[JobFacts, ...]


class Ready(Message):
    """The program's answer to ``hello``."""

    type: Literal["hello"] = rule('the answer to "hello" has the type "hello"')
    version: int = rule(f"this harness speaks version {VERSION}", ge=VERSION, le=VERSION)
    answer_s: float = rule("an answer takes more than 0 seconds, at most a day", gt=0, le=86_400, default=ANSWER_S)
    """Seconds allowed for each further answer; the time limit of the whole simulation applies as well."""


class Entry(Message):
    """GPUs of one server that a job holds in a round; each pair of job and server occurs at most once."""

    job: int = rule("a job is identified by its index, from 0", ge=0, le=LARGEST)
    server: int = rule("a server is identified by its index, from 0", ge=0, le=LARGEST)
    gpus: int = rule("an entry has at least one GPU", ge=1, le=LARGEST)


class JobState(Message):
    """A job that has arrived and is unfinished."""

    job: int
    remaining: float
    """Iterations left."""
    starved: int
    """Rounds since it last ran or, if it never ran, since it arrived."""
    attained_s: float
    """GPU-seconds received so far."""


class Round(Message):
    """The state at the start of a round."""

    type: Literal["state"] = "state"
    round: int
    time_s: float
    jobs: tuple[JobState, ...]
    """In the order of their indices."""
    running: tuple[Entry, ...]
    """GPUs that these jobs held in the previous round. A job whose GPUs change loses time to a restart."""


class Answer(Message):
    """The program's answer to a state: the GPUs of the jobs that run in this round; all other jobs wait."""

    type: Literal["assignment"] = rule('the answer to a state has the type "assignment"')
    round: int = rule("the round number of the state", ge=0, le=LARGEST)
    run: tuple[Entry, ...] = rule("a list of {job, server, gpus}")


class End(Message):
    """The last line; the program does not answer it."""

    type: Literal["end"] = "end"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line in either direction."""
    sent = TypeAdapter(Annotated[Hello | Round | End, Field(discriminator="type")])
    answered = TypeAdapter(Annotated[Ready | Answer, Field(discriminator="type")])
    parts, both = TypeAdapter.json_schemas(
        [("sent", "serialization", sent), ("answered", "validation", answered)],
        title=f"Policies of harness simulate, version {VERSION}",
        description=__doc__,
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **{name: both[name] for name in ("title", "description")},
        "anyOf": [
            {"title": "from the harness", **parts["sent", "serialization"]},
            {"title": "from the program", **parts["answered", "validation"]},
        ],
        "$defs": both["$defs"],
    }


@dataclass(frozen=True)
class Program:
    """A program, identified by the digest of its file; a file that has changed since is refused.

    `path` is absolute; `folder` is the working directory of the program, that of the user's command.
    """

    id: str
    path: str
    folder: str
    digest: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> Scheduler:
        """Start the program; raise `ProgramError` if its file has changed or the system cannot run it."""
        if _digest(self.path) != self.digest:
            raise ProgramError(f"{self.path} has changed since the run began; --resume runs it again")
        return Scheduler(self)


def named(id: str) -> Program | None:
    """Return the program that a policy id names, ``None`` for other ids; raise `UsageError` if it is not executable."""
    family, _, rest = id.partition(":")
    if family != FAMILY:
        return None
    name, question, query = rest.partition("?")
    if not name:
        raise UsageError(f"policy {id!r} names no program; write {FAMILY}:./my_scheduler")
    settings = pairs(query, id, f"{FAMILY}:{name}?name=value&name=value") if question else {}
    path = os.path.abspath(Path(name).expanduser())
    digest = _digest(path)
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} is not executable; to make it so: chmod +x {name}")
    return Program(id, path, os.getcwd(), digest, settings)


def _digest(path: str) -> str:
    return hashlib.sha256(read_bytes(Path(path))).hexdigest()[:16]


def _spec(id: str) -> PolicySpec:
    """Return the spec of a program's id; the program is looked up only by :func:`named` or when the policy is built."""

    def build(instance: object, oracle: object) -> Scheduler:
        program = named(id)
        assert program
        return program.start()

    return PolicySpec(id, FAMILY, build=build, source="a program")


POLICIES.families[FAMILY] = _spec

M = TypeVar("M", bound=Message)


class Scheduler:
    """A policy that asks a running program, and a context manager that ends the program on exit."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._greeted, self._errors, self._answer_s = False, b"", ANSWER_S
        # Workers run with PYTHONSAFEPATH, which the program's interpreter must not inherit.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        try:
            self._process = subprocess.Popen(
                [program.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=program.folder,
                env=environment,
            )
        except OSError as error:
            reason = HINTS.get(error.errno or 0, error.strerror)
            raise ProgramError(f"{program.path} cannot be run: {reason}") from None
        self._in, self._out, self._err = (
            pipe.fileno() for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe
        )
        for pipe in (self._in, self._err):
            os.set_blocking(pipe, False)

    def __call__(self, state: State) -> Assignment:
        """Send a state to the program and return the assignment that it answers."""
        if not self._greeted:
            work, cluster = state.workload, state.servers
            hosts = cluster.names, cluster.gpu_type, cluster.gpus, cluster.cpus, cluster.memory_gb
            tenants = (work.tenants[tenant] for tenant in work.tenant.tolist())
            leave_s = (None if math.isinf(time_s) else time_s for time_s in work.leave_s.tolist())
            rates = map(tuple, work.rates.tolist())
            jobs = work.ids, tenants, work.arrival_s, leave_s, work.gpus, work.work, work.weight, rates
            hello = Hello(
                round_s=state.round_s,
                settings=dict(self.program.settings),
                gpu_types=work.gpu_types,
                servers=_records(ServerFacts, *hosts),
                jobs=_records(JobFacts, *jobs),
            )
            ready = self._ask(hello, Ready, "hello")
            self._greeted, self._answer_s = True, ready.answer_s
        when = f"round {state.round}"
        answer = self._ask(_round(state), Answer, when)
        if answer.round != state.round:
            raise ProgramError(f"{when}: the program answered about round {answer.round}")
        return Assignment.of([(entry.job, entry.server, entry.gpus) for entry in answer.run])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the program; unless there was an error, send it the end message and let it exit first."""
        with suppress(OSError, subprocess.TimeoutExpired), self._process as process:
            try:
                if kind is None and process.stdin:
                    process.stdin.write(_line(End()))
                    process.stdin.close()
                    process.wait(GRACE_S)
            finally:
                process.kill()

    def _ask(self, message: Message, kind: type[M], when: str) -> M:
        line, newline, more = self._exchange(_line(message), when).partition(b"\n")
        if not newline:
            raise ProgramError(f"{when}: {self._how_it_ended()}")
        if more:
            raise ProgramError(f"{when}: the program answered more than one line: {_start(line + newline + more)}")
        try:
            return kind.model_validate_json(line)
        except ValidationError as error:
            fault = describe(error, kind).removeprefix(" = ")
            raise ProgramError(f"{when}: {fault} (the program answered: {_start(line)})") from None

    def _exchange(self, rest: bytes, when: str) -> bytes:
        """Write a line and return the program's output up to the end of a line or of the output.

        Writing, reading and standard error are served concurrently: a program may write before it has read everything.
        """
        answer, deadline = bytearray(), time.monotonic() + self._answer_s
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._in, selectors.EVENT_WRITE)
            pipes.register(self._out, selectors.EVENT_READ)
            pipes.register(self._err, selectors.EVENT_READ)
            while len(answer) <= MOST_BYTES:
                left_s = deadline - time.monotonic()
                ready = {key.fd for key, _ in pipes.select(left_s)} if left_s > 0 else set()
                if not ready:
                    hint = 'a program that needs more time must ask for it in its hello ("answer_s")'
                    raise ProgramError(f"{when}: no answer within {self._answer_s:g} s; {hint}")
                if self._in in ready:
                    rest = self._write(rest)
                    if not rest:
                        pipes.unregister(self._in)
                if self._err in ready and not self._read_errors():
                    pipes.unregister(self._err)
                if self._out in ready:
                    chunk = os.read(self._out, 1 << 16)
                    answer += chunk
                    if not chunk or b"\n" in chunk:
                        return bytes(answer)
        raise ProgramError(f"{when}: the program answered a line of more than {MOST_BYTES >> 20} MB")

    def _write(self, rest: bytes) -> bytes:
        """Write as much as the pipe takes and return the rest; nothing if the program no longer reads."""
        try:
            return rest[os.write(self._in, rest) :]
        except BlockingIOError:
            return rest
        except BrokenPipeError:  # the answer, or the reason why the program ended, may still be readable
            return b""

    def _read_errors(self) -> bool:
        """Read from standard error and keep its last bytes; return whether more may follow."""
        try:
            chunk = os.read(self._err, 1 << 16)
        except BlockingIOError:
            return True
        self._errors = (self._errors + chunk)[-2000:]
        return bool(chunk)

    def _how_it_ended(self) -> str:
        """Return a sentence on how the program ended, with the last line of its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._read_errors()
        code = self._process.returncode
        how = f"exited with status {code}"
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        lines = self._errors.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"the program {how} without answering{': ' + last if last else ''}"


def _line(message: Message) -> bytes:
    return message.model_dump_json().encode() + b"\n"


def _start(line: bytes) -> str:
    text = line[:61].decode(errors="replace")
    return text if len(text) <= 60 else text[:59] + "…"


def _round(state: State) -> Round:
    previous = state.previous
    active = np.isin(previous.job, state.jobs)
    held = (previous.job[active], previous.server[active], previous.gpus[active])
    return Round(
        round=state.round,
        time_s=state.time_s,
        jobs=_records(JobState, state.jobs, state.remaining, state.starved, state.attained_s),
        running=_records(Entry, *held),
    )


def _records(kind: type[M], *columns: Iterable[Any]) -> tuple[M, ...]:
    """Return one record per row; the columns are in the order of the record's fields."""
    rows = zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in columns), strict=True)
    return tuple(kind(**dict(zip(kind.model_fields, row, strict=True))) for row in rows)

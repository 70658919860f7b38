"""Messages of external schedulers: ``exec:./my_scheduler`` names a program that decides round by round.

The program, in any language, reads one JSON object per line from standard input and answers each one except the last
with one line on standard output (``harness schema policy`` prints the schema)::

    {"type": "hello", "version": 1, …}       cluster and jobs, once      {"type": "hello", "version": 1}
    {"type": "state", "round": 7, …}         at the start of a round     {"type": "assignment", "round": 7, "run": […]}
    {"type": "end"}                          nothing more follows

Jobs, servers and GPU types are identified by their index in ``hello``. The program must flush each line. It has 60
seconds per answer, unless its ``hello`` asks for more (``"answer_s": 600``). Its standard error is discarded, except
for the last line, which is quoted if the program fails. Naming a program runs its author's code with your permissions;
programs run only if a user names them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter

from schedgap.heuristics.simulator.state import State
from schedgap.instances.schema import Record, rule

VERSION = 1
"""Version of the protocol."""

ANSWER_S = 60.0
"""Seconds per answer, unless the program asks for more; a program that hangs must not use up the simulation's time."""

LARGEST = 2**31 - 1
"""Largest index, and largest number of GPUs, that an answer may contain."""


class Message(Record):
    """Base class of all messages and of their parts."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)


M = TypeVar("M", bound=Message)


class ServerFacts(Message):
    """The properties of a server."""

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
    """Time at which the job's tenant leaves; null for never."""
    gpus: int
    """Size of the job's gang: it runs with exactly this many GPUs or not at all."""
    iterations: float
    """The job's total work."""
    weight: float
    rates: tuple[float, ...]
    """Iterations per second of one GPU of each type, 0 if the job cannot run there; a gang runs at its slowest rate."""


class Hello(Message):
    """The first line to the program: the cluster and the jobs, in the order of their indices."""

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
    """The GPUs of one server that a job holds in a round; each pair of job and server occurs at most once."""

    job: int = rule("a job is identified by its index, from 0", ge=0, le=LARGEST)
    server: int = rule("a server is identified by its index, from 0", ge=0, le=LARGEST)
    gpus: int = rule("an entry has at least one GPU", ge=1, le=LARGEST)


class JobState(Message):
    """A job that has arrived and is unfinished."""

    job: int
    remaining: float
    """Iterations left."""
    starved: int
    """Rounds since the job last ran or, if it never ran, since it arrived."""
    attained_s: float
    """GPU-seconds received so far."""


class Round(Message):
    """The state at the start of a round."""

    type: Literal["state"] = "state"
    round: int
    time_s: float
    jobs: tuple[JobState, ...]
    """The jobs that have arrived and are unfinished, in the order of their indices."""
    running: tuple[Entry, ...]
    """GPUs that these jobs held in the previous round. A job whose GPUs change loses time to a restart."""


class Answer(Message):
    """The program's answer to a state: the GPUs of the jobs that run in this round; all other jobs wait."""

    type: Literal["assignment"] = rule('the answer to a state has the type "assignment"')
    round: int = rule("the round number of the state", ge=0, le=LARGEST)
    run: tuple[Entry, ...] = rule("a list of {job, server, gpus}")


class End(Message):
    """The last line to the program, which does not answer it."""

    type: Literal["end"] = "end"


def schema() -> dict[str, Any]:
    """Return the JSON Schema that describes every line, from the harness or from the program."""
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


def greeting(state: State, settings: Mapping[str, str]) -> Hello:
    """Return the first message to a program, with the cluster, all jobs and the settings."""
    work, cluster = state.workload, state.servers
    hosts = cluster.names, cluster.gpu_type, cluster.gpus, cluster.cpus, cluster.memory_gb
    tenants = (work.tenants[tenant] for tenant in work.tenant.tolist())
    leave_s = (None if math.isinf(time_s) else time_s for time_s in work.leave_s.tolist())
    rates = map(tuple, work.rates.tolist())
    jobs = work.ids, tenants, work.arrival_s, leave_s, work.gpus, work.work, work.weight, rates
    return Hello(
        round_s=state.round_s,
        settings=dict(settings),
        gpu_types=work.gpu_types,
        servers=_records(ServerFacts, *hosts),
        jobs=_records(JobFacts, *jobs),
    )


def at_round(state: State) -> Round:
    """Return the message that asks a program for the assignment of a round."""
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

"""External schedulers: programs, in any language, that decide round by round.

:mod:`schedgap.heuristics.simulator.messages` states the protocol. That module is imported only when a program starts,
because most simulations run no program.
"""

from __future__ import annotations

import errno
import hashlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import ValidationError

from schedgap.heuristics.simulator.policies import POLICIES, PolicySpec
from schedgap.heuristics.simulator.state import Assignment, State
from schedgap.instances.canonical import describe, read_bytes
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import pairs

if TYPE_CHECKING:
    from schedgap.heuristics.simulator.messages import Message

FAMILY = "exec"
"""Prefix, before the colon, of the policy ids that name a program (``exec:./my_scheduler``)."""

MOST_BYTES = 2**24
"""Longest answer that is read; an assignment on the 100,000 servers of the largest simulation is a third as long."""

GRACE_S = 1.0
"""Seconds that a program has to exit after the end message."""

HINTS = {
    errno.ENOEXEC: "it is neither compiled for this machine nor a script that begins with #!/usr/bin/env python3 or so",
    errno.ENOENT: "the interpreter named in its first line does not exist",
}
"""Explanations of system errors for which the system's own text does not help the user."""


class ProgramError(RuntimeError):
    """Raised when a program dies or violates the protocol; the message says what happened, and in which round."""


@dataclass(frozen=True)
class Program:
    """A program that decides as a policy; its file must not change during a run, so its digest is kept.

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
    """Return the policy's spec for an id that names a program; the file is looked for only when the policy is built."""

    def build(instance: object, oracle: object) -> Scheduler:
        program = named(id)
        assert program
        return program.start()

    return PolicySpec(id, FAMILY, build=build, source="a program")


POLICIES.families[FAMILY] = _spec

M = TypeVar("M", bound="Message")


class Scheduler:
    """A policy that asks a running program for each assignment; as a context manager, it ends the program on exit."""

    def __init__(self, program: Program) -> None:
        from schedgap.heuristics.simulator import messages

        self.program, self._messages = program, messages
        self._greeted, self._errors, self._answer_s = False, b"", messages.ANSWER_S
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
            hello = self._messages.greeting(state, self.program.settings)
            ready = self._ask(hello, self._messages.Ready, "hello")
            self._greeted, self._answer_s = True, ready.answer_s
        when = f"round {state.round}"
        answer = self._ask(self._messages.at_round(state), self._messages.Answer, when)
        if answer.round != state.round:
            raise ProgramError(f"{when}: the program answered about round {answer.round}")
        return Assignment.of([(entry.job, entry.server, entry.gpus) for entry in answer.run])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the program; if there was no error, send it the end message first and give it time to exit."""
        with suppress(OSError, subprocess.TimeoutExpired), self._process as process:
            try:
                if kind is None and process.stdin:
                    process.stdin.write(_line(self._messages.End()))
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
        """Send a line to the program; return what it writes, up to the end of a line or of its output.

        Writing, reading and the program's standard error are served together, because a program may write before it has
        read everything.
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
        """Write as many bytes as the pipe takes, and return the others; return none if the program no longer reads."""
        try:
            return rest[os.write(self._in, rest) :]
        except BlockingIOError:
            return rest
        except BrokenPipeError:  # the answer, or the reason why the program ended, may still be readable
            return b""

    def _read_errors(self) -> bool:
        """Read from the program's standard error and keep its last bytes; return whether more may follow."""
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

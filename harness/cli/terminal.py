"""Standard output for data; standard error for what a command says about its own work."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from schedgap.instances.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console
    from rich.progress import Progress


def stdout() -> Console:
    """Return a console on standard output; a pipe gets the full width instead of a cut table."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)


def say(line: str) -> None:
    """Print a line about the command's own work to standard error, without characters that steer a terminal."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(line.split()))
    sys.stderr.write(f"{text}\n")


def complain(what: str) -> None:
    """Say in one line on standard error why the command ends."""
    say(f"harness: {what}")


class progress:  # noqa: N801 - used as a verb: `with progress() as …`
    """Show finished rows on standard error, if that is a terminal, while a run goes on."""

    _bar: Progress | None = None
    _total = 0

    def __enter__(self) -> tuple[Any, Any]:
        """Return the callbacks for the number of tasks and for each finished row."""
        return self._start, self._advance

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._bar:
            self._bar.stop()

    def _start(self, count: int) -> None:
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            self._bar = _bar()
            self._task = self._bar.add_task("running", total=0)
            self._bar.start()
        self._total += count
        self._bar.update(self._task, total=self._total)

    def _advance(self, result: Any) -> None:
        if self._bar:
            self._bar.update(self._task, advance=1, description=result.label)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)


STDOUT, STDERR = 1, 2


class Outlet(io.FileIO):
    """A standard stream that stays quiet once its reader has gone (``harness … | head``).

    Raises
    ------
    UsageError
        Once, if the text cannot be written to standard output for another reason, such as a full disk; there is
        nowhere to say that of standard error.
    """

    lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, or drop them where they cannot arrive any more."""
        if not self.lost:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.lost = True
            except OSError as error:
                self.lost = True
                if self.fileno() == STDOUT:
                    raise UsageError(f"standard output: {error.strerror}") from error
        return memoryview(data).nbytes


def protect() -> None:
    """Make standard output and error safe to write to: closed, full, broken, or in an encoding without ≤ and █."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if absent(stream):
            # This takes the lowest free descriptor, the closed one; else text would go into the next file opened.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = _text(STDOUT, sys.stdout, "replace")
    sys.stderr = _text(STDERR, sys.stderr, "backslashreplace")


def absent(stream: object) -> bool:
    """Return whether Python found a standard stream closed."""
    return stream is None


def _text(descriptor: int, stream: TextIO, errors: str) -> TextIO:
    outlet = Outlet(descriptor, "wb", closefd=False)
    encoding = "utf-8" if absent(stream) else stream.encoding
    return io.TextIOWrapper(
        io.BufferedWriter(outlet), encoding, errors, line_buffering=descriptor == STDERR or outlet.isatty()
    )

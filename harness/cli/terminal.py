"""Standard output for data; standard error for what a command says about its own work."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

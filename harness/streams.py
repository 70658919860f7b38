"""Standard streams of a command: whatever they are connected to, the command ends in order."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from schedgap.instances.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

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

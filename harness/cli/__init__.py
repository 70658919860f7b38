"""The ``harness`` command. Each command does its heavy imports itself, so that help appears at once."""

from __future__ import annotations

import gc
import sys

from schedgap.harness.cli.status import INTERRUPTED, USAGE


def main() -> None:
    """Run the command line; report a user's mistake in one line on standard error and exit with status 2.

    Everything is imported inside, so that Ctrl-C during the imports prints no traceback either.
    """
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("harness: interrupted\n")
        sys.exit(INTERRUPTED)


def _run() -> None:
    from schedgap.harness.cli import app, catalogue, studies  # noqa: F401 -- importing them registers their commands
    from schedgap.instances.errors import UsageError

    app.protect()
    gc.set_threshold(50_000)  # converting a history of 140,000 rows to lists took 0.2 s, 0.15 s of it collections
    try:
        try:
            app.app()
        finally:
            # Flush here, so that a failed write is reported like any other error, not by Python while it shuts down.
            sys.stdout.flush()
            gc.freeze()  # skips the final collection at exit, which costs 0.15 s of CPU after a simulation
    except UsageError as error:
        app.complain(str(error))
        sys.exit(USAGE)
    except OSError as error:
        app.complain(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        sys.exit(USAGE)

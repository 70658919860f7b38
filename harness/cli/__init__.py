"""The ``harness`` command. Every heavy import happens inside the command that needs it, so that help is instant."""

from __future__ import annotations

import gc
import sys

from schedgap.harness.cli import app, catalogue, studies  # noqa: F401 -- each adds its commands
from schedgap.harness.cli.app import INTERRUPTED, USAGE, complain, protect
from schedgap.instances.errors import UsageError


def main() -> None:
    """Run the command; a mistake of the user is one line on standard error and exit code 2."""
    protect()
    gc.set_threshold(50_000)  # of the 0.2 s in which a history of 140,000 rows becomes lists, 0.15 s were collections
    try:
        try:
            app.app()
        finally:
            # Text that cannot be written is a mistake like others; Python would complain while shutting down.
            sys.stdout.flush()
            gc.freeze()  # Python would look for garbage once more before it ends: 0.15 s of CPU after a simulation
    except UsageError as error:
        complain(str(error))
        sys.exit(USAGE)
    except OSError as error:
        complain(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        sys.exit(USAGE)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(INTERRUPTED)

"""Exit statuses of the ``harness`` command."""

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

"""``python -m schedgap``: the ``harness`` command."""

from schedgap.harness.cli import main

if __name__ == "__main__":
    main()

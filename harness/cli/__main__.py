"""``python -m schedgap.harness.cli``."""

from schedgap.harness.cli import main

if __name__ == "__main__":
    main()

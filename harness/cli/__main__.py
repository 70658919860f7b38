"""``python -m schedgap.harness.cli``."""

from schedgap.harness.cli import main

main()

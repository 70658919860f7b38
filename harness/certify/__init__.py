"""What really ran, beside certified bounds and other schedules: ``harness certify``."""

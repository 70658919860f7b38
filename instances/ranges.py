"""Limits that both the command line and the library check. Cheap to import, so that ``--help`` stays instant."""

LARGEST_SEED = 2**31 - 1
"""HiGHS takes seeds as 32-bit integers."""
MOST_THREADS = 1024
LEAST_MEMORY_MB, MOST_MEMORY_MB = 256, 2**24
MAX_BAD = 5.0
"""Default percentage of bad rows above which a trace or log is refused."""

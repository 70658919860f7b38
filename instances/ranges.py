"""Ranges of numbers that the command line and the library both check; light, so that help stays instant."""

LARGEST_SEED = 2**31 - 1
"""Seeds are 32-bit integers to HiGHS."""
MOST_THREADS = 1024
LEAST_MEMORY_MB, MOST_MEMORY_MB = 256, 2**24

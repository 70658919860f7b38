"""Size limits of one instance, checked before memory is allocated.

To raise a limit: ``from schedgap.instances.schema import limits; limits.MAX_ITEMS = …``.
"""

MAX_ITEMS = 1_000_000
"""Largest number of jobs, servers, tenants or slots of one instance."""
MAX_ITERATIONS = 10**15
"""Largest work of one job in iterations; below 2**53, so that floats represent it exactly."""
MAX_HORIZON_S = 1e12
"""Latest end of a horizon in seconds (32,000 years); sums of later times lose their seconds to rounding."""

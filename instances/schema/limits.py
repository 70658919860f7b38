"""How much one instance may hold, checked before memory is taken for it.

To raise a limit: ``from schedgap.instances.schema import limits; limits.MAX_ITEMS = …``.
"""

MAX_ITEMS = 1_000_000
"""Largest number of jobs, servers, tenants or slots of one instance."""
MAX_ITERATIONS = 10**15
"""Largest work of one job in iterations; below 2**53, so that arrays of floats hold it exactly."""
MAX_HORIZON_S = 1e12
"""Latest end of a horizon in seconds (32,000 years); beyond, sums of times lose their seconds."""

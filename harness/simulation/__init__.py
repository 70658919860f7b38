"""Simulated schedulers side by side: tasks for the pool, rows, tables, results (see :mod:`.simulating`)."""

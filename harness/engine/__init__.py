"""The engine that runs every study: tasks, limits, local and Dask workers, the journal, and results folders."""

KINDS = ("compare", "simulate", "audit", "adversary", "reproduce")
"""Kinds of studies. Each is a package with ``task.py``, ``row.py``, and ``run.py``, which defines its ``STUDY``."""

"""The engine: tasks, limits, workers here or on a cluster, the journal, and one way to run every study on them."""

KINDS = ("compare", "simulate", "audit", "adversary", "reproduce")
"""Kinds of studies: each is a package of that name, with ``task.py``, ``row.py`` and, in ``run.py``, its ``STUDY``."""

"""The harness: compare schedulers with certified bounds, and report what was found.

:mod:`schedgap` has its functions by short names (``sg.compare``). The packages `compare`, `simulate`, `audit` and
`adversary` have the same shape: what is to be done (``task``), what comes of it (``row``), and how it is run (``run``).
Results are data; how they are shown is known to :mod:`schedgap.harness.page`.
"""

"""Moldable jobs: workers of one type, with parameter servers (PSs) of one type or as a ring, on servers.

A job is *moldable* if the number of its workers is chosen when it starts and then kept (Zhou et al.: *elastic*).

Zhou et al. and the admission scheduler of the walk-through make the same decisions for a job: worker type ``m``, PS
type ``p``, number of workers ``N``, their placement and that of the PSs, start and number of slots. Their views share:

- :class:`Machines`: capacities of servers, and the resources of a worker and a PS;
- :class:`RunOptions`: for each job the choices ``(m, p, together, N, d)`` worth considering;
- :class:`Runs`: the decision;
- :class:`Ledger`: free resources and prices of all servers in all slots, and the exact cheapest run of a job (Zhou's
  problem (12)); in pricing, where nothing runs yet, a class of equal servers is one entry.

The search is here, among data, because pricing in :mod:`schedgap.models` and the online algorithms in
:mod:`schedgap.heuristics` both need it and may not import each other. A package of its own would hold nothing else.
"""

from schedgap.instances.moldable.machines import Machines, classes, fitting, in_units, machines_of
from schedgap.instances.moldable.options import Moldable, Rates, RunOptions, Runs, options_of, printed_rings
from schedgap.instances.moldable.search import FoundRun, Ledger, runs_of

__all__ = [
    "FoundRun",
    "Ledger",
    "Machines",
    "Moldable",
    "Rates",
    "RunOptions",
    "Runs",
    "classes",
    "fitting",
    "in_units",
    "machines_of",
    "options_of",
    "printed_rings",
    "runs_of",
]  # fmt: skip

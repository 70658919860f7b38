"""Elastic jobs: a number of workers of one type, and parameter servers (PSs) of one type or a ring, on servers.

Zhou et al. and the admission scheduler of the walk-through decide the same things about a job: worker type ``m``, PS
type ``p``, number of workers ``N``, how many of them and how many PSs on which server, when to start and for how many
slots. Here is what their views share:

- :class:`Machines`: capacities of servers, and what a worker and a PS take of them;
- :class:`Options`: for each job the choices ``(m, p, together, N, d)`` worth considering;
- :class:`Runs`: the decision;
- :class:`Ledger`: what is free on every server in every slot, at which prices, and the exact cheapest way to run a job
  there (Zhou's problem (12)); classes of equal servers count as one entry where nothing runs yet, which is pricing.

The search is an algorithm among data, since two sides need it that may not import each other: pricing in
:mod:`schedgap.models` and the online algorithms in :mod:`schedgap.heuristics`. It stands here, beside the data that
only it and they use, and in no package of its own below both: nothing else would be in there.
"""

from schedgap.instances.elastic.machines import Machines, classes, fitting, machines_of
from schedgap.instances.elastic.options import Elastic, Options, Rates, Runs, options_of, printed_rings
from schedgap.instances.elastic.search import Found, Ledger, runs_of

__all__ = [
    "Elastic", "Found", "Ledger", "Machines", "Options", "Rates", "Runs", "classes", "fitting", "machines_of",
    "options_of", "printed_rings", "runs_of",
]  # fmt: skip

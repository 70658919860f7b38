"""Hadar and HadarE (Sultana et al.), the online algorithms, as policies of :mod:`schedgap.heuristics.simulator`.

``hadar.online`` is Algorithms 1 and 2: every round planned anew by dynamic programming, beyond :data:`EXACT_QUEUE` jobs
by a beam. What the paper leaves open, or prints so that it cannot be used, are its parameters: :data:`PARAMETERS`, with
reasons and measured effects in :mod:`schedgap.heuristics.hadar.online`, :mod:`schedgap.heuristics.hadar.planning` and
:mod:`schedgap.heuristics.hadar.prices`. ``hadar.hadare`` forks every job to a copy per node.

Beside them are the schedulers that Hadar is compared with (:mod:`~schedgap.heuristics.hadar.baselines`,
:mod:`~schedgap.heuristics.hadar.gavel`, :mod:`~schedgap.heuristics.hadar.allox`).

As heuristics, all of them run in model time (:mod:`schedgap.heuristics.hadar.slotted`): no restarts, no cost of
communication or consolidation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from schedgap.heuristics.hadar import allox, baselines, gavel  # noqa: F401 -- they register what they define
from schedgap.heuristics.hadar.hadare import HadarE
from schedgap.heuristics.hadar.online import Hadar
from schedgap.heuristics.hadar.planning import Planning
from schedgap.heuristics.hadar.prices import guarantee
from schedgap.heuristics.hadar.slotted import simulated
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.parameters import Parameter, passing
from schedgap.instances.views.hadar import BETA, FORKED, View

PARAMETERS = (
    Parameter(
        "prices",
        "jobs that (6) and (7) take U_max and U_min over: all of the run as printed, those there, those seen",
        choices=("run", "round", "learned"),
    ),
    Parameter(
        "mode",
        "plan all jobs anew (Algorithm 1), or only those that do not run (section IV, Scalability)",
        choices=("replan", "incremental"),
    ),
    Parameter(
        "payoff", "what a job pays for: all rounds it still needs, or one (line 31)", choices=("lifetime", "round")
    ),
    Parameter(
        "alloc", "FIND_ALLOC's choice: highest payoff, or least cost (lines 28 to 31)", choices=("payoff", "cost")
    ),
    Parameter("keep", "a running job keeps GPUs that are free at its turn; the paper's plan has no memory"),
    Parameter(
        "order",
        "the queue by payoff, by payoff per GPU and round, or as jobs arrive",
        choices=("payoff", "density", "arrival"),
    ),
    Parameter("stop", "a job without an allocation ends the planning (line 7)"),
    Parameter("conserving", "GPUs that no job pays for go to the others until the next round; not the paper's"),
    Parameter("beam", "states of the dynamic program kept in long queues; 1 is greedy", least=1, most=4096),
    Parameter("beta", "weight of the cost of communication (line 29), which the paper leaves undefined", least=0),
    replace(BETA, name="communication"),
)
"""Settings of ``hadar.online``."""

FORKS = (
    Parameter(
        "overhead_s", "what aggregation and consolidation take of a round of a job with several copies", "s", least=0
    ),
    Parameter("copies", "most copies of a job, 0 for one per node (section V)", least=0, most=10**6),
    Parameter(
        "payoff",
        "what a copy is worth: as a job that is sent to Hadar (section V-A), or what it adds to its job's payoff",
        choices=("copy", "job"),
    ),
    Parameter(
        "pcie",
        "pcie_scaling of (10), per PCIe version above 3.0: 1 counts no difference, 2 the bandwidth",
        least=1,
        most=100,
    ),
)
"""Settings of ``hadar.hadare``."""

VARIANTS = ("prices=round", "mode=incremental", "payoff=round", "payoff=round&keep=false", "conserving=true")
"""Settings that are compared with the default."""


def _theorem(view: View, **settings: Any) -> Guarantee | None:
    """Return Theorem 2's ratio, for the algorithm that it is about."""
    return None if settings else guarantee(view)


simulated(
    "hadar.online",
    kind="online",
    source="Hadar, Algorithms 1 and 2, Theorem 2",
    parameters=PARAMETERS,
    variants=VARIANTS,
    guarantee=passing(_theorem, Hadar, Planning),
)(passing(lambda instance, oracle, **settings: Hadar(instance, **settings), Hadar, Planning))
simulated("hadar.hadare", problem=FORKED.id, kind="online", source="HadarE, section V", parameters=FORKS, forks=True)(
    passing(lambda instance, oracle, **settings: HadarE(instance, **settings), HadarE)
)

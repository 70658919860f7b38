"""Hadar and HadarE (Sultana et al.), the online algorithms, as policies of :mod:`heuristics.simulator`.

========================  ==========================================================================================
``hadar.online``          Algorithms 1 and 2: every round planned anew by dynamic programming, beyond
                          :data:`EXACT_QUEUE` jobs by a beam; a job pays for all rounds that it still needs
``….incremental``         running jobs keep their GPUs to the end; only waiting ones are planned (§IV, scalability)
``….greedy``              a beam of one: jobs by descending payoff
``….round_payoff``        a job pays for one round (line 31 as printed)
``….density``             not the paper's: greedy by payoff per GPU and round
``….conserving``          not the paper's: GPUs that no job pays for go to the others, until the next round
``hadar.hadare``          every job forked to a copy per node
========================  ==========================================================================================

As heuristics, all of them run in model time (:mod:`heuristics.simulator.slotted`): no restarts, no cost of
communication or consolidation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heuristics.hadar.hadare import HadarE
from heuristics.hadar.online import Hadar
from heuristics.hadar.planning import BEAM, EXACT_QUEUE, Plan, Planner, Round
from heuristics.hadar.prices import Market, Prices, guarantee, prices
from heuristics.simulator import Policy, PolicySpec
from heuristics.simulator.model_time import register
from heuristics.simulator.slotted import in_model_time
from instances.schema import Instance

__all__ = [
    "BEAM",
    "EXACT_QUEUE",
    "Hadar",
    "HadarE",
    "Market",
    "Plan",
    "Planner",
    "Prices",
    "Round",
    "guarantee",
    "prices",
]


def _register(
    name: str, build: Callable[[Instance], Policy], source: str, *, theorem: bool = False, forks: bool = False
) -> None:
    """Register a policy and its heuristic in model time; Theorem 2's ratio only for what it is about."""
    register(
        PolicySpec(id=name, paper="hadar", build=lambda instance, oracle: build(instance), source=source, forks=forks),
        problem="hadar.forked" if forks else "hadar.utility",
        kind="online",
        run=in_model_time(name),
        guarantee=guarantee if theorem else lambda view: None,
    )


_register("hadar.online", Hadar, "Hadar, Algorithms 1 and 2, Theorem 2", theorem=True)
_register("hadar.online.incremental", partial(Hadar, mode="incremental"), "Hadar, Algorithm 2; §IV, Scalability")
_register("hadar.online.greedy", partial(Hadar, beam=1), "Hadar, Algorithms 1 and 2 with a beam of one")
_register("hadar.online.round_payoff", partial(Hadar, payoff="round"), "Hadar, Algorithm 2 with line 31 as printed")
_register("hadar.online.density", partial(Hadar, beam=1, order="density"), "after Hadar: by payoff per GPU and round")
_register("hadar.online.conserving", partial(Hadar, conserving=True), "after Hadar: no GPU idle while a job waits")
_register("hadar.hadare", HadarE, "HadarE, section V", forks=True)

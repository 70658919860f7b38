"""The online algorithms Hadar and HadarE (Sultana et al.), as policies of :mod:`schedgap.heuristics.simulator`.

``hadar.online`` implements Algorithms 1 and 2: it plans every round anew by dynamic programming, with a beam search
when the queue exceeds :data:`EXACT_QUEUE` jobs. Where the paper leaves a choice open, or prints something unusable,
there is a parameter (:data:`PARAMETERS`). :mod:`schedgap.heuristics.hadar.online`,
:mod:`schedgap.heuristics.hadar.planning` and :mod:`schedgap.heuristics.hadar.prices` give the reasons, and
``docs/experiments.md`` the measured effects. ``hadar.hadare`` forks every job into one copy per node.

The schedulers that Hadar is compared with are in :mod:`~schedgap.heuristics.hadar.baselines`,
:mod:`~schedgap.heuristics.hadar.gavel` and :mod:`~schedgap.heuristics.hadar.allox`.

As heuristics, all of them run in model time (:mod:`schedgap.heuristics.hadar.slotted`), without restarts and without
costs of communication or consolidation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from schedgap.heuristics.advice import PARAMETERS as PREDICTED
from schedgap.heuristics.advice import Advice, blurred, predicted
from schedgap.heuristics.duals import PriceRun
from schedgap.heuristics.hadar import allox, baselines, gavel  # noqa: F401 -- they register what they define
from schedgap.heuristics.hadar.duality import shown, steps
from schedgap.heuristics.hadar.hadare import HadarE
from schedgap.heuristics.hadar.online import Hadar
from schedgap.heuristics.hadar.planning import Planning
from schedgap.heuristics.hadar.prices import ahead_mean, guarantee
from schedgap.heuristics.hadar.prices import prices as extreme_prices
from schedgap.heuristics.hadar.slotted import schedule, simulated
from schedgap.heuristics.registry import Context, Guarantee, heuristic
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import Parameter, passing
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.hadar import BETA, FORKED, UTILITY, HadarSchedule, HadarView

PARAMETERS = (
    Parameter(
        "prices",
        "jobs over which (6) and (7) take U_max and U_min: all of the run (as printed), active ones, or those seen",
        choices=("run", "round", "learned"),
    ),
    Parameter(
        "mode",
        "plan all jobs anew (Algorithm 1), or only jobs that are not running (section IV, Scalability)",
        choices=("replan", "incremental"),
    ),
    Parameter(
        "payoff",
        "rounds that a job pays for: one (line 31), or all it still needs ((8), which Theorem 2 is about)",
        choices=("round", "lifetime"),
    ),
    Parameter(
        "alloc", "FIND_ALLOC's choice: highest payoff, or least cost (lines 28 to 31)", choices=("payoff", "cost")
    ),
    Parameter("keep", "whether a running job keeps GPUs that are free at its turn; the paper's plan has no memory"),
    Parameter(
        "order",
        "order of the queue: by payoff, by payoff per GPU and round, or by arrival",
        choices=("payoff", "density", "arrival"),
    ),
    Parameter("stop", "whether a job without an allocation ends the planning (line 7)"),
    Parameter("conserving", "whether jobs without a positive payoff use GPUs left idle, for a round; not in the paper"),
    Parameter("u_min", "multiple of U_min for which the algorithm takes it: its forecast error", least=1e-6, most=1e6),
    Parameter("u_max", "multiple of U_max for which the algorithm takes it", least=1e-6, most=1e6),
    Parameter("beam", "states of the dynamic program kept in long queues; 1 is greedy", least=1, most=4096),
    Parameter("second", "whether a long queue is also planned by payoff per GPU, and the plan of larger payoff taken"),
    Parameter("beta", "weight of the communication cost (line 29), which the paper leaves undefined", least=0),
    replace(BETA, name="communication"),
)
"""Parameters of ``hadar.online``."""

FORKS = (
    Parameter("overhead_s", "time per round that several copies lose to aggregation and consolidation", "s", least=0),
    Parameter("copies", "maximum number of copies of a job, 0 for one per node (section V)", least=0, most=10**6),
    Parameter(
        "payoff",
        "value of a copy: as a job with its portion of the steps (section V-B) or with all steps, or what it adds to "
        "the payoff of its job's copies",
        choices=("portion", "copy", "job"),
    ),
    Parameter(
        "last",
        "nodes of the last round (section V-A, β), the fastest in the round before; 0 for all",
        least=0,
        most=10**6,
    ),
    Parameter(
        "pcie",
        "pcie_scaling of (10), per PCIe version above 3.0: 1 ignores the version, 2 follows the bandwidth",
        least=1,
        most=100,
    ),
)
"""Parameters of ``hadar.hadare``."""

VARIANTS = ("payoff=lifetime", "prices=round", "mode=incremental", "keep=false", "conserving=true")
"""Settings of ``hadar.online`` that comparisons run in addition to the default."""


ARGUMENT = {"mode": "incremental", "payoff": "lifetime"}
"""Settings that the proof of Theorem 2 is about: jobs pay as in (8), and what is scheduled completes."""


def _theorem(view: HadarView, **settings: Any) -> Guarantee | None:
    """Return the ratio that Theorem 2 states, with the payoff (8); ``None`` for any other payoff or setting."""
    return guarantee(view) if settings.items() <= ARGUMENT.items() and "payoff" in settings else None


def _shown(view: HadarView, schedule: HadarSchedule, **settings: Any) -> Guarantee | None:
    """Return the ratio of Theorem 2 if a run with the proof's settings shows it; ``None`` for all other settings.

    Algorithm 1 as printed plans all jobs anew in each round, so a scheduled job can be preempted and earn nothing,
    although the proof credits its utility. No ratio is claimed for such runs.
    """
    return shown(view, schedule) if settings == ARGUMENT else None


def _steps(view: HadarView, schedule: HadarSchedule, *, prices: str = "run", **settings: Any) -> PriceRun:
    """Return the steps of a run; raise `UsageError` where each round had prices of its own."""
    if prices != "run":
        raise UsageError(f"prices={prices}: each round has prices of its own; steps are known for prices=run only")
    return steps(view, schedule, **settings)


simulated(
    "hadar.online",
    kind="online",
    source="Hadar, Algorithms 1 and 2, Theorem 2",
    parameters=PARAMETERS,
    variants=VARIANTS,
    guarantee=passing(_theorem, Hadar, Planning),
    shown=passing(_shown, Hadar, Planning),
    steps=passing(_steps, steps),
)(passing(lambda instance, oracle, **settings: Hadar(instance, **settings), Hadar, Planning))


@heuristic(
    "hadar.advised",
    problem=UTILITY.id,
    kind="baseline",
    source="Hadar, Algorithms 1 and 2, with predicted prices (not in the paper)",
    parameters=PREDICTED,
    by_name=True,
)
def advised(
    view: HadarView, context: Context, *, trust: float = 0.5, noise: float | str = 0.0, of: str = "same"
) -> HadarSchedule:
    """Schedule as ``hadar.online?payoff=lifetime`` does, at prices that follow those of ``hadar.p2.columns``.

    A job pays the price of the round for all of its rounds. So a prediction is the mean price of a type over the rounds
    to come, as many as the mean job takes on its fastest type. :mod:`schedgap.heuristics.advice` has the price
    function, and what is known of its ratio; none is stated.
    """
    found = predicted(view, context, "hadar.p2.columns", of, PAPERS.get("hadar"))
    extremes = extreme_prices(view)
    low, high = extremes.low[:, None], extremes.high[:, None]
    ahead = ahead_mean(blurred(found, noise, context, low, high), view)
    return schedule(view, Hadar(view.instance, payoff="lifetime", advice=Advice(ahead, trust)))


simulated("hadar.hadare", problem=FORKED.id, kind="online", source="HadarE, section V", parameters=FORKS, forks=True)(
    passing(lambda instance, oracle, **settings: HadarE(instance, **settings), HadarE)
)

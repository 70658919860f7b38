"""Synergy's schedulers (Mohan et al.), and the big-data schedulers it is compared with.

A scheduler is a policy, which orders the queue (:mod:`schedgap.heuristics.synergy.queues`), and a mechanism, which
gives the round's jobs servers, CPUs and memory (:mod:`schedgap.heuristics.synergy.mechanisms`).

=====================================  =============================================================================
``synergy.<mechanism>``                one round: the jobs of the view's round by ``proportional``, ``greedy``,
                                       ``tune``, ``refill``, ``opt``, ``drf`` or ``tetris``
``synergy.<mechanism>.<policy>``       the whole run under ``fifo``, ``srtf``, ``las`` or ``ftf``
``synergy.drf.static``, ``….tune``     DRF with whole demands as it is, and with Synergy-Tune's
``synergy.tetris.static``, ``….tune``  the same for Tetris
=====================================  =============================================================================

Where the paper's text and its artefact differ, settings choose: ``order`` and ``fit`` of Tune, ``first`` of finish-time
fairness, ``by`` of DRF, ``speed`` of SRTF. In a simulation, schedulers may decide by other tables than the true ones,
by which jobs advance (``profiles``, ``noise``, ``saturation``). What each changes is measured in
:mod:`schedgap.heuristics.synergy.mechanisms`, :mod:`schedgap.heuristics.synergy.queues` and
:func:`schedgap.heuristics.synergy.profiling.believed`.

Whole runs are policies of :mod:`schedgap.heuristics.simulator`, too; as heuristics, they run in the rounds of the view
without restarts or profiling. Progress always comes from the job's table (:mod:`schedgap.instances.sensitivity`), for
all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from schedgap.heuristics.registry import Guarantee, heuristic
from schedgap.heuristics.simulator.policies import policy
from schedgap.heuristics.synergy.online import Scheduler, built, one_round, whole_run
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.synergy import FAIR, ROUND, RUN, View

Kind = Literal["online", "baseline"]

POLICIES = ("fifo", "srtf", "las", "ftf")

PROMISED = "10 % (measured)"
"""What section 5.6 says of Synergy-Tune's distance to the optimum; no theorem."""

ROUNDS, PROGRAMS = 100_000, 1000
"""Rounds up to which a whole run is simulated in a comparison unless asked, and those of Synergy-Opt: 0.1 ms each, and
10 to 40 ms."""

CLAIMS = ("proportional", "no_idle_gpu", "all_offered")
"""What fair schedulers promise: everybody's fair progress, no GPU idle while a picked job waits, and that all picked
jobs run."""

PACKING = (
    Parameter(
        "order",
        "place jobs by demand, the largest first, as in the paper's text, or in the policy's order, as in its artefact",
        choices=("demand", "policy"),
    ),
    Parameter(
        "fit",
        "place a job on the fullest server that holds it, as in the text, or on the first one, as in the artefact",
        choices=("best", "first"),
    ),
)
FIRST = Parameter(
    "first",
    "serve the largest ρ first, as in Themis, or the smallest, as in the paper's artefact",
    choices=("largest", "smallest"),
)
BY = Parameter(
    "by",
    "serve the smallest dominant share of a job's own demand, as in the paper's artefact, or that of its tenant (DRF)",
    choices=("job", "tenant"),
)
SPEED = Parameter(
    "speed",
    "count what remains with the proportional share, or at the fastest speed, as in the paper's artefact",
    choices=("share", "fastest"),
)
PROFILES = (
    Parameter(
        "profiles",
        "decide by the true tables, or by those of optimistic profiling (§3.1); jobs advance by the true ones",
        choices=("true", "measured"),
    ),
    Parameter("noise", "largest relative error, drawn uniformly, of every rate decided by", least=0.0, most=0.9),
    Parameter("noise_seed", "seed of these errors", least=0),
    Parameter(
        "saturation", "how far below its fastest rate, as a part of it, a job may be at its demand", least=0.0, most=0.9
    ),
)


def _settings(scheduler: Scheduler) -> tuple[Parameter, ...]:
    """Return the parameters that one round has, too."""
    tuned = scheduler.mechanism in {"tune", "refill"}
    return (*(PACKING if tuned else ()), *((BY,) if scheduler.policy == "drf" else ()))


def _register_round(name: str, scheduler: Scheduler, kind: Kind, source: str) -> None:
    promised = Guarantee(PROMISED) if name == "tune" else None
    heuristic(
        f"synergy.{name}",
        problem=FAIR.id if scheduler.fair else ROUND.id,
        kind=kind,
        source=source,
        parameters=_settings(scheduler),
        guarantee=lambda view: promised,
        claims=CLAIMS if scheduler.fair else (),
    )(one_round(scheduler))


def _register_run(name: str, scheduler: Scheduler, kind: Kind, source: str, reference: str) -> None:
    """Register a scheduler on the whole run, simulated and in model time."""
    profiled = scheduler.mechanism != "proportional"
    own = {"ftf": (FIRST,), "srtf": (SPEED,) if profiled else ()}
    settings = (*_settings(scheduler), *own.get(scheduler.policy, ()))
    heuristic(
        f"synergy.{name}",
        problem=RUN.id,
        kind=kind,
        source=source,
        parameters=settings,
        claims=CLAIMS if scheduler.fair else (),
        too_large=partial(_too_large, programs=scheduler.mechanism == "opt"),
    )(whole_run(scheduler))
    policy(
        f"synergy.{name}",
        source=source,
        sensitive=True,
        profiled=profiled,
        reference=f"synergy.{reference}",
        parameters=(*settings, *PROFILES) if profiled else settings,
    )(built(scheduler))


def _too_large(view: View, programs: bool) -> str | None:
    """Say how many rounds a run has, with programs to solve in each or without, where these are too many."""
    if programs and view.rounds > PROGRAMS:
        more = f"more than {PROGRAMS:,}; harness simulate runs it, too"
        return f"about {view.rounds:,} rounds with two programs each, {more}"
    return None if programs or view.rounds <= ROUNDS else f"about {view.rounds:,} rounds, more than {ROUNDS:,}"


_MECHANISMS: tuple[tuple[str, Kind, str], ...] = (
    ("proportional", "baseline", "Synergy §2, GPU-proportional allocation"),
    ("greedy", "baseline", "Synergy §3.3, Synergy-Greedy"),
    ("tune", "online", "Synergy §4.2, Synergy-Tune"),
    ("refill", "online", "after Synergy-Tune: leftovers go to jobs that fell back"),
    ("opt", "online", "Synergy §4.1, Synergy-Opt: ILP of eq. (1)–(5), LP of eq. (15)–(19), largest remainder"),
)

for _name, _kind, _source in _MECHANISMS:
    _register_round(_name, Scheduler("fifo", _name), _kind, _source)
    for _policy in POLICIES:
        _source_of_run = f"{_source}; {_policy.upper()}"
        _register_run(f"{_name}.{_policy}", Scheduler(_policy, _name), _kind, _source_of_run, f"proportional.{_policy}")

for _name, _mechanism, _source in (
    ("drf", "greedy", "DRF (Ghodsi et al., NSDI 2011)"),
    ("tetris", "tetris", "Tetris (Grandl et al., 2014)"),
):
    _static, _tuned = Scheduler(_name, _mechanism), Scheduler(_name, "tune")
    _register_round(_name, _static, "baseline", f"{_source}, static demands")
    _register_run(f"{_name}.static", _static, "baseline", f"{_source}, static demands", f"{_name}.static")
    _register_run(f"{_name}.tune", _tuned, "baseline", f"{_source}, with Synergy-Tune (§5.7)", f"{_name}.static")

"""Synergy's schedulers (Mohan et al.), and the schedulers for big data with which the paper compares them.

A scheduler combines a policy, which orders the queue (:mod:`schedgap.heuristics.synergy.queues`), with a mechanism,
which gives the jobs of a round servers, CPUs and memory (:mod:`schedgap.heuristics.synergy.mechanisms`).

=====================================  =============================================================================
``synergy.<mechanism>``                one round: places the jobs of the view's round by ``proportional``, ``tune``,
                                       ``refill`` or ``opt``, or those of its queue by ``greedy``, ``drf`` or ``tetris``
``synergy.<mechanism>.<policy>``       the whole run; the policy is ``fifo``, ``srtf``, ``las`` or ``ftf``
``synergy.drf.static``, ``….tune``     the original DRF with whole demands, and DRF with Synergy-Tune
``synergy.tetris.static``, ``….tune``  the original Tetris with whole demands, and Tetris with Synergy-Tune
=====================================  =============================================================================

Settings choose where the paper's text and its artefact differ: ``order`` and ``fit`` of Tune, ``first`` of finish-time
fairness, ``by`` of DRF, ``speed`` of SRTF and of finish-time fairness. In a simulation, schedulers may decide by
estimated tables, while jobs advance by the true ones (``profiles``, ``noise``, ``saturation``).
``docs/experiments.md`` has the measured effect of each setting.

A round of fair mechanisms has the jobs that fill the GPUs in the order of arrival (``SynergyView.runnable``). Greedy,
DRF and Tetris get the whole queue (``SynergyView.queue``): where a job does not fit, "the next runnable job is checked"
(section 3.3).

Whole runs are also policies of :mod:`schedgap.heuristics.simulator`. As heuristics, they run in the rounds of the view
without restarts or profiling. Progress always follows the job's table (:mod:`schedgap.instances.sensitivity`).
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from schedgap.heuristics.registry import Guarantee, heuristic
from schedgap.heuristics.simulator.policies import policy
from schedgap.heuristics.synergy.online import SynergyScheduler, built, one_round, whole_run
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.synergy import FAIR, ROUND, RUN, SynergyView

Kind = Literal["online", "baseline"]

POLICIES = ("fifo", "srtf", "las", "ftf")

PROMISED = "10 % (measured)"
"""Distance of Synergy-Tune from the optimum that the paper reports in section 5.6; it is not a theorem."""

ROUNDS, PROGRAMS = 100_000, 1000
"""Most rounds of a run that a comparison simulates by default, and most for Synergy-Opt.

A round takes 0.1 ms, and 10 to 40 ms with Synergy-Opt, which solves programs.
"""

CLAIMS = ("proportional", "no_idle_gpu", "all_offered")
"""Promises of fair schedulers, which checkers test.

Every job makes its fair progress, no GPU idles while a picked job waits, and all picked jobs run.
"""

PACKING = (
    Parameter(
        "order",
        "order of placement: largest demand first, as in the paper's text, or the policy's order, as in its artefact",
        choices=("demand", "policy"),
    ),
    Parameter(
        "fit",
        "server of a job: the fullest one that fits, as in the paper's text, or the first one, as in its artefact",
        choices=("best", "first"),
    ),
)
FIRST = Parameter(
    "first",
    "order of jobs: largest ρ first, as in Themis, or smallest first, as in the paper's artefact",
    choices=("largest", "smallest"),
)
BY = Parameter(
    "by",
    "owner of the dominant share: the job with its demand, as in the paper's artefact, or its tenant (DRF)",
    choices=("job", "tenant"),
)
SPEED = Parameter(
    "speed",
    "speed for remaining times: with the proportional share, or the fastest one, as in the paper's artefact",
    choices=("share", "fastest"),
)
PROFILES = (
    Parameter(
        "profiles",
        "tables for decisions: the true ones, or those of optimistic profiling (§3.1); jobs advance by the true ones",
        choices=("true", "measured"),
    ),
    Parameter("noise", "largest relative error, drawn uniformly, of the rates in these tables", least=0.0, most=0.9),
    Parameter("noise_seed", "seed of these errors", least=0),
    Parameter(
        "saturation", "relative loss against its fastest rate that a job's demand may cause", least=0.0, most=0.9
    ),
)


def _settings(scheduler: SynergyScheduler) -> tuple[Parameter, ...]:
    """Return the parameters that one-round and whole-run schedulers share."""
    tuned = scheduler.mechanism in {"tune", "refill"}
    return (*(PACKING if tuned else ()), *((BY,) if scheduler.policy == "drf" else ()))


def _register_round(name: str, scheduler: SynergyScheduler, kind: Kind, source: str) -> None:
    promised = Guarantee(PROMISED, measured=True) if name == "tune" else None
    heuristic(
        f"synergy.{name}",
        problem=FAIR.id if scheduler.fair else ROUND.id,
        kind=kind,
        source=source,
        parameters=_settings(scheduler),
        guarantee=lambda view: promised,
        claims=CLAIMS if scheduler.fair else (),
    )(one_round(scheduler))


def _register_run(name: str, scheduler: SynergyScheduler, kind: Kind, source: str, reference: str) -> None:
    """Register a scheduler for whole runs, as a policy and, in model time, as a heuristic."""
    profiled = scheduler.mechanism != "proportional"
    speed = (SPEED,) if profiled else ()
    own = {"ftf": (FIRST, *speed), "srtf": speed}
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


def _too_large(view: SynergyView, programs: bool) -> str | None:
    """Return the reason why comparisons skip a run with too many rounds, ``None`` if it is short enough.

    `programs` says whether each round solves programs.
    """
    if programs and view.rounds > PROGRAMS:
        limit = f"more than {PROGRAMS:,}; harness simulate runs it, too"
        return f"about {view.rounds:,} rounds with two programs each, {limit}"
    return None if programs or view.rounds <= ROUNDS else f"about {view.rounds:,} rounds, more than {ROUNDS:,}"


_MECHANISMS: tuple[tuple[str, Kind, str], ...] = (
    ("proportional", "baseline", "Synergy §2, GPU-proportional allocation"),
    ("greedy", "baseline", "Synergy §3.3, Synergy-Greedy"),
    ("tune", "online", "Synergy §4.2, Synergy-Tune"),
    ("refill", "online", "Synergy-Tune, and leftovers go to jobs that fell back"),
    ("opt", "online", "Synergy §4.1, Synergy-Opt: ILP of eq. (1)–(5), LP of eq. (15)–(19), largest remainder"),
)

for _name, _kind, _source in _MECHANISMS:
    _register_round(_name, SynergyScheduler("fifo", _name), _kind, _source)
    for _policy in POLICIES:
        _source_of_run = f"{_source}; {_policy.upper()}"
        _register_run(
            f"{_name}.{_policy}", SynergyScheduler(_policy, _name), _kind, _source_of_run, f"proportional.{_policy}"
        )

for _name, _mechanism, _source in (
    ("drf", "greedy", "DRF (Ghodsi et al., NSDI 2011)"),
    ("tetris", "tetris", "Tetris (Grandl et al., 2014)"),
):
    _static, _tuned = SynergyScheduler(_name, _mechanism), SynergyScheduler(_name, "tune")
    _register_round(_name, _static, "baseline", f"{_source}, static demands")
    _register_run(f"{_name}.static", _static, "baseline", f"{_source}, static demands", f"{_name}.static")
    _register_run(f"{_name}.tune", _tuned, "baseline", f"{_source}, with Synergy-Tune (§5.7)", f"{_name}.static")

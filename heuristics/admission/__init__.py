"""The primal–dual admission algorithm of the walk-through, with utilities, deadlines and co-location."""

from __future__ import annotations

from schedgap.heuristics.admission import duality
from schedgap.heuristics.admission.online import Desk, steps  # noqa: F401 -- the lesson builds a desk
from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.moldable import Runs, runs_of
from schedgap.instances.views.admission import UTILITY, AdmissionView

LARGEST = 50_000_000
"""Most servers times types times slots for which a comparison runs the algorithm by default: half a gigabyte."""


def _too_large(view: AdmissionView) -> str | None:
    size = view.machines.capacity.size * view.slots
    return None if size <= LARGEST else f"servers x types x slots = {size:,}, more than {LARGEST:,}"


@heuristic(
    "admission.online",
    problem=UTILITY.id,
    kind="online",
    source="walk-through, parts 1 to 3: COST_C, COST_D, prices η",
    too_large=_too_large,
    steps=duality.steps,
)
def online(view: AdmissionView, context: Context) -> Runs:
    r"""Admit every job whose best schedule has a utility above its cost at the prices of its arrival.

    A worker costs :math:`\eta_w = \theta_w^{h_w(t)/\sum_s \sum_w C_{sw}} - 1` in slot t if h workers of its type are in
    use, of C of all types on all servers. :math:`\theta_w` is 1 plus the largest utility per slot and worker, of any
    type, of any job's schedule. PSs are priced alike. Here :math:`\theta_w` is fixed in advance; the text changes it on
    the way (37.4, 36.7, 18.9). For each arriving job, and every start and number of workers, a schedule on one server
    (COST_C) and one on several (COST_D) are priced. The one of highest payoff, utility minus cost, is admitted if the
    payoff is positive; then usage and prices are updated. The text proves no ratio, so none is printed.

    The text leaves open the server of a co-located job ("arbitrary"), here the first that fits. It also leaves open
    ties between payoffs; here the earliest completion wins, then the fewest slots of workers, then of PSs. COST_D puts
    at most :math:`D_w - 1` workers on a server, so a single worker is never spread.
    """
    return runs_of([(step.job, step.chosen.run) for step in steps(view) if step.chosen], 0)

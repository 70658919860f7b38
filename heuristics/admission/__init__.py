"""The primal–dual admission algorithm of the walk-through, with utilities, deadlines and co-location."""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.admission import duality
from schedgap.heuristics.admission.online import Desk, steps
from schedgap.heuristics.advice import PARAMETERS, Advice, blurred, predicted
from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.moldable import Runs, runs_of
from schedgap.instances.parameters import Parameter
from schedgap.instances.registry import PAPERS
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
    parameters=(
        Parameter(
            "theta", "multiple of θ − 1 for which the algorithm takes it: its forecast error", least=1e-6, most=1e6
        ),
    ),
    steps=duality.steps,
)
def online(view: AdmissionView, context: Context, *, theta: float = 1.0) -> Runs:
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
    return runs_of([(step.job, step.chosen.run) for step in steps(view, theta=theta) if step.chosen], 0)


@heuristic(
    "admission.advised",
    problem=UTILITY.id,
    kind="baseline",
    source="walk-through, with predicted prices (not in the text)",
    too_large=_too_large,
    parameters=PARAMETERS,
    by_name=True,
)
def advised(
    view: AdmissionView, context: Context, *, trust: float = 0.5, noise: float | str = 0.0, of: str = "same"
) -> Runs:
    """Admit jobs as ``admission.online`` does, at prices that follow those of ``admission.columns``.

    A prediction is the mean over servers of the price of a worker or parameter server in a slot. No ratio is stated,
    since the text proves none. :mod:`schedgap.heuristics.advice` has the price function.
    """
    m, desk = view.machines, Desk(view)
    found = predicted(view, context, "admission.columns", of, PAPERS.get("admission"))
    classes = view.classes
    weight = classes.capacity * classes.count[:, None]
    by_class = found.reshape(classes.size, -1, view.slots)
    mean = np.einsum("cr,crt->rt", weight, by_class) / np.maximum(m.total, 1e-12)[:, None]
    base = desk.bases[:, None]
    advice = Advice(1.0 + blurred(mean, noise, context, np.full_like(base, 1e-3), np.maximum(base - 1.0, 2e-3)), trust)
    return runs_of([(step.job, step.chosen.run) for step in steps(view, advice=advice) if step.chosen], 0)

"""The walk-through of the admission scheduler: its total, its optimality, and its slips."""

from __future__ import annotations

import numpy as np

from schedgap.harness.audit.lab import Lab, Printed, certified, recomputed, solved
from schedgap.harness.audit.registry import Witness, claim
from schedgap.harness.verify import TOLERANCE
from schedgap.instances import load
from schedgap.instances.schema import Instance
from schedgap.instances.views.admission import View, view

EXACT, ONLINE = "admission.offline", "admission.online"
PRINTED = 431.33


def example() -> tuple[Instance, View]:
    """Return the three jobs."""
    instance = load("paper/walkthrough")
    return instance, view(instance)


def own_schedule(v: View) -> float:
    """Return what the printed schedule is worth: j1 completes at 6, j2 and j3 at 8."""
    return float(v.utility(0)[6] + v.utility(1)[8] + v.utility(2)[8])


@claim(
    "admission.optimal",
    "part 3, last line",
    scope="starts after the arrival slot",
    how="the ILP over all schedules, starts from slot 4 and from slot 3",
)
def optimal(lab: Lab) -> str:
    """The schedule with total utility 431.33 is optimal."""
    instance, _ = example()
    names = (EXACT, f"{EXACT}.from_arrival", ONLINE)
    rows = certified(instance, names)
    best, early, online = (rows[name].objective or 0.0 for name in names)
    shown = f"the optimum is {best:.2f}, not {PRINTED}"
    lab.add(rows[EXACT].status != "optimal" or best <= PRINTED * (1 + TOLERANCE), instance, [EXACT, ONLINE], shown)
    lab.numbers = {"optimum": best, "from_slot_3": early, "online": online}
    return f"{shown}; {early:.2f} if slot 3 may be used; the algorithm as stated reaches {online:.2f}"


@claim("admission.j3-spread", "part 1, j3", how="j3's schedule in an optimal solution")
def spread(lab: Lab) -> str:
    """Since a server has two workers only, j3 must be spread over servers."""
    instance, v = example()
    runs = solved(EXACT, v).decision
    run = int(np.flatnonzero(runs.job == 2)[0])
    servers = np.unique(runs.server[runs.run == run])
    workers = int(runs.workers[runs.run == run].sum())
    shown = f"in an optimum j3 has {workers} workers on {servers.size} server for {runs.slots[run]} slots"
    lab.add(servers.size > 1, instance, [EXACT], shown)
    return shown


@claim("admission.slip.total", "part 3", how="the printed formula of f, 300/(1 + e^{0.02Δ})")
def slip_total(lab: Lab) -> str:
    """f(3) = 145.63 and f(5) = 142.85, and the printed schedule is worth 431.33 in total."""
    instance, v = example()
    numbers = [
        Printed("f(3)", 145.63, float(v.utility(0)[6]), 0.005),
        Printed("f(5)", 142.85, float(v.utility(0)[8]), 0.005),
        Printed("total", PRINTED, own_schedule(v), 0.005),
    ]
    shown = f"the printed schedule is worth {own_schedule(v):.2f}"
    return recomputed(lab, numbers, witnesses=[Witness(instance, (ONLINE,), shown)])


@claim("admission.slip.theta", "parts 1 to 3", how="the bases that the printed prices are powers of")
def slip_theta(lab: Lab) -> str:
    """θ_w is one number, fixed beforehand."""
    used = {"part 1, j1": 145.63 / 4 + 1, "part 1, j2": 142.85 / 4 + 1, "part 2": 142.85 / 8 + 1}
    first = used["part 1, j1"]
    for where, base in used.items():
        if where != "part 1, j1":
            lab.add(abs(base - first) <= 0.05)
    told = ", ".join(f"{where}: {base:.1f}" for where, base in used.items())
    lab.numbers = used
    return f"bases of the price of a worker: {told}"

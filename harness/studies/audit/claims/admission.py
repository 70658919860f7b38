"""The walk-through of the admission scheduler: its total, its optimality, and its slips."""

from __future__ import annotations

import numpy as np

from schedgap.harness.check import TOLERANCE
from schedgap.harness.studies.audit.lab import ClaimLab, Printed, certified, recomputed, solved
from schedgap.harness.studies.audit.row import Witness, claim
from schedgap.instances import load
from schedgap.instances.views.admission import view

EXAMPLE, EXACT, ONLINE = "paper/walkthrough", "admission.offline", "admission.online"
PRINTED = 431.33


@claim(
    "admission.optimal",
    "part 3, last line",
    scope="starts after the arrival slot",
    how="the ILP over all schedules, with starts from slot 4 and from slot 3",
)
def optimal(lab: ClaimLab) -> str:
    """The schedule with total utility 431.33 is optimal."""
    instance = load(EXAMPLE)
    names = (EXACT, f"{EXACT}.from_arrival", ONLINE)
    rows = certified(instance, names)
    best, early, online = (rows[name].objective or 0.0 for name in names)
    shown = f"the optimum is {best:.2f}, not {PRINTED}"
    lab.add(rows[EXACT].status != "optimal" or best <= PRINTED * (1 + TOLERANCE), instance, [EXACT, ONLINE], shown)
    lab.numbers = {"optimum": best, "from_slot_3": early, "online": online}
    return f"{shown}; {early:.2f} if slot 3 may be used; the algorithm as stated reaches {online:.2f}"


@claim("admission.j3-spread", "part 1, j3", how="j3's schedule in an optimal solution")
def spread(lab: ClaimLab) -> str:
    """In an optimal solution job j3 runs on more than one server, because each server offers only two workers."""
    instance = load(EXAMPLE)
    runs = solved(EXACT, view(instance)).decision
    run = int(np.flatnonzero(runs.job == 2)[0])
    servers = np.unique(runs.server[runs.run == run])
    workers = int(runs.workers[runs.run == run].sum())
    shown = f"in an optimum j3 has {workers} workers on {servers.size} server for {runs.slots[run]} slots"
    lab.add(servers.size > 1, instance, [EXACT], shown)
    return shown


@claim("admission.slip.total", "part 3", how="the printed formula of f, 300/(1 + e^{0.02Δ})")
def slip_total(lab: ClaimLab) -> str:
    """f(3) = 145.63 and f(5) = 142.85, and the printed schedule is worth 431.33 in total."""
    instance = load(EXAMPLE)
    v = view(instance)
    after_3, after_5 = (float(v.utility(0)[slot]) for slot in (6, 8))
    # j1 completes at 6, j2 and j3 at 8.
    total = after_3 + float(v.utility(1)[8] + v.utility(2)[8])
    lab.also = [Witness(instance, (ONLINE,), f"the printed schedule is worth {total:.2f}")]
    half = 0.005
    return recomputed(
        lab,
        Printed("f(3)", 145.63, after_3, half),
        Printed("f(5)", 142.85, after_5, half),
        Printed("total", PRINTED, total, half),
    )


@claim("admission.slip.theta", "parts 1 to 3", how="the bases that the printed prices are powers of")
def slip_theta(lab: ClaimLab) -> str:
    """θ_w is one number, fixed beforehand."""
    used = {"part 1, j1": 145.63 / 4 + 1, "part 1, j2": 142.85 / 4 + 1, "part 2": 142.85 / 8 + 1}
    first, *others = used.values()
    for base in others:
        lab.add(abs(base - first) <= 0.05)
    lab.numbers = used
    return f"bases of the price of a worker: {', '.join(f'{where}: {base:.1f}' for where, base in used.items())}"


PRICES = (
    ("part 1, j1", 145.63, 2, (2, 1.5, 0.05), (1, 2, 0.5)),
    ("part 1, j2", 142.85, 2, (2, 1.5, 0.05), (1, 2, 0.5)),
    ("part 2, j1", 142.85, 4, (2, 1, 0.5), (1, 1.5, 0.05)),
    ("part 2, j2", 142.85, 4, (4, 3.3, 0.05), (2, 5, 0.5)),
    ("part 2, j3", 142.85, 4, (7, 12, 0.5), (3, 14, 0.5)),
    ("part 3, j3", 145.63, 2, (5, 8.6, 0.05), (2, 7.6, 0.05)),
)
"""Printed prices: after which job; f and the slots in θ; for workers and PSs, the units in use, price and rounding."""

COSTS = (
    ("part 1, j3", 3, 1.5, 2, 26, 116.85),
    ("part 2, j2", 2, 1, 1.5, 14, 128.85),
    ("part 2, j3", 3, 3.3, 5, 59.6, 83.25),
)
"""Printed costs of jobs with four slots and one PS: where; workers, prices of a worker and of a PS, cost, payoff."""


@claim("admission.slip.steps", "parts 1 to 3", how="the printed formulas on the text's own f, θ and rounded prices")
def slip_steps(lab: ClaimLab) -> str:
    """Prices, costs and payoffs of all steps follow from the numbers before them."""
    numbers = []
    for where, f, slots, *units in PRICES:
        for name, number, total, (used, printed, half) in zip(("worker", "PS"), (2, 1), (8, 4), units, strict=True):
            made = (f / (number * slots) + 1) ** (used / total) - 1
            numbers.append(Printed(f"price of a {name} after {where}", printed, made, half))
    for where, workers, worker, server, cost, payoff in COSTS:
        numbers.append(Printed(f"cost of {where}", cost, 4 * (workers * worker + server), 0.05))
        numbers.append(Printed(f"payoff of {where}", payoff, 142.85 - cost, 0.005))
    return recomputed(lab, *numbers)


@claim(
    "admission.slip.host",
    "part 2, j3",
    how="the printed bound on a host's PSs, on the four servers as j1 and j2 leave them in part 2",
)
def slip_host(lab: ClaimLab) -> str:
    """A server with one worker of j3 and its one free PS meets the bandwidth of j3's two other workers."""
    gang, workers, servers = 3, {"s1": 1, "s2": 1, "s3": 1, "s4": 1}, {"s1": 0, "s2": 1, "s3": 0, "s4": 1}
    needed = {host: gang - min(gang - 1, free) for host, free in workers.items()}  # b_w = b_p, as in the text
    lab.add(any(needed[host] <= servers[host] for host in workers))
    lab.numbers = {"needed": needed["s4"], "free": servers["s4"]}
    listed = ", ".join(f"{host}: {needed[host]} of {servers[host]} free" for host in workers)
    return f"PSs that a host needs, ⌈(3 − 1)·1/1⌉ = 2 with one worker of its own: {listed}. No server can be the host"


@claim("admission.slip.exponent", "part 3 (1)", how="the printed power, with its exponent 2/(2·2)")
def slip_exponent(lab: ClaimLab) -> str:
    """The price of a worker after j1 is (145.63/(2·2) + 1)^(2/(2·2)) − 1 ≈ 1.5."""
    base = 145.63 / (2 * 2) + 1
    text = recomputed(lab, Printed("price of a worker", 1.5, base ** (2 / (2 * 2)) - 1, 0.05))
    return f"{text}; with 2/(4·2), as everywhere else in the text, it is {base ** (2 / (4 * 2)) - 1:.2f}"

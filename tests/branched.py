"""Models that branch and price, for tests and benchmarks."""

from __future__ import annotations

EXACT = {
    "hadar.p2.columns": "hadar.p1",
    "hadar.p2.columns.complete": "hadar.p1.complete",
    "zhou.ps.columns": "zhou.ps.schedules.offline",
    "zhou.ps.columns.maxweight": "zhou.ps.schedules",
    "zhou.ra.columns": "zhou.ra.schedules.offline",
    "zhou.ra.columns.maxweight": "zhou.ra.schedules",
    "admission.columns": "admission.offline",
    "admission.columns.from_arrival": "admission.offline.from_arrival",
}
"""Each model that branches and prices, and a model of the same problem that HiGHS solves alone."""

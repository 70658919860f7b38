"""Online rules for logs: each equals a plain program that does what its source prints, one job after another."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import test_rigid
from hypothesis import given
from hypothesis import strategies as st

from schedgap.harness.check import judge
from schedgap.harness.show.page.rigid import limits_noted
from schedgap.heuristics import HEURISTICS
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import RigidView

LOGS = Path(os.environ.get("SCHEDGAP_DATA", Path(__file__).parents[2] / "shared" / "data")) / "logs"


class Gang(NamedTuple):
    """A job as a rule sees it; `number` is its place in the order of release."""

    number: int
    release: int
    lasts: int
    asks: int
    gpus: int
    user: int


Order = Callable[[int, list[Gang], list[tuple[int, Gang]]], list[Gang]]
"""The list of waiting jobs at a time, first one first, given all starts so far as (start, job)."""


def plain(jobs: list[Gang], room: int, order: Order, overtaking: str, depth: int = 10**6) -> list[int]:
    """Return the starts of jobs by a rule that acts whenever a job is released or ends."""
    begun: list[tuple[int, Gang]] = []
    running: list[tuple[int, Gang]] = []
    coming, waiting = list(jobs), list[Gang]()
    while coming or waiting:
        now = min([start + job.lasts for start, job in running] + [job.release for job in coming])
        running = [(start, job) for start, job in running if start + job.lasts > now]
        waiting += [job for job in coming if job.release <= now]
        coming = [job for job in coming if job.release > now]
        free = room - sum(job.gpus for _, job in running)
        tried = order(now, waiting, begun)
        chosen = PASSES[overtaking](now, tried[:depth] if overtaking == "plan" else tried, running, free)
        begun += [(now, job) for job in chosen]
        running += [(now, job) for job in chosen]
        waiting = [job for job in waiting if job not in chosen]
    start = {job.number: start for start, job in begun}
    return [start[job.number] for job in jobs]


def nobody(now: int, tried: list[Gang], running: list[tuple[int, Gang]], free: int) -> list[Gang]:
    chosen: list[Gang] = []
    for job in tried:
        if job.gpus > free:
            break
        chosen.append(job)
        free -= job.gpus
    return chosen


def easily(now: int, tried: list[Gang], running: list[tuple[int, Gang]], free: int) -> list[Gang]:
    chosen = nobody(now, tried, running, free)
    free -= sum(job.gpus for job in chosen)
    if len(chosen) == len(tried):
        return chosen
    head, rest = tried[len(chosen)], tried[len(chosen) + 1 :]
    ends = [(start + job.asks, job.gpus) for start, job in [*running, *((now, job) for job in chosen)]]

    def then(time: int) -> int:
        return free + sum(gpus for end, gpus in ends if end <= time)

    shadow = min(end for end, _ in ends if then(end) >= head.gpus)
    extra = then(shadow) - head.gpus
    for job in rest:
        late = now + job.asks > shadow
        if job.gpus <= free and (not late or job.gpus <= extra):
            chosen.append(job)
            free -= job.gpus
            extra -= job.gpus if late else 0
    return chosen


def by_plan(now: int, tried: list[Gang], running: list[tuple[int, Gang]], free: int) -> list[Gang]:
    far = sum(job.asks for job in tried) + max([start + job.asks for start, job in running], default=now) - now + 1
    room = [free + sum(job.gpus for start, job in running if start + job.asks <= now + t) for t in range(far)]
    chosen = []
    for job in tried:
        t = next(t for t in range(far) if min(room[t : t + max(job.asks, 1)]) >= job.gpus)
        for k in range(t, t + job.asks):
            room[k] -= job.gpus
        if t == 0:
            chosen.append(job)
    return chosen


PASSES = {"none": nobody, "easy": easily, "plan": by_plan}


def by(key: Callable[[Gang], Any]) -> Order:
    return lambda now, waiting, begun: sorted(waiting, key=lambda job: (key(job), job.number))


def logarithm(number: float) -> float:
    return math.log10(number) if number > 0 else -math.inf


def wfp3(now: int, waiting: list[Gang], begun: list[tuple[int, Gang]]) -> list[Gang]:
    return sorted(waiting, key=lambda job: (-(((now - job.release) / max(job.asks, 1)) ** 3) * job.gpus, job.number))


def slurm(room: int, users: int, first: int, period: int, half_life: int, tree: bool, small: bool) -> Order:
    """Return the order by Slurm's priority, with the weights 1000, 10000 and 1000, and 60 s as the greatest age."""
    decay = 0.5 ** (period / half_life)

    def usage(now: int, begun: list[tuple[int, Gang]], user: int) -> float:
        total = 0.0
        for end in range(first + period, now + 1, period):
            held = [(job.gpus, start, start + job.lasts) for start, job in begun if job.user == user]
            total = total * decay + sum(g * max(0, min(end, e) - max(end - period, s)) for g, s, e in held)
        return total

    def order(now: int, waiting: list[Gang], begun: list[tuple[int, Gang]]) -> list[Gang]:
        used = [usage(now, begun, user) for user in range(users)]
        if tree:
            share = [sum(other >= own for other in used) / users for own in used]
        else:
            total = sum(used)
            share = [2 ** -((own / total if total else 0.0) / (1 / users)) for own in used]

        def priority(job: Gang) -> int:
            size = (room + 1 - job.gpus if small else job.gpus) / room
            return math.floor(1000 * min((now - job.release) / 60, 1) + 1000 * size + 10000 * share[job.user])

        return sorted(waiting, key=lambda job: (-priority(job), job.number))

    return order


@st.composite
def logs(draw: st.DrawFn) -> tuple[RigidView, list[Gang], int]:
    """Draw a log of one pool; many times are equal, some jobs last for no time, limits may be too short."""
    room = draw(st.integers(1, 5))
    line = st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 12), st.integers(1, room), st.integers(0, 2))
    lines = sorted(draw(st.lists(line, min_size=1, max_size=9)), key=lambda line: line[0])
    return built(lines, room)


def built(lines: list[tuple[int, int, int, int, int]], room: int) -> tuple[RigidView, list[Gang], int]:
    """Return a view of jobs, given as (release, duration, requested time, GPUs, user), and the jobs."""
    plain = test_rigid.instance([(release, lasts, gpus) for release, lasts, _, gpus, _ in lines], room)
    jobs = tuple(
        job.model_copy(update={"tenant": f"u{user}", "history": job.history.model_copy(update={"requested_s": asks})})
        for job, (_, _, asks, _, user) in zip(plain.jobs, lines, strict=True)
    )
    found: RigidView = PAPERS.get("rigid").view(plain.model_copy(update={"jobs": jobs}))
    names = {user: i for i, user in enumerate(sorted({line[4] for line in lines}))}
    gangs = [
        Gang(i, release, lasts, max(lasts, asks), gpus, names[user])
        for i, (release, lasts, asks, gpus, user) in enumerate(lines)
    ]
    return found, gangs, room


def same(drawn: tuple[RigidView, list[Gang], int], method: str, order: Order, overtaking: str, depth: int = 9) -> None:
    """Check that a method finds the starts of the plain program, by true times and by requested ones."""
    seen, jobs, room = drawn
    for estimates in ("true", "requested"):
        spec = HEURISTICS.get(f"{method}{'&' if '?' in method else '?'}estimates={estimates}")
        found = spec.decide(seen.instance)
        assert not judge(seen.instance, found, "rigid.flow", ()).violations
        knows = [job._replace(asks=job.lasts) if estimates == "true" else job for job in jobs]
        assert found.start.tolist() == plain(knows, room, order, overtaking, depth), spec.id


@given(logs())
def test_backfilling_does_what_it_says(drawn: tuple[RigidView, list[Gang], int]) -> None:
    same(drawn, "rigid.easy", by(lambda job: 0), "easy")
    if all(job.lasts for job in drawn[1]):  # jobs of no duration reserve nothing, and keep their place in a plan
        same(drawn, "rigid.conservative", by(lambda job: 0), "plan", 10**6)
    seen, jobs, room = drawn
    first = HEURISTICS.get("rigid.fcfs").decide(seen.instance).start.tolist()
    assert first == plain(jobs, room, by(lambda job: 0), "none")


@given(logs())
def test_lists_are_tried_by_what_is_known(drawn: tuple[RigidView, list[Gang], int]) -> None:
    seen, jobs, room = drawn

    def first_fit(now: int, tried: list[Gang], running: list[tuple[int, Gang]], free: int) -> list[Gang]:
        chosen = []
        for job in tried:
            if job.gpus <= free:
                chosen.append(job)
                free -= job.gpus
        return chosen

    PASSES["first fit"] = first_fit
    same((seen, jobs, room), "rigid.sjf", by(lambda job: job.asks), "first fit")
    same((seen, jobs, room), "rigid.smallest_area", by(lambda job: job.asks * job.gpus), "first fit")


@given(logs(), st.sampled_from(["none", "easy"]))
def test_published_priorities(drawn: tuple[RigidView, list[Gang], int], backfilling: str) -> None:
    same(drawn, f"rigid.wfp3?backfilling={backfilling}", wfp3, backfilling)
    first = drawn[1][0].release

    def f1(job: Gang) -> float:
        return logarithm(job.asks) * job.gpus + 870 * logarithm(job.release - first)

    same(drawn, f"rigid.f1?backfilling={backfilling}", by(f1), backfilling)


@given(logs(), st.sampled_from(["none", "plan"]), st.booleans(), st.booleans(), st.integers(1, 9))
def test_slurms_priority(
    drawn: tuple[RigidView, list[Gang], int], backfilling: str, tree: bool, small: bool, depth: int
) -> None:
    _, jobs, room = drawn
    settings = {
        "backfilling": backfilling,
        "fairshare": "tree" if tree else "classic",
        "max_age_d": 60 / 86400,
        "half_life_d": 20 / 86400,
        "period_min": 0.1,
        "favour_small": str(small).lower(),
        "considered": depth,
    }
    query = "&".join(f"{name}={value}" for name, value in settings.items())
    users = 1 + max(job.user for job in jobs)
    order = slurm(room, users, jobs[0].release, 6, 20, tree, small)
    same(drawn, f"rigid.multifactor?{query}", order, backfilling, depth)


def busy() -> tuple[RigidView, list[Gang], int]:
    """Return 400 jobs of a busy pool of 64 GPUs; limits are far from run times, as users' are, some too short."""
    rng = np.random.default_rng(7)
    release = np.sort(rng.integers(0, 800_000, 400)).tolist()
    lasts = np.exp(rng.normal(8.0, 1.5, 400)).astype(int).clip(1, 86_400)
    limits = np.array([600, 3600, 14_400, 43_200, 86_400])
    asks = limits[np.searchsorted(limits[:-1], lasts * rng.uniform(0.5, 5.0, 400))]
    gpus, users = 2 ** rng.integers(0, 7, 400), rng.integers(0, 12, 400)
    return built(list(zip(release, lasts.tolist(), asks.tolist(), gpus.tolist(), users.tolist(), strict=True)), 64)


GOLDEN = {
    "rigid.fcfs": 132.507,
    "rigid.easy": 26.259,
    "rigid.easy?estimates=requested": 22.417,
    "rigid.conservative": 22.300,
    "rigid.conservative?estimates=requested": 22.414,
    "rigid.sjf": 11.105,
    "rigid.sjf?estimates=requested": 12.159,
    "rigid.smallest_area": 12.235,
    "rigid.smallest_area?estimates=requested": 14.533,
    "rigid.wfp3": 10.601,
    "rigid.wfp3?estimates=requested": 21.503,
    "rigid.f1": 18.743,
    "rigid.f1?estimates=requested": 21.266,
    "rigid.multifactor": 18.147,
    "rigid.multifactor?estimates=requested": 23.446,
    "rigid.srtf": 4.129,
    "rigid.tiresias": 16.739,
}


def test_the_values_of_all_rules_on_a_busy_pool() -> None:
    seen, _, _ = busy()
    assert limits_noted(seen) == "; 9 jobs ran for longer than their limit, which is raised to that"
    assert limits_noted(replace(seen, asked=399, overran=0)) == (
        "; 1 job has no time limit: their run times count as limits"
    )
    for method, expected in GOLDEN.items():
        spec = HEURISTICS.get(method)
        verdict = judge(seen.instance, spec.decide(seen.instance), spec.problem, ())
        assert not verdict.violations
        assert verdict.metrics["wait_h"] == pytest.approx(expected, abs=5e-4), method


SAMPLES = {
    "sacct": {
        "rigid.fcfs": 3.9770,
        "rigid.easy?estimates=requested": 3.9770,
        "rigid.sjf": 4.0739,
        "rigid.sjf?estimates=requested": 3.9770,
        "rigid.f1": 3.9770,
        "rigid.wfp3": 3.9770,
        "rigid.multifactor": 3.9770,
        "rigid.srtf": 3.3872,
        "rigid.tiresias": 3.7585,
    },
    "csv": dict.fromkeys(("rigid.fcfs", "rigid.easy", "rigid.wfp3", "rigid.f1", "rigid.multifactor"), 0.01916),
}
"""Mean completion times in hours on two public logs; the second one has a job at a time."""


@pytest.mark.skipif(not LOGS.is_dir(), reason="SCHEDGAP_DATA has no logs")
@pytest.mark.parametrize("form", SAMPLES)
def test_the_values_of_rules_on_public_logs(form: str) -> None:
    columns = {"id": "job_id", "submit": "submit_time", "start": "start_time", "end": "finish_time"}
    options = Options(history=True, columns=columns | {"cores": "num_cores"} if form == "csv" else {})
    found = import_trace(form, LOGS / ("hpc_jobs.csv" if form == "csv" else "sacct_sample.txt"), options)
    for method, expected in SAMPLES[form].items():
        spec = HEURISTICS.get(method)
        value = judge(found, spec.decide(found), "rigid.flow.preemptive", ()).objective
        assert value == pytest.approx(expected, abs=5e-5), method

"""The admission algorithm step by step, compared with the walk-through's numbers and with a slow reference."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from admission_cases import exhaustive, instance, job, small, tiny, view
from hypothesis import given, settings

from schedgap import instances
from schedgap.harness.check import judge
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.admission import online
from schedgap.heuristics.admission.online import Candidate, Desk, Step, best, price, steps
from schedgap.heuristics.registry import Context
from schedgap.instances.schema import Instance
from schedgap.instances.views.admission import UTILITY, AdmissionView

WALK = view(instances.load("paper/walkthrough"))
WORKER, PS = 0, 1
CONTEXT = Context(np.random.default_rng(0), lambda model, of: None)


def of_type(theta: float, used: float, capacity: float) -> float:
    return float(price(np.array(theta), np.array(used), np.array(capacity)))


def admitted(of: AdmissionView) -> list[Step]:
    return [step for step in steps(of) if step.chosen]


def total(of: AdmissionView) -> float:
    return math.fsum(step.chosen.utility for step in steps(of) if step.chosen)


def best_of(of: AdmissionView, j: int = 0) -> tuple[Candidate | None, Candidate | None]:
    desk = Desk(of)
    return desk.candidates(j, desk.prices)


# the text's numbers -------------------------------------------------------------------------------


def test_utilities() -> None:
    f = WALK.utility(0)
    assert f[3 + 3] == pytest.approx(145.50, abs=0.005)  # 145.63 in the text
    assert f[3 + 5] == pytest.approx(142.51, abs=0.005)  # 142.85 in the text


def test_theta_is_fixed_beforehand() -> None:
    """Ours is fixed at the text's first θ: 145.63/4 + 1 = 37.4 for workers, 145.63/2 + 1 for PSs.

    The text later uses 36.7 and 18.9.
    """
    f = WALK.utility(0)
    assert Desk(WALK).bases.tolist() == pytest.approx([f[6] / 4 + 1, f[6] / 2 + 1])
    assert Desk(WALK).bases.tolist() == pytest.approx([37.4, 73.8], abs=0.05)
    later = [142.85 / 4 + 1, 142.85 / 8 + 1]
    assert later == pytest.approx([36.7, 18.9], abs=0.05)


@pytest.mark.parametrize(
    ("printed", "digits", "utility", "taken", "used", "capacity"),
    [
        (1.5, 0.05, 145.63, 4, 2, 8),  # part 1, after j1: workers in slots 4 and 5
        (2, 0.1, 145.63, 2, 1, 4),  # PSs
        (1.5, 0.05, 142.85, 4, 2, 8),  # after j2, slots 6 and 7
        (2, 0.1, 142.85, 2, 1, 4),
        (1, 0.1, 142.85, 8, 2, 8),  # part 2, all spread: after j1
        (1.5, 0.05, 142.85, 4, 1, 4),
        (3.3, 0.05, 142.85, 8, 4, 8),  # after j2
        (5, 0.1, 142.85, 4, 2, 4),
        (12, 0.1, 142.85, 8, 7, 8),  # after j3
        (14, 0.15, 142.85, 4, 3, 4),
        (8.6, 0.05, 145.63, 4, 5, 8),  # part 3, after j3
        (7.6, 0.05, 145.63, 2, 2, 4),
    ],
)
def test_printed_prices_follow_from_the_formula_and_the_texts_theta(
    printed: float, digits: float, utility: float, taken: float, used: float, capacity: float
) -> None:
    assert of_type(utility / taken + 1, used, capacity) == pytest.approx(printed, abs=digits)


def test_part_3_step_by_step() -> None:
    """The algorithm treats j1 and j2 as the text does, but finds a schedule of j3 on one server that pays more.

    The text passes over it: two workers for three slots.
    """
    one, two, three = steps(WALK)
    assert [step.job for step in (one, two, three)] == [0, 1, 2]
    assert not one.before.any()
    assert described(one) == ("co-located", 4, 2, [2], [1])
    assert one.chosen
    assert one.chosen.payoff == pytest.approx(145.50, abs=0.005)  # 145.63
    assert one.after[WORKER, 4:6].tolist() == pytest.approx([1.47, 1.47], abs=0.005)  # 1.5
    assert one.after[PS, 4:6].tolist() == pytest.approx([1.93, 1.93], abs=0.005)  # 2
    assert not one.after[:, :4].any()
    assert not one.after[:, 6:].any()
    assert two.before is one.after
    assert described(two) == ("co-located", 6, 2, [2], [1])
    assert two.chosen
    assert two.chosen.payoff == pytest.approx(142.51, abs=0.005)  # 142.85
    assert two.after[WORKER, 4:].tolist() == pytest.approx([1.47] * 4, abs=0.005)  # 1.5, with another θ
    assert described(three) == ("co-located", 4, 3, [2], [1])
    assert three.chosen
    assert three.chosen.run.cost == pytest.approx(14.63, abs=0.005)
    assert three.chosen.payoff == pytest.approx(129.38, abs=0.005)
    assert total(WALK) == pytest.approx(432.01, abs=0.005)  # 431.33


def test_j3_spread_as_in_the_text() -> None:
    spread = steps(WALK)[2].spread
    assert spread
    assert (spread.run.start, spread.run.slots) == (4, 4)
    assert sorted(spread.run.workers.tolist()) == [0, 0, 1, 2]
    assert spread.run.ps.sum() == 1
    assert spread.run.cost == pytest.approx(25.39, abs=0.005)  # 26 = 4·3·1.5 + 4·1·2
    assert spread.payoff == pytest.approx(117.11, abs=0.005)  # 116.85
    # After the text's schedule of j3, our prices equal the text's 8.6 and 7.6.
    desk = Desk(WALK)
    for run in (steps(WALK)[0].chosen, steps(WALK)[1].chosen, spread):
        assert run
        desk.admit(run.run)
    assert desk.prices[:, 5].tolist() == pytest.approx([8.6, 7.6], abs=0.05)


def test_j2_waits_because_of_the_prices() -> None:
    """Beside j1, j2 would complete two slots earlier, but its payoff would be 135.75 instead of 142.51."""
    desk = Desk(WALK)
    (first, _) = desk.candidates(0, desk.prices)
    assert first
    desk.admit(first.run)
    prices = desk.prices
    beside = 2 * (2 * prices[WORKER, 4] + prices[PS, 4])
    assert WALK.utility(1)[6] - beside == pytest.approx(135.8, abs=0.06)
    waits, _ = desk.candidates(1, prices)
    assert waits
    assert (waits.run.start, waits.run.cost) == (6, 0)
    assert waits.payoff == pytest.approx(142.5, abs=0.01)
    # Without prices it starts at once, on another server: that is in the optimum.
    at_once, _ = desk.candidates(1, np.zeros_like(prices))
    assert at_once
    assert (at_once.run.start, at_once.run.workers.tolist()) == (4, [0, 2, 0, 0])


def test_part_2_if_everything_is_spread() -> None:
    """With all jobs spread, schedules are the text's and prices are higher.

    The text prices its steps with θ = 18.9 and 36.7; ours is fixed at 37.4 and 73.8.
    """
    desk = Desk(WALK)
    _, one = desk.candidates(0, desk.prices)
    assert one
    assert (one.run.start, one.run.slots, one.run.cost) == (4, 4, 0)
    assert one.run.workers.tolist() == [1, 1, 0, 0]  # as in the text: s1 with the PS, s2
    assert one.run.ps.tolist() == [1, 0, 0, 0]
    desk.admit(one.run)
    _, two = desk.candidates(1, desk.prices)
    assert two
    assert two.run.cost == pytest.approx(4 * (2 * 1.4726 + 1.9305), abs=0.001)  # 14 = 4·2·1 + 4·1·1.5
    assert two.run.ps.tolist() == [0, 0, 1, 0]  # s3, as in the text: the emptiest
    # The text puts the other worker on the empty s4; by its own rule the fullest server comes first.
    assert two.run.workers.tolist() == [1, 0, 1, 0]
    desk.admit(two.run)
    assert desk.prices[:, 4].tolist() == pytest.approx([5.11, 7.59], abs=0.005)  # 3.3 and 5
    _, three = desk.candidates(2, desk.prices)
    assert three
    assert three.run.cost == pytest.approx(4 * (3 * 5.1135 + 7.5878), abs=0.001)  # 59.6 = 4·3·3.3 + 4·1·5
    assert three.payoff == pytest.approx(50.8, abs=0.05)  # 83.25
    assert (three.run.workers.sum(), three.run.ps.sum()) == (3, 1)


def described(step: Step) -> tuple[str, int, int, list[int], list[int]]:
    assert step.chosen
    run = step.chosen.run
    layout = "co-located" if step.chosen.colocated else "spread"
    return layout, run.start, run.slots, run.workers[run.workers > 0].tolist(), run.ps[run.ps > 0].tolist()


# rules --------------------------------------------------------------------------------------------


def test_a_co_located_job_needs_workers_and_a_ps_on_one_server() -> None:
    of = view(instance([job()], [("w", 4, 0), ("w", 1, 1), ("w", 2, 1), ("w", 3, 2)]))
    colocated, _ = best_of(of)
    assert colocated
    assert colocated.run.workers.tolist() == [0, 0, 2, 0]
    assert colocated.run.ps.tolist() == [0, 0, 1, 0]


def test_the_host_is_the_one_with_the_fewest_ps_that_cover_the_workers_elsewhere() -> None:
    # A PS has half a worker's bandwidth. Of three workers, two elsewhere need four PSs, one elsewhere needs two.
    of = view(instance([job(3, 2, transfer_s=0.1)], [("w", 1, 4), ("w", 2, 2), ("w", 1, 9)], ps_gbps=0.5))
    _, spread = best_of(of)
    assert spread
    assert spread.run.ps.tolist() == [0, 2, 0]
    assert spread.run.workers.tolist() == [1, 2, 0]


def test_a_host_without_enough_ps_is_none() -> None:
    of = view(instance([job(3, 2, transfer_s=0.1)], [("w", 1, 4), ("w", 2, 1), ("w", 1, 3)], ps_gbps=0.5))
    _, spread = best_of(of)
    assert spread
    assert spread.run.ps.tolist() == [4, 0, 0]


def test_other_workers_go_on_the_fullest_servers() -> None:
    # Three workers run beside the PSs; the other three fill the servers with room for one and for two workers.
    of = view(instance([job(6, 1, transfer_s=0.0)], [("w", 3, 3), ("w", 2, 0), ("w", 4, 0), ("w", 1, 0)]))
    _, spread = best_of(of)
    assert spread
    assert spread.run.workers.tolist() == [3, 2, 0, 1]
    assert spread.run.ps.tolist() == [3, 0, 0, 0]


def test_prices_count_workers_of_all_types_together() -> None:
    """θ and the exponent of the price sum over all worker types, as printed: h_w/(Σ_s Σ_w c_sw)."""
    jobs = [job(2, 4, seconds={"fast": 0.5, "slow": 1.0}, deadline=4.0)] * 2
    of = view(instance(jobs, [("fast", 2, 1), ("slow", 2, 1)], slots=9))
    first, _ = steps(of)
    assert first.chosen
    theta = of.utility(0)[first.chosen.run.end] / (2 * first.chosen.run.slots) + 1
    fast, slow, _ = Desk(of).bases.tolist()
    assert fast == slow
    assert fast >= theta * (1 - 1e-9)
    assert first.after[0, first.chosen.run.start] == pytest.approx(fast ** (2 / 4) - 1)


def test_a_single_worker_is_never_spread() -> None:
    of = view(instance([job(1, 1)], [("w", 1, 0), ("w", 0, 1)], slots=9))
    assert best_of(of) == (None, None)
    # An exact schedule has it.
    assert exhaustive(instance([job(1, 1)], [("w", 1, 0), ("w", 0, 1)], slots=9)) > 0


def test_two_workers_are_spread_also_where_one_would_take_as_long() -> None:
    """The second job is spread over two servers, because the first one made the server with the PSs dearer.

    It has its PSs on server 0 and needs two of them, for two servers.
    """
    jobs = [job(1, epochs=1, seconds=1.0, transfer_s=0.0), job(2, epochs=1, seconds=0.5, transfer_s=0.0)]
    of = view(instance(jobs, [("w", 1, 3), ("w", 1, 0), ("w", 1, 0)], slots=2))
    _, second = steps(of)
    assert second.colocated is None
    assert second.chosen is second.spread
    assert second.spread
    assert (second.spread.run.workers.tolist(), second.spread.run.ps.tolist()) == ([0, 1, 1], [2, 0, 0])
    assert second.spread.payoff == pytest.approx(of.utility(1)[2] - 4 * second.before[WORKER, 1])


def test_servers_that_are_taken_for_a_slot_are_taken() -> None:
    of = view(instance([job(2, 2)], [("w", 2, 1)], slots=8))
    desk = Desk(of)
    desk.free[0, 0, 2] = 1
    colocated, _ = desk.candidates(0, desk.prices)
    assert colocated
    assert colocated.run.start == 3


def test_prices_reject_a_job_that_is_worth_little() -> None:
    jobs = [job(2, 2, worth=1000.0), job(2, 2, worth=0.1)]
    rejecting = view(instance(jobs, [("w", 4, 2)], slots=4))
    first, second = steps(rejecting)
    assert first.chosen
    assert second.chosen is None
    assert second.colocated
    assert second.colocated.payoff < 0
    assert second.after is second.before
    alone = view(instance(jobs[1:], [("w", 4, 2)], slots=4))
    assert len(admitted(alone)) == 1


def test_jobs_come_in_the_order_of_arrival() -> None:
    of = view(instance([job(arrival=2.0), job(), job(arrival=2.0), job(arrival=1.0)]))
    assert [step.job for step in steps(of)] == [1, 3, 0, 2]


def test_the_arrival_slot_is_not_used_and_the_deadline_is_met() -> None:
    (step,) = steps(view(instance([job(arrival=1.0, deadline=4.0)])))
    assert step.chosen
    assert (step.chosen.run.start, step.chosen.run.end) == (2, 4)
    (step,) = steps(view(instance([job(arrival=1.0, deadline=3.0)])))
    assert step.chosen is None
    assert (step.colocated, step.spread) == (None, None)


def test_the_faster_worker_type_is_taken_and_then_the_other_one() -> None:
    jobs = [job(2, 4, seconds={"fast": 0.5, "slow": 0.75}, deadline=4.0)] * 2
    of = view(instance(jobs, [("fast", 2, 1), ("slow", 2, 1)], slots=9))
    first, second = steps(of)
    assert first.chosen
    assert second.chosen
    assert [first.chosen.run.worker_type, second.chosen.run.worker_type] == [0, 1]
    assert not first.after[1].any()
    assert first.after[0].any()


def test_of_equal_payoffs_the_earliest_end_counts_and_then_the_fewest_workers() -> None:
    of = instance([job(3, 1)], [("w", 3, 1)])
    constant = of.model_copy(update={"jobs": tuple(j.model_copy(update=CONSTANT) for j in of.jobs)})
    (step,) = steps(view(constant))
    assert step.chosen
    assert (step.chosen.run.start, step.chosen.run.slots, step.chosen.run.workers.tolist()) == (1, 1, [3])
    two = instance([job(4, 1)], [("w", 3, 1)])
    constant = two.model_copy(update={"jobs": tuple(j.model_copy(update=CONSTANT) for j in two.jobs)})
    (step,) = steps(view(constant))
    assert step.chosen
    # Four mini-batches take two slots on two workers as on three.
    assert (step.chosen.run.slots, step.chosen.run.workers.tolist()) == (2, [2])


CONSTANT = {"utility": instances.schema.Constant(amplitude=5.0)}


# a slow reference ---------------------------------------------------------------------------------


def reference(
    of: AdmissionView, desk: Desk, j: int, prices: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> list[float]:
    """Return the highest payoffs of a spread and of a co-located schedule, −inf if there is none, by trying all."""
    found = [-math.inf, -math.inf]
    f, m = of.utility(j), of.machines
    for w in range(len(m.worker_types)):
        share = m.worker_bandwidth[w] / m.ps_bandwidth[0]
        for number in range(1, int(of.most[j]) + 1):
            for together in (False, True):
                rate = of.rates.slots(j, w, 0, number, together)
                if not math.isfinite(rate):
                    continue
                d = max(1, math.ceil(of.work[j] * rate / number - 1e-9))
                for a in range(int(of.arrival[j]) + 1, int(of.deadline[j]) - d + 1):
                    least = desk.free[:, :, a : a + d].min(axis=2)
                    if together:
                        counts = [
                            1 for room, ps in zip(least[:, w], least[:, -1], strict=True) if room >= number and ps
                        ]
                    else:
                        capped = [min(number - 1, room) for room in least[:, w].tolist()]
                        needs = [math.ceil((number - own) * share - 1e-9) for own in capped]
                        enough = sum(capped) >= number
                        counts = [s for s, ps in zip(needs, least[:, -1], strict=True) if enough and ps >= s]
                    for s in counts:
                        cost = prices[w, a : a + d].sum() * number + prices[-1, a : a + d].sum() * s
                        found[together] = max(found[together], float(f[a + d] - cost))
    return found


@settings(max_examples=40, deadline=None)
@given(small())
def test_candidates_are_those_of_the_reference(of: Instance) -> None:
    v = view(of)
    desk = Desk(v)
    for step in steps(v):
        prices = desk.prices
        assert prices.tolist() == step.before.tolist()
        for candidate, most in zip((step.spread, step.colocated), reference(v, desk, step.job, prices), strict=True):
            if candidate is None:
                assert most == -math.inf
            else:
                assert candidate.payoff == pytest.approx(most, rel=1e-9, abs=1e-9)
                check_placement(v, desk, candidate)
        assert step.chosen is best(step.colocated, step.spread)
        if step.chosen:
            desk.admit(step.chosen.run)
    assert (desk.free >= 0).all()


def check_placement(of: AdmissionView, desk: Desk, candidate: Candidate) -> None:
    run = candidate.run
    assert run.workers.sum() == desk.options.workers[run.option]
    room = desk.free[:, :, run.start : run.end].min(axis=2)
    assert (run.workers <= room[:, run.worker_type]).all()
    assert (run.ps <= room[:, -1]).all()
    (host,) = np.flatnonzero(run.ps)
    used = np.flatnonzero(run.workers)
    if candidate.colocated:
        assert used.tolist() == [host]
        return
    assert len({*used.tolist(), int(host)}) > 1
    elsewhere = run.workers.sum() - run.workers[host]
    assert (
        elsewhere * of.machines.worker_bandwidth[run.worker_type] <= run.ps[host] * of.machines.ps_bandwidth[0] + 1e-9
    )


# decisions ----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(small())
def test_decisions_are_verified_and_prices_only_rise(of: Instance) -> None:
    v = view(of)
    verdict = judge(v.instance, online(v, CONTEXT), UTILITY.id, ())
    assert not verdict.violations
    assert verdict.objective == pytest.approx(total(v), rel=1e-9, abs=1e-12)
    seen = steps(v)
    for one, next_one in pairwise(seen):
        assert next_one.before is one.after
        assert (one.after >= one.before).all()
    for step in seen:
        assert step.chosen is None or step.chosen.payoff > 0
        assert (step.after <= Desk(v).bases[:, None] - 1 + 1e-9).all()


@settings(max_examples=25, deadline=None)
@given(tiny(jobs=3))
def test_never_more_than_the_optimum(of: Instance) -> None:
    assert total(view(of)) <= exhaustive(of) * (1 + 1e-9)


@pytest.mark.parametrize("ref", ["gen/20jobs", "gen/200jobs"])
def test_generated_instances(ref: str) -> None:
    v = view(instances.load(ref))
    verdict = judge(v.instance, online(v, CONTEXT), UTILITY.id, ())
    assert not verdict.violations
    assert verdict.metrics["admitted"] > 0


def test_no_theorem_so_no_guarantee() -> None:
    assert HEURISTICS.get("admission.online").guarantee(WALK) is None


def test_too_many_cells_are_not_taken_unasked() -> None:
    spec = HEURISTICS.get("admission.online")
    assert spec.too_large(WALK) is None
    wide = replace(WALK, slots=10**7)
    assert spec.too_large(wide) == "servers x types x slots = 80,000,000, more than 50,000,000"

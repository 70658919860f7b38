"""Figures of Zhou's schedulers and of admission (windows, bars, prices) show everything once and invent nothing."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zhou_cases as cases
from charts import channels, panels, record, records, scale_of, texts
from moldable_schedules import admitted, zhou_schedule

import schedgap.harness.show.plots.admission as admission_plots
import schedgap.harness.show.plots.zhou as zhou_plots
from schedgap.harness.check import judge
from schedgap.harness.show.drawing import figures as figures_of
from schedgap.harness.show.drawing import registered
from schedgap.harness.show.figure import Drawing, plain_spec, rendered
from schedgap.harness.show.plots.gantt import NAMED_JOBS, server_rows
from schedgap.harness.show.plots.style import ValueGroup, beside_bounds, dearest, looks
from schedgap.harness.show.plots.zhou import gpu_bars, price_field
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.heuristics.admission.online import steps
from schedgap.heuristics.registry import HEURISTICS
from schedgap.instances.catalogue import load
from schedgap.instances.moldable import Runs
from schedgap.instances.schema import Instance
from schedgap.instances.views import admission, zhou
from schedgap.instances.views.zhou import ZhouSchedule

ARCHITECTURES = ("ps", "ra")
BOTH = ("gantt", "prices", "completion")
NAMES = {"windows", *(f"{name}-{arch}" for name in BOTH for arch in ARCHITECTURES)}


@pytest.fixture(autouse=True)
def _no_complaints() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def row_of(instance: Instance, method: str, problem: str, objective: float | None, **fields: Any) -> Row:
    known: dict[str, Any] = {
        "instance": instance.name,
        "fingerprint": instance.fingerprint,
        "paper": method.split(".", 1)[0],
        "method": method,
        "problem": problem,
        "kind": "online",
        "sense": "min" if problem.startswith("zhou") else "max",
        "status": "feasible",
        "verified": True,
        "objective": objective,
    }
    return Row(**(known | fields))


def verified(instance: Instance, view: Any, method: str, problem: str, decision: Any, **fields: Any) -> Row:
    verdict = judge(view.instance, decision, problem, ())
    assert verdict.violations == ()
    return row_of(instance, method, problem, verdict.objective, **fields)


def zhou_run(instance: Instance) -> Comparison:
    """Return a run of Zhou's methods: online schedules, two baselines, one with interruptions, and a bound's prices."""
    view = zhou.view(instance)
    run = Comparison({}, [], {instance.fingerprint: instance})
    for name in ARCHITECTURES:
        backwards = list(range(view.size))[::-1]
        online = HEURISTICS.get(f"zhou.{name}.online").decide(instance)
        for method, kind, decision in (
            ("online", "completion", online),
            ("fifo", "completion", zhou_schedule(view, name)),
            ("srtf", "completion", zhou_schedule(view, name, backwards)),
            ("tiresias", "preemptive", zhou_schedule(view, name)),
        ):
            full, problem = f"zhou.{name}.{method}", f"zhou.{name}.{kind}"
            row = verified(instance, view, full, problem, decision, best_bound=10.0, bound_from=f"zhou.{name}.columns")
            run.rows.append(row)
            run.decisions[instance.fingerprint, full, 0, ""] = decision
        classes = view.architectures[name].classes
        prices = np.outer(np.arange(classes.size * 4) % 3, np.linspace(0.0, 1.0, 12))
        run.rows.append(row_of(instance, f"zhou.{name}.columns", f"zhou.{name}.completion", None, verified=None))
        run.prices[instance.fingerprint, f"zhou.{name}.columns", 0, ""] = prices
    return run


@pytest.fixture(scope="module")
def small() -> Comparison:
    jobs = [cases.job(2, 3, minibatch_s=0.7, weight=2.0, submit_s=float(i)) for i in range(5)]
    groups = [cases.servers(2, gpus=2), cases.servers(1, gpus=1, cpus=3.0, chip="K80")]
    return zhou_run(cases.instance(jobs, groups, types=[cases.ps(gpus=1)]))


@pytest.fixture(scope="module")
def large() -> Comparison:
    return zhou_run(load("gen/20jobs"))


def drawn(run: Comparison, name: str) -> Drawing:
    (item,) = figures_of(run, name)
    return item


def figures(run: Comparison) -> set[str]:
    own = [spec.id for spec in registered() if spec.id.startswith(("zhou.", "admission."))]
    return {item.name.split("-", 1)[1] for item in figures_of(run, *own)}


# every figure -------------------------------------------------------------------------------------


def test_every_run_draws_what_it_has(small: Comparison, large: Comparison) -> None:
    assert figures(small) == NAMES
    for name in NAMES:
        assert "n = 5 jobs" in drawn(small, name).caption
        assert "n = 20 jobs" in drawn(large, name).caption


@pytest.mark.parametrize("name", ["windows", "prices-ps", "completion-ra"])
def test_figures_are_the_same_every_time(name: str, large: Comparison) -> None:
    first, second = (drawn(large, name).svg for _ in range(2))
    assert first == second
    ET.fromstring(first)
    assert len(first) < 400_000


def test_nothing_to_draw(small: Comparison) -> None:
    absent = Comparison({}, small.rows, small.instances)
    wrong = Comparison({}, [row.replace(verified=False) for row in small.rows], small.instances, small.decisions)
    instance = next(iter(small.instances.values()))
    nobody = Comparison({}, [row_of(instance, "zhou.ps.amaxweight", "zhou.ps.weight", 0.0)], small.instances)
    for run, kept in ((absent, {"completion-ps", "completion-ra"}), (wrong, set()), (nobody, set())):
        assert figures(run) == kept


def test_hostile_names_are_drawn_as_they_are(small: Comparison) -> None:
    instance = next(iter(small.instances.values()))
    rows = [row.replace(method="zhou.ps.<b>$x$") if row.method == "zhou.ps.fifo" else row for row in small.rows]
    item = drawn(Comparison({}, rows, {instance.fingerprint: instance}), "completion-ps")
    assert "<b>" not in item.svg
    assert record(item, method="zhou.ps.<b>$x$")


# windows ------------------------------------------------------------------------------------------


def test_windows_hold_runs_and_waiting_times(large: Comparison) -> None:
    instance = next(iter(large.instances.values()))
    view = zhou.view(instance)
    item = drawn(large, "windows")
    for name in ARCHITECTURES:
        schedule: ZhouSchedule = large.decisions[instance.fingerprint, f"zhou.{name}.online", 0, ""]
        mine = {what: records(item, method=f"zhou.{name}.online", what=what) for what in ("runs", "waits", "window")}
        length = {what: [each["end"] - each["time"] for each in mine[what]] for what in mine}
        hours = view.slot_s / 3600
        assert sorted(length["runs"]) == pytest.approx(sorted(hours * schedule.slots))
        waited = (schedule.start - view.arrival[schedule.job]).sum()
        assert sum(length["waits"]) == pytest.approx(hours * waited)
        starts = [each["time"] for each in mine["runs"]]
        assert starts == pytest.approx(sorted(hours * (schedule.start - 1)))
        edges = {*schedule.window_start.tolist(), *(schedule.window_start + schedule.window_slots).tolist()}
        assert sorted({each["time"] for each in mine["window"]}) == pytest.approx(
            [hours * (e - 1) for e in sorted(edges)]
        )
        rounds = records(item, method=f"zhou.{name}.online", what="round of A_maxweight")
        assert len(rounds) == int(schedule.window_rounds.sum()) - len(schedule.window_start)
        assert {each["job"] for each in mine["runs"]} <= set(view.ids)
    assert any(each.get("text") == "1 round" for each in records(item))
    assert ">1 round<" in item.svg
    assert [layer["mark"].get("clip") for layer in item.spec["spec"]["layer"]] == [True, True, False]  # it is above
    assert "undefined" not in item.svg
    assert "time [h]" in texts(item)


def test_the_time_axis_ends_where_work_ends(large: Comparison) -> None:
    instance = next(iter(large.instances.values()))
    online = [large.decisions[instance.fingerprint, f"zhou.{name}.online", 0, ""] for name in ARCHITECTURES]
    last = max(int((d.start + d.slots).max()) for d in online) - 1
    hours = zhou.view(instance).slot_s / 3600
    assert scale_of(drawn(large, "windows"), "x")["domain"] == [0.0, pytest.approx(last * hours)]
    assert max(int((d.window_start + d.window_slots).max()) for d in online) - 1 >= last


# Gantt --------------------------------------------------------------------------------------------


def test_gantt_shows_the_best_and_the_online_schedule(small: Comparison) -> None:
    item = drawn(small, "gantt-ps")
    rows = {row.method: row.objective for row in small.rows if row.problem == "zhou.ps.completion"}
    best = min((m for m in rows if rows[m] and m != "zhou.ps.online"), key=lambda m: rows[m] or 0.0)
    assert [title.split(":")[0] for title in panels(item)] == [best, "zhou.ps.online"]
    assert record(item, panel=panels(item)[0], job="J1")
    assert '"V100"' in texts(item).replace("\\", "")


def test_bars_hold_the_gpus_of_workers_and_ps(small: Comparison) -> None:
    instance = next(iter(small.instances.values()))
    view = zhou.view(instance)
    schedule: ZhouSchedule = small.decisions[instance.fingerprint, "zhou.ps.fifo", 0, ""]
    bars = gpu_bars(view, "ps", schedule)
    held = ((schedule.workers + schedule.ps) * schedule.slots[schedule.run]).sum()  # a worker and a PS have one each
    assert (bars.gpus * (bars.end - bars.start)).sum() == pytest.approx(held * view.slot_s)
    assert bars.start.min() == (schedule.start.min() - 1) * view.slot_s
    gpus = view.architectures["ra"].machines.capacity[:, 0].astype(np.int64)
    rows = server_rows(instance, gpus, view.ids)
    assert rows.servers.gpus.tolist() == [2, 2, 1]
    assert rows.servers.gpu_type.tolist() == [0, 0, 1]
    ring = gpu_bars(view, "ra", small.decisions[instance.fingerprint, "zhou.ra.fifo", 0, ""])
    assert ring.gpus.max() <= 2


# prices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_prices_are_those_of_equation_11(name: str, large: Comparison) -> None:
    for instance in (load("gen/20jobs?servers_per_type=2"), next(iter(large.instances.values()))):
        view = zhou.view(instance)
        of = view.architectures[name]
        schedule = zhou_schedule(view, name)
        slots = int((schedule.start + schedule.slots).max()) - 1
        used = np.zeros((of.machines.size, 4, slots))
        for r, h, w, s in zip(schedule.run, schedule.server, schedule.workers, schedule.ps, strict=True):
            at = slice(schedule.start[r] - 1, schedule.start[r] - 1 + schedule.slots[r])
            need = w * of.machines.worker[schedule.worker_type[r]]
            need = need + (s * of.machines.ps[schedule.ps_type[r]] if s else 0.0)
            used[h, :, at] += need[:, None]
        capacity = of.machines.capacity[:, :, None]
        price = of.price_base ** (used / capacity) - 1
        wanted = [price[of.machines.kind == k].mean(axis=0) for k in range(of.classes.size)]
        field = price_field(of, schedule)
        assert field == pytest.approx(np.concatenate(wanted), rel=1e-6, abs=1e-6 * of.price_base)


def test_maps_of_prices_name_classes_and_resources(large: Comparison) -> None:
    item = drawn(large, "prices-ps")
    names = scale_of(item, "y")["domain"]
    assert {name.split(" ")[1] for name in names} == {"GPU", "CPU", "RAM", "net"}
    assert names[0] == "V100-rack1 GPU"
    assert "weight per unit and slot" in texts(item)
    posted, duals = item.spec["vconcat"]
    assert [posted["encoding"][axis] for axis in "xy"] == [duals["encoding"][axis] for axis in "xy"]


def test_duals_are_what_a_server_costs(small: Comparison) -> None:
    instance = next(iter(small.instances.values()))
    found = small.prices[instance.fingerprint, "zhou.ps.columns", 0, ""]
    capacity = zhou.view(instance).architectures["ps"].classes.capacity.ravel()
    item = drawn(small, "prices-ps")
    end = scale_of(item, "x")["domain"][1]
    duals = _data(item, item.spec["vconcat"][1])
    wanted = (found * capacity[:, None])[found.max(axis=1) > 0][:, : round(end)]
    assert sum(each["value"] * (each["end"] - each["time"]) for each in duals) == pytest.approx(wanted.sum(), rel=1e-3)


def _data(item: Drawing, chart: dict[str, Any]) -> Any:
    return item.spec["datasets"][chart["data"]["name"]]


def test_only_the_dearest_rows_are_drawn() -> None:
    field = np.zeros((40, 3))
    field[::2, 1] = np.arange(20)
    rows = dearest(field, 16)
    assert len(rows) == 16
    assert rows.tolist() == sorted(rows.tolist())
    assert field[rows].max(axis=1).min() == 4


def test_the_caption_counts_the_prices_that_are_not_drawn(small: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = [row for row in small.rows if row.method == "zhou.ps.columns"]
    run = Comparison({}, bound, small.instances, prices=small.prices)
    (key,) = (key for key in small.prices if key[1] == "zhou.ps.columns")
    some, free = (np.count_nonzero((small.prices[key].max(axis=1) > 0) == drawn) for drawn in (True, False))
    monkeypatch.setattr(zhou_plots, "MAX_PRICES", 2)
    caption = drawn(run, "prices-ps").caption
    assert f"{free} are 0 throughout and not drawn" in caption
    assert f"The 2 most expensive are drawn, {some - 2} are not" in caption


# bars ---------------------------------------------------------------------------------------------


def test_completion_times_stand_beside_the_bound(small: Comparison) -> None:
    item = drawn(small, "completion-ps")
    whole = sorted(row.objective or 0.0 for row in small.rows if row.problem == "zhou.ps.completion" and row.objective)
    apart = [row.objective for row in small.rows if row.problem == "zhou.ps.preemptive"]
    assert [each["value"] for each in records(item)] == pytest.approx([*whole, *apart], rel=1e-5)
    assert {each["bound"] for each in records(item)} == {10.0}
    assert panels(item) == ["without interruptions", "jobs may be interrupted"]
    shown = texts(item)
    for text in ("certified lower bound", "Σ w·c"):
        assert text in shown
    assert "by the bound of zhou.ps.columns" in item.caption


def test_bars_of_one_group_without_bound() -> None:
    chart = beside_bounds([ValueGroup({"a": 0.0, "b": 0.0}, None)], "x", looks("ab"))
    assert rendered(plain_spec(chart), "svg")
    assert not list(channels(chart, "strokeDash"))


# admission ----------------------------------------------------------------------------------------


def admission_run(instance: Instance) -> Comparison:
    view = admission.view(instance)
    run = Comparison({}, [], {instance.fingerprint: instance})
    online = HEURISTICS.get("admission.online").decide(instance)
    for method, problem, decision in (
        ("admission.offline", "admission.utility", admitted(view)),
        ("admission.offline.from_arrival", "admission.from_arrival", admitted(view, first=0)),
        ("admission.online", "admission.utility", online),
    ):
        run.rows.append(verified(instance, view, method, problem, decision))
        run.decisions[instance.fingerprint, method, 0, ""] = decision
    return run


@pytest.fixture(scope="module")
def walk() -> Comparison:
    return admission_run(load("paper/walkthrough"))


def test_replayed_prices_are_those_that_jobs_see() -> None:
    for ref in ("paper/walkthrough", "gen/20jobs"):
        view = admission.view(load(ref))
        seen = steps(view)
        runs: Runs = HEURISTICS.get("admission.online").decide(load(ref))
        prices = admission_plots.replayed(view, runs, np.arange(runs.job.size + 1))
        after = [seen[0].before, *(step.after for step in seen if step.chosen)]
        assert prices == pytest.approx(np.array(after), rel=1e-9, abs=1e-12)


def test_each_admission_adds_to_the_price(walk: Comparison) -> None:
    instance = next(iter(walk.instances.values()))
    view = admission.view(instance)
    item = drawn(walk, "steps")
    runs: Runs = walk.decisions[instance.fingerprint, "admission.online", 0, ""]
    prices = admission_plots.replayed(view, runs, np.arange(4))
    for panel, r in zip(panels(item), (0, 1), strict=True):
        for k, job in enumerate(("j1", "j2", "j3")):
            (added,) = [each["added"][:-1] for each in records(item, panel=panel) if each["order"] == k]
            assert added == pytest.approx((prices[k + 1, r] - prices[k, r])[: len(added)], rel=1e-5)
            assert not (prices[k + 1, r] - prices[k, r])[len(added) :].any()
            assert job in {each["job"] for each in records(item)}
    assert "3 jobs admitted. n = 3 jobs" in item.caption


def test_many_admissions_are_taken_together() -> None:
    run = admission_run(load("gen/20jobs"))
    instance = next(iter(run.instances.values()))
    runs: Runs = run.decisions[instance.fingerprint, "admission.online", 0, ""]
    item = drawn(run, "steps")
    assert runs.job.size > NAMED_JOBS
    kinds = len(np.unique(runs.worker_type)) + 1
    assert len(panels(item)) == min(kinds, admission_plots.MAX_TYPES)
    assert {each["order"] for each in records(item)} == set(range(min(runs.job.size, admission_plots.MAX_STEPS)))
    free = len(admission.view(instance).machines.resources) - kinds
    assert (f"Free throughout and not drawn: {free} type" in item.caption) == (free > 0)
    assert drawn(run, "steps").svg == item.svg


def test_workers_of_the_best_and_the_online_decision(walk: Comparison) -> None:
    item = drawn(walk, "workers")
    titles = panels(item)
    assert titles[0] == "admission.offline: utility 435.01, 3 of 3 jobs admitted"
    assert titles[1].startswith("admission.online: utility 43")
    assert "n = 3 jobs, 2 methods on paper/walkthrough" in item.caption
    instance = next(iter(walk.instances.values()))
    slot_s = admission.view(instance).slot_s
    for title, method in zip(titles, ("admission.offline", "admission.online"), strict=True):
        runs: Runs = walk.decisions[instance.fingerprint, method, 0, ""]
        bars = [each for each in records(item, panel=title) if "job" in each]
        area = [np.dot(np.subtract(b["end"], b["time"]), np.subtract(b["bottom"], b["top"])) for b in bars]
        assert sum(area) == pytest.approx(slot_s * (runs.workers * runs.slots[runs.run]).sum())
        assert len(records(item, panel=title)) - len(bars) == 4  # servers


def test_nobody_admitted_is_nothing_to_draw(walk: Comparison) -> None:
    none = np.zeros(0, np.int64)
    empty = {key: Runs(*[none] * 9) for key in walk.decisions}
    assert figures(Comparison({}, walk.rows, walk.instances, empty)) == set()

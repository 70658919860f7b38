"""Figures of Zhou's schedulers and of admission: windows, bars, prices, sweeps; nothing is lost or invented."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zhou_cases as cases
from elastic_schedules import admitted, zhou_schedule
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

import schedgap.harness.plots.admission as admission_plots
import schedgap.harness.plots.zhou as zhou_plots
from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.figure import Drawing, parts, registered, styled
from schedgap.harness.figure import figures as figures_of
from schedgap.harness.plots.gantt import NAMED_JOBS, server_rows
from schedgap.harness.plots.pieces import Group, beside_bounds
from schedgap.harness.plots.zhou import dearest, gpu_bars, price_field
from schedgap.harness.plots.zhou_sweeps import compared, found, settings
from schedgap.harness.verify import VERIFIERS
from schedgap.heuristics.admission import steps
from schedgap.heuristics.registry import HEURISTICS
from schedgap.instances.catalogue import load
from schedgap.instances.elastic import Runs
from schedgap.instances.schema import Instance
from schedgap.instances.views import admission, zhou
from schedgap.instances.views.zhou import Schedule

ARCHITECTURES = ("ps", "ra")
BOTH = ("gantt", "prices", "duals", "completion")
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
    verdict = VERIFIERS.get(problem.split(".", 1)[0]).check(view, decision, problem, ())
    assert verdict.violations == ()
    return row_of(instance, method, problem, verdict.objective, **fields)


def zhou_run(instance: Instance) -> Comparison:
    """Online schedules, two others, one with interruptions, and prices of a bound."""
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


def texts(figure: Figure) -> str:
    return " ".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text")))


def boxes(collection: PolyCollection) -> np.ndarray:
    """Left, right, bottom and top of each box."""
    corners = [path.vertices for path in collection.get_paths()]
    return np.array([[c[:, 0].min(), c[:, 0].max(), c[:, 1].min(), c[:, 1].max()] for c in corners])


def polygons(figure: Figure, panel: int = 0) -> list[PolyCollection]:
    return [c for c in figure.axes[panel].collections if isinstance(c, PolyCollection)]


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
    assert "zhou.ps.<b>$x$" in texts(item.figure)


# windows ------------------------------------------------------------------------------------------


def test_windows_hold_runs_and_waiting_times(large: Comparison) -> None:
    instance = next(iter(large.instances.values()))
    view = zhou.view(instance)
    figure = drawn(large, "windows").figure
    for panel, name in enumerate(ARCHITECTURES):
        schedule: Schedule = large.decisions[instance.fingerprint, f"zhou.{name}.online", 0, ""]
        waits, runs = (boxes(c) for c in polygons(figure, panel))
        assert sorted(runs[:, 1] - runs[:, 0]) == sorted(schedule.slots.tolist())
        assert (waits[:, 1] - waits[:, 0]).sum() == (schedule.start - view.arrival[schedule.job]).sum()
        assert runs[:, 0].tolist() == sorted(schedule.start.tolist())
        upright = [float(line.get_xdata()[0]) for line in figure.axes[panel].lines]
        edges = {*schedule.window_start.tolist(), *(schedule.window_start + schedule.window_slots).tolist()}
        rounds = int(schedule.window_rounds.sum())
        assert edges <= set(upright)
        assert len(upright) == 2 * len(schedule.window_start) + rounds - len(schedule.window_start)
    shown = texts(figure)
    assert f"(α by the formula: {view.architectures['ps'].alpha})" in shown
    assert "1 round" in shown
    assert "time [slots of 3600 s]" in shown


# Gantt --------------------------------------------------------------------------------------------


def test_gantt_shows_the_best_and_the_online_schedule(small: Comparison) -> None:
    item = drawn(small, "gantt-ps")
    titles = [ax.get_title(loc="left").split(":")[0] for ax in item.figure.axes]
    rows = {row.method: row.objective for row in small.rows if row.problem == "zhou.ps.completion"}
    best = min((m for m in rows if rows[m] and m != "zhou.ps.online"), key=lambda m: rows[m] or 0.0)
    assert titles == [best, "zhou.ps.online"]
    assert "J1" in texts(item.figure)
    assert [t.get_text() for t in item.figure.axes[0].get_yticklabels()] == ["V100", "K80"]


def test_bars_hold_the_gpus_of_workers_and_ps(small: Comparison) -> None:
    instance = next(iter(small.instances.values()))
    view = zhou.view(instance)
    schedule: Schedule = small.decisions[instance.fingerprint, "zhou.ps.fifo", 0, ""]
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
@pytest.mark.parametrize("cells", [1, zhou_plots.CELLS])
def test_prices_are_those_of_equation_11(
    name: str, cells: int, large: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zhou_plots, "CELLS", cells)
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
        price = (of.price_base ** (used / capacity) - 1) / capacity
        wanted = [price[of.machines.kind == k].mean(axis=0) for k in range(of.classes.size)]
        field = price_field(of, schedule)
        assert field == pytest.approx(np.concatenate(wanted), rel=1e-6, abs=1e-6 * of.price_base)


def test_maps_of_prices_name_classes_and_resources(large: Comparison) -> None:
    item = drawn(large, "prices-ps")
    names = [t.get_text() for t in item.figure.axes[0].get_yticklabels()]
    assert {name.split(" ")[1] for name in names} == {"GPU", "CPU", "RAM", "net"}
    assert names[0] == "V100-rack1 GPU"
    assert "weight per unit and slot" in texts(item.figure)


def test_duals_are_what_a_server_costs(small: Comparison) -> None:
    instance = next(iter(small.instances.values()))
    found = small.prices[instance.fingerprint, "zhou.ps.columns", 0, ""]
    capacity = zhou.view(instance).architectures["ps"].classes.capacity.ravel()
    image = drawn(small, "duals-ps").figure.axes[0].images[0].get_array()
    wanted = (found * capacity[:, None])[found.max(axis=1) > 0]
    assert np.nan_to_num(np.asarray(image)) == pytest.approx(wanted)  # 0 stays white where colours are logarithmic
    assert f"{(found.max(axis=1) == 0).sum()} are 0 throughout" in drawn(small, "duals-ps").caption


def test_only_the_dearest_rows_are_drawn() -> None:
    field = np.zeros((40, 3))
    field[::2, 1] = np.arange(20)
    rows, words = dearest(field)
    assert len(rows) == zhou_plots.MAX_PRICES
    assert rows.tolist() == sorted(rows.tolist())
    assert field[rows].max(axis=1).min() == 4
    assert "21 are 0 throughout and not drawn" in words
    assert "The 16 dearest are drawn, 3 are not" in words


# bars ---------------------------------------------------------------------------------------------


def test_completion_times_stand_beside_the_bound(small: Comparison) -> None:
    item = drawn(small, "completion-ps")
    widths = [bar.get_width() for bar in item.figure.axes[0].patches]
    whole = sorted(row.objective or 0.0 for row in small.rows if row.problem == "zhou.ps.completion" and row.objective)
    apart = [row.objective for row in small.rows if row.problem == "zhou.ps.preemptive"]
    assert widths == [*whole, *apart]
    lines = [line for line in item.figure.axes[0].lines if float(line.get_xdata()[0]) == 10.0]
    assert len(lines) == 2
    shown = texts(item.figure)
    for text in ("without interruptions", "jobs may be interrupted", "certified lower bound", "Σ w·c"):
        assert text in shown
    assert "by the bound of zhou.ps.columns" in item.caption


def test_bars_of_one_group_without_bound() -> None:
    with styled():
        figure = beside_bounds([Group({"a": 0.0, "b": 0.0}, None)], "x")
        figure.canvas.draw()
    assert not figure.axes[0].lines
    assert not figure.legends


# sweeps -------------------------------------------------------------------------------------------


def copies(**names: Any) -> list[Instance]:
    """One-job instances of those names."""
    made = []
    for i, name in enumerate(names["names"]):
        jobs = [cases.job(2, 1, weight=1.0 + i)] * names.get("jobs", 1)
        made.append(cases.instance(jobs, unit_worth=names.get("unit_worth"), name=name))
    return made


def sweep_of(
    instances: list[Instance], results: dict[str, list[float | None]], problem: str = "completion"
) -> Comparison:
    """A run with the objectives of each method on each instance."""
    rows = [
        row_of(instance, method, f"{'.'.join(method.split('.')[:2])}.{problem}", value, best_bound=0.5 * i + 0.5)
        for method, values in results.items()
        for i, (instance, value) in enumerate(zip(instances, values, strict=True))
        if value is not None
    ]
    return Comparison({}, rows, {instance.fingerprint: instance for instance in instances})


def test_settings_are_those_of_reference_and_instance() -> None:
    (plain,) = copies(names=["gen/x?capacity=0.3&seed=4&worker_type=p3%2Exlarge&tag=a%20b&bad=nan"])
    assert settings(plain.name, plain) == {
        "capacity": 0.3,
        "tag": "a b",
        "bad": "nan",
        "worker_type": "w0",
        "jobs": 1.0,
        "servers": 1.0,
        "unit_worth": "jobs' own",
    }
    assert settings("mine", copies(names=["m"], unit_worth=3.0)[0])["unit_worth"] == 3.0


def lines(figure: Figure, panel: int = 0) -> list[tuple[list[float], list[float]]]:
    return [
        (list(map(float, line.get_xdata())), list(map(float, line.get_ydata())))
        for line in figure.axes[panel].lines
        if len(line.get_xdata())
    ]


def test_means_over_seeds_by_parameter() -> None:
    names = [f"gen/x?capacity={c}&seed={s}" for c in (0.5, 0.2) for s in (1, 2)]
    run = sweep_of(copies(names=names), {"zhou.ps.online": [4, 6, 10, 30], "zhou.ps.fifo": [8, 8, 12, 12]})
    item = drawn(run, "sweep-completion")
    online, fifo, bound = lines(item.figure)
    assert online == ([0.2, 0.5], [20.0, 5.0])
    assert fifo == ([0.2, 0.5], [12.0, 8.0])
    assert bound == ([0.2, 0.5], [1.75, 0.75])
    spread = next(c for c in item.figure.axes[0].collections if isinstance(c, LineCollection))
    assert [segment[:, 1].tolist() for segment in spread.get_segments()] == [[10.0, 30.0], [4.0, 6.0]]
    assert "n = 8 results of 2 methods on 4 instances" in item.caption
    assert {"online", "fifo", "capacity"} <= set(texts(item.figure).split())


def test_methods_are_compared_on_the_same_instances() -> None:
    names = [f"gen/x?capacity={c}&seed={s}" for c in (1, 2) for s in (1, 2)]
    run = sweep_of(copies(names=names), {"zhou.ps.online": [4, 6, 10, 30], "zhou.ps.columns": [None, 5, 8, 9]})
    item = drawn(run, "sweep-completion")
    online, columns, bound = lines(item.figure)
    assert online == ([1.0, 2.0], [6.0, 20.0])
    assert columns == ([1.0, 2.0], [5.0, 8.5])
    assert bound == ([1.0, 2.0], [1.0, 1.75])
    assert "n = 6 results" in item.caption
    apart = sweep_of(copies(names=names[:2]), {"zhou.ps.online": [4, None], "zhou.ps.columns": [None, 5]})
    assert figures_of(apart, "sweep-completion") == []  # one value only


def test_one_parameter_at_a_time() -> None:
    names = [f"gen/x?a={a}&b={b}" for a, b in ((1, 1), (2, 1), (3, 1), (1, 5), (2, 9))]
    run = sweep_of(copies(names=names), {"zhou.ra.online": [1, 2, 3, 4, 5], "zhou.ps.online": [2, 4, 6, 8, 10]})
    item = drawn(run, "sweep-completion")
    titles = [ax.get_title(loc="left") for ax in item.figure.axes]
    assert titles == [f"{name}\n{other}" for other in ("b = 1", "a = 1") for name in zhou.ARCHITECTURES.values()]
    assert lines(item.figure, 0)[0] == ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert lines(item.figure, 1)[0] == ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert lines(item.figure, 2)[0] == ([1.0, 5.0], [2.0, 8.0])


def test_values_without_numbers_stand_side_by_side() -> None:
    names = [f"gen/x?mode={mode}" for mode in ("fast", "slow", "an unusually long name")]
    run = sweep_of(copies(names=names), {"zhou.ps.amaxweight": [1e6, 3e8, 2e6]}, "weight")
    item = drawn(run, "sweep-weight")
    ax = item.figure.axes[0]
    assert [t.get_text() for t in ax.get_xticklabels()][:2] == ["fast", "slow"]
    assert ax.get_yscale() == "log"
    assert "10⁶ weight" in ax.get_ylabel()
    assert lines(item.figure)[0] == ([0.0, 1.0, 2.0], [1.0, 300.0, 2.0])
    assert figures_of(run, "sweep-completion") == []


def test_more_methods_than_colours_name_what_is_left_out() -> None:
    names = ["gen/x?capacity=1", "gen/x?capacity=2000"]
    methods = ["online", *(f"online?v={i}" for i in range(9)), "fifo"]
    run = sweep_of(copies(names=names), {f"zhou.ps.{m}": [1.0, 2.0] for m in methods})
    item = drawn(run, "sweep-completion")
    assert len(lines(item.figure)) == 11  # ten methods and a bound
    assert "No room for: online?v=8." in item.caption
    assert item.figure.axes[0].get_xscale() == "log"


def test_several_seeds_of_one_instance_are_no_sweep(small: Comparison) -> None:
    twice = Comparison(
        {}, [*small.rows, *(row.replace(seed=1) for row in small.rows)], small.instances, small.decisions
    )
    assert figures_of(twice, "sweep-completion") == []
    assert "Of several seeds the first is shown." in drawn(twice, "windows").caption
    run = sweep_of(copies(names=["gen/x?seed=1", "gen/x?seed=2"]), {"zhou.ps.online": [1.0, 2.0]})
    assert figures_of(run, "sweep-completion") == []


def test_a_generated_sweep_is_drawn() -> None:
    refs = [f"gen/zhou-ps?jobs={n}&servers=3&seed={s}" for n in (8, 12) for s in (1, 2)]
    instances = [load(ref) for ref in refs]
    results: dict[str, list[float | None]] = {}
    for name in ARCHITECTURES:
        views = [zhou.view(instance) for instance in instances]
        results[f"zhou.{name}.fifo"] = [
            VERIFIERS.get("zhou").check(v, zhou_schedule(v, name), f"zhou.{name}.completion", ()).objective
            for v in views
        ]
    item = drawn(sweep_of(instances, results), "sweep-completion")
    assert [ax.get_xlabel() for ax in item.figure.axes] == ["jobs", "jobs"]
    assert item.svg.startswith("<?xml")


def test_panels_keep_their_rows() -> None:
    names = [f"gen/x?capacity={c}" for c in (1, 2, 3)]
    run = sweep_of(copies(names=names), {"zhou.ps.online": [4, 6, 10]})
    (panel,) = found(next(part for part in parts(run) if part.of == "paper"), ["completion"])
    assert panel.values == [1.0, 2.0, 3.0]
    rows = compared(panel, ["online"])
    assert rows[["value", "objective"]].to_numpy().tolist() == [[1.0, 4], [2.0, 6], [3.0, 10]]


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
    for ax, r in zip(item.figure.axes, (0, 1), strict=True):
        areas = [patch.get_data() for patch in ax.patches]
        for k, (values, _, baseline) in enumerate(areas):
            assert values == pytest.approx(prices[k + 1, r])
            assert baseline == pytest.approx(prices[k, r])
    assert {"j1", "j2", "j3"} <= set(texts(item.figure).split())
    assert "3 jobs admitted. n = 3 jobs" in item.caption


def test_many_admissions_are_a_map() -> None:
    run = admission_run(load("gen/20jobs"))
    instance = next(iter(run.instances.values()))
    runs: Runs = run.decisions[instance.fingerprint, "admission.online", 0, ""]
    item = drawn(run, "steps")
    assert runs.job.size > NAMED_JOBS
    images = [image for ax in item.figure.axes for image in ax.images]
    kinds = len(np.unique(runs.worker_type)) + 1
    assert [image.get_array().shape[0] for image in images[:kinds]] == [runs.job.size] * kinds
    free = len(admission.view(instance).machines.resources) - kinds
    assert (f"Free throughout and not drawn: {free} type" in item.caption) == (free > 0)
    assert drawn(run, "steps").svg == item.svg


def test_workers_of_the_best_and_the_online_decision(walk: Comparison) -> None:
    item = drawn(walk, "workers")
    titles = [ax.get_title(loc="left") for ax in item.figure.axes]
    assert titles[0] == "admission.offline: utility 435.01, 3 of 3 jobs admitted"
    assert titles[1].startswith("admission.online: utility 43")
    assert "n = 3 jobs, 2 methods on paper/walkthrough" in item.caption
    instance = next(iter(walk.instances.values()))
    for panel, method in enumerate(("admission.offline", "admission.online")):
        runs: Runs = walk.decisions[instance.fingerprint, method, 0, ""]
        idle, held = (boxes(c) for c in polygons(item.figure, panel))
        areas = (held[:, 1] - held[:, 0]) * (held[:, 3] - held[:, 2])
        assert areas.sum() == pytest.approx((runs.workers * runs.slots[runs.run]).sum())
        assert len(idle) == 4


def test_nobody_admitted_is_nothing_to_draw(walk: Comparison) -> None:
    none = np.zeros(0, np.int64)
    empty = {key: Runs(*[none] * 9) for key in walk.decisions}
    assert figures(Comparison({}, walk.rows, walk.instances, empty)) == set()

"""Provers of Synergy's problems: prices of GPUs, CPUs and memory, for a round or for the whole run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views import synergy
from schedgap.models.engine.solve import Session, SolveOptions
from schedgap.models.provers.fluid import SECONDS, mean, normalised, percentile
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import duals, listed, unit_of, whole
from schedgap.models.registry import Outcome
from schedgap.models.synergy.columns import RoundPrices
from schedgap.models.synergy.configurations import capacity, units
from schedgap.models.synergy.ideal import round_form
from schedgap.models.synergy.jct import run_of
from schedgap.models.synergy.servers import ServerPrices
from schedgap.models.synergy.throughput import FLOORED, OPEN, QUEUED, WITH_ORACLE, RoundRule, choices


def rounds(view: synergy.SynergyView, outcome: Outcome, options: SolveOptions, *, rule: RoundRule) -> Content | None:
    """Return prices of GPUs, CPUs and memory that prove a bound on the progress of a round.

    They are duals of a relaxation in which each job holds one configuration. The queue is all jobs of the instance that
    can run, so its certificate lists none.
    """
    chosen = choices(view, rule)
    group, held, at = chosen.classes, chosen.held, chosen.at
    if len(np.unique(chosen.owner)) < (len(group.count) if rule.everybody else 1):
        return None
    form = round_form(view, chosen)
    lower = form.row_lower if rule.everybody else np.full_like(form.row_lower, -np.inf)
    relaxed = replace(form, integer=np.zeros(len(at), bool), row_lower=lower)
    solution = Session(relaxed, replace(options, method="simplex", seeds=())).run()
    if solution.row_duals is None:
        return None
    types = np.unique(held.gpu_type[at])
    prices = np.zeros((view.types, 3))
    prices[types] = solution.row_duals[: 3 * len(types)].reshape(3, -1).T / units(view)[types]
    gain = group.weight[chosen.owner] * held.rate[at]
    unit = unit_of(float(group.count.sum() * gain.max(initial=0.0)))
    proof: Content = {"unit": unit, "slot_s": view.slot_s, "prices": listed(whole(np.maximum(prices, 0.0), unit))}
    return proof if rule.queue else proof | {"round": [view.workload.ids[j] for j in view.runnable]}


def on_servers(view: synergy.SynergyView, outcome: Outcome, options: SolveOptions) -> Content:
    """Return charges of jobs that prove a bound on the progress of a round on servers, and the steps of pricing."""
    prices: ServerPrices = outcome.evidence
    pricing = prices.pricing
    group, jobs = pricing.chosen.classes, pricing.rule.jobs(view)
    largest = np.abs(prices.charge).max(initial=pricing.gain.max(initial=0.0))
    unit = unit_of(float((pricing.most.sum() + pricing.rooms.gpus.max()) * largest))
    charge = np.zeros(view.size)
    charge[group.jobs] = np.repeat(whole(prices.charge, unit), group.count)
    proof: Content = {"unit": unit, "slot_s": view.slot_s, "steps": pricing.steps.tolist()}
    proof["charges"] = listed(charge[jobs])
    return proof if pricing.rule.queue else proof | {"round": [view.workload.ids[j] for j in jobs]}


def of_rounds(view: synergy.SynergyView) -> Array:
    """Return the GPUs, CPUs and memory of each type."""
    return capacity(view).ravel()


def by_rounds(view: synergy.SynergyView, prices: Array) -> Content:
    """Return prices ``(d, T)`` of present resources for a certificate; rounds of equal prices share a column."""
    there = of_rounds(view)
    per_unit = np.zeros((len(there), prices.shape[1]))
    per_unit[there > 0] = prices / there[there > 0][:, None]
    unit = unit_of(float((per_unit * there[:, None]).sum()))
    rounded = whole(per_unit, unit)
    first = np.append(True, (np.diff(rounded, axis=1) != 0).any(axis=0))
    edges = [*np.flatnonzero(first).tolist(), prices.shape[1]]
    return {"unit": unit, "slot_s": view.slot_s, "prices": listed(rounded[:, first]), "rounds": edges}


def mean_of_run(view: synergy.SynergyView, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return multipliers that prove a bound on the mean completion time, with intervals in rounds instead of seconds.

    Prices are per round of all of a resource and count completion times in rounds, so they are the same.
    """
    if isinstance(outcome.evidence, RoundPrices):
        return by_rounds(view, outcome.evidence.prices)
    content = mean(view, outcome, options, there=of_rounds)
    if content is not None and "edges" in content:
        content["edges"] = [edge / view.slot_s for edge in content["edges"]]
    return content


def last_round(view: synergy.SynergyView, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return prices of GPUs, CPUs and memory, and of the longest job, that prove a bound on Synergy's makespan."""
    if outcome.solution.row_duals is None:
        return None
    run, there = run_of(view), capacity(view)
    prices, own = -duals(outcome.solution, "resource_rounds", there.shape), np.zeros(len(view.possible))
    own[run.earliest.argmax()] = max(1.0 - float((np.maximum(prices, 0) * there).sum()), 0.0)
    return normalised(prices.ravel(), own, there.ravel()) | {"slot_s": view.slot_s}


RULES = {synergy.IDEAL: FLOORED, synergy.FREE: OPEN, synergy.QUEUE: QUEUED, synergy.ORACLE: WITH_ORACLE}

for problem, rule in RULES.items():
    PROVERS.register(ProverSpec(problem.id, partial(rounds, rule=rule)))
for problem in (synergy.FAIR, synergy.ROUND):
    PROVERS.register(ProverSpec(problem.id, on_servers))
PROVERS.register(ProverSpec(synergy.MAKESPAN.id, last_round))
PROVERS.register(ProverSpec(synergy.RUN.id, mean_of_run))
PROVERS.register(ProverSpec(synergy.P99.id, partial(percentile, there=of_rounds, unit_s=SECONDS)))

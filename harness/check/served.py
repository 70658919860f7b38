r"""Fairness of the service that jobs really got in a simulated history: envy, sharing incentive, finish-time fairness.

Mechanisms promise shares. What tenants get is less: gangs do not fit, devices are rounded, restarts and networks cost
time, profiles err. This module reads the raw instance and the records of a history whose rounds have been confirmed,
and nothing of the policy.

*Service* is counted in seconds of one GPU of a job's fastest type: iterations divided by the job's best rate. In a
round, a tenant has active jobs that ask for D GPUs. A bundle of GPUs is worth to it what its D fastest GPUs do in the
round, at the mean speedup of these jobs (weighted by GPUs), and at most the work that they have left. Work that comes
late is left in several rounds, and counts in each of them: a tenant lacks it for as long as it waits.

- *Sharing incentive*: the service of all rounds against the worth of an equal split, the tenant's weight over the
  weights of all tenants with jobs in the round. A tenant is *short* by the share that is missing, and *behind* for as
  long as the sum of its service is below the sum of the worth of its splits.
- *Envy*: the worth of another tenant's GPUs, in proportion to both weights, over the rounds in which both have jobs,
  against the service in these rounds. A split counts before gangs and restarts, but another's GPUs are really held.
- *Finish-time fairness* (Themis, Mahajan et al., NSDI 2020): the time from arrival to completion over all of a tenant's
  jobs, divided by a lower bound on the same with its equal split of the whole cluster, for itself, from beginning to
  end. In the bound, each job has the split alone. So the quotient is an upper estimate of Themis's ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.certificates.reading.simulated import Simulated, simulated_of
from schedgap.harness.check.registry import TOLERANCE, facts_of
from schedgap.heuristics.simulator.trace import Trace
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import Instance

LISTED = 5
"""Number of tenants that the row of a history lists, those that lack most first."""

MOST = 50_000_000
"""Most pairs of tenants, counted in each round, for which a history is judged."""


@dataclass(frozen=True, eq=False)
class Served:
    """What ``t`` tenants got in a history; times in seconds, service in seconds of one GPU of the fastest type.

    Attributes
    ----------
    tenants
        Their names.
    service, split
        ``(t,)`` service, and what the equal splits of all rounds are worth.
    short
        ``(t,)`` share of `split` that is missing, 0 or more.
    behind_s
        ``(t,)`` length of the rounds after which the service so far is less than the splits so far.
    envy
        ``(t, t)`` share that is missing of what the GPUs of each other tenant would have been worth, 0 or more.
    finish
        ``(t,)`` upper estimate of the finish-time fairness ρ; NaN for tenants with unfinished jobs.
    """

    tenants: tuple[str, ...]
    service: Array
    split: Array
    short: Array
    behind_s: Array
    envy: Array
    finish: Array

    @property
    def numbers(self) -> dict[str, float]:
        """The worst of each property, and the number of tenants that are short of their split."""
        return {
            "served_short": float(self.short.max(initial=0.0)),
            "served_harmed": int((self.short > TOLERANCE).sum()),
            "served_behind_s": float(self.behind_s.max(initial=0.0)),
            "served_envy": float(self.envy.max(initial=0.0)),
            "served_finish": float(self.finish.max()) if np.isfinite(self.finish).all() else float("nan"),
        }

    @property
    def lacking(self) -> tuple[dict[str, Any], ...]:
        """The :data:`LISTED` tenants that lack most of their splits, with whom each envies most, as plain data."""
        order = sorted(range(len(self.tenants)), key=lambda i: (-self.short[i], -self.behind_s[i]))
        return tuple(self._of(i, int(self.envy[i].argmax())) for i in order[:LISTED])

    def _of(self, i: int, other: int) -> dict[str, Any]:
        return {
            "tenant": self.tenants[i],
            "service_s": float(self.service[i]),
            "split_s": float(self.split[i]),
            "short": float(self.short[i]),
            "behind_s": float(self.behind_s[i]),
            "envied": self.tenants[other] if self.envy[i, other] > 0 else None,
            "envy": float(self.envy[i, other]),
            "finish": float(self.finish[i]) if np.isfinite(self.finish[i]) else None,
        }


def unserved(tenants: int, *, sensitive: bool, forks: bool) -> str:
    """Return why service to this many tenants under a policy is not judged; empty if it can be.

    `sensitive` policies give out CPUs, and others may fork jobs.
    """
    if tenants < 2:
        return "there is one tenant only"
    if sensitive:
        return "jobs with more CPUs than their share exceed the rates by which service is counted"
    if forks:
        return "copies of a job hold more GPUs than its gang, which limits what an equal split is worth"
    return ""


def served(instance: Instance, trace: Trace) -> Served | None:
    """Judge the service of a verified history.

    ``None`` for the reasons of :func:`unserved`, or if the pairs of tenants and rounds are more than :data:`MOST`.
    """
    facts: Simulated = facts_of(instance, simulated_of)
    names, owner, weight = tenants_of(instance.plain)
    cannot = unserved(len(names), sensitive=trace.rules.sensitive, forks=trace.rules.forks)
    if cannot or trace.rounds * len(names) ** 2 > MOST:
        return None
    work, cluster, t = facts.jobs, facts.servers, len(names)
    there = cluster.capacity > 0
    best = np.where(there, work.rates, 0.0).max(axis=1, initial=0.0)
    able = best > 0
    speed = np.divide(
        np.where(there, work.rates, 0.0), best[:, None], out=np.zeros(work.rates.shape), where=able[:, None]
    )
    left = np.where(able, work.work / np.where(able, best, 1.0), 0.0)
    done = TOLERANCE * left
    begin, first = (
        np.searchsorted(table[:, 0], np.arange(trace.rounds + 1)) for table in (trace.progress, trace.allocation)
    )
    service, split, behind_s = np.zeros(t), np.zeros(t), np.zeros(t)
    apart, worth_of = np.zeros((t, t)), np.zeros((t, t))
    length, sizes = trace.rules.round_s, cluster.capacity.astype(float)
    for r, start_s in enumerate(trace.start_s.tolist()):
        active = np.flatnonzero(
            able & (work.arrival_s <= start_s + TOLERANCE) & (work.leave_s > start_s) & (left > done)
        )
        demand = np.bincount(owner[active], work.gpus[active], t).astype(float)
        most = np.bincount(owner[active], left[active], t)
        mean = np.zeros((t, sizes.size))
        np.add.at(mean, owner[active], work.gpus[active, None] * speed[active])
        here = np.flatnonzero(demand > 0)
        mean[here] /= demand[here, None]
        entries = trace.progress[begin[r] : begin[r + 1], 1]
        amount = trace.iterations[begin[r] : begin[r + 1]] / np.where(able, best, 1.0)[entries]
        got = np.bincount(owner[entries], amount, t)
        left[entries] -= amount
        _, job, server, gpus = trace.allocation[first[r] : first[r + 1]].T
        held = np.zeros((t, sizes.size))
        np.add.at(held, (owner[job], cluster.gpu_type[server]), gpus)
        own = weight[here] / weight[here].sum()
        value = np.minimum(length * taken(mean[here], own[:, None, None] * sizes, demand[here])[:, 0], most[here])
        service[here] += got[here]
        split[here] += value
        behind_s[here] += np.where(service[here] < split[here] * (1 - TOLERANCE), length, 0.0)
        theirs = held[here] * (weight[here, None] / weight[here])[:, :, None]
        other = np.minimum(length * taken(mean[here], theirs, demand[here]), most[here, None])
        pair = np.ix_(here, here)
        worth_of[pair] += other
        apart[pair] += other - got[here, None]
    np.fill_diagonal(apart, 0.0)
    envy = np.divide(apart, worth_of, out=np.zeros((t, t)), where=worth_of > 0)
    short = np.divide(split - service, split, out=np.zeros(t), where=split > 0)
    finish = _finish(trace, facts, owner, weight, speed, best)
    return Served(names, service, split, np.maximum(short, 0.0), behind_s, np.maximum(envy, 0.0), finish)


def taken(speed: Array, bundle: Array, demand: Array) -> Array:
    """Return ``(a, b)`` the speed of the best `demand` GPUs of each bundle ``(a or 1, b, k)``, fastest first.

    `speed` is ``(a, k)``, `demand` ``(a,)``.
    """
    order = np.argsort(-speed, axis=1, kind="stable")
    bundles = np.broadcast_to(bundle, (speed.shape[0], *bundle.shape[1:]))
    wanted = np.repeat(demand[:, None], bundles.shape[1], axis=1)
    total = np.zeros(wanted.shape)
    rows = np.arange(speed.shape[0])
    for kind in order.T:
        given = np.minimum(bundles[rows, :, kind], wanted)
        total += given * speed[rows, kind][:, None]
        wanted = wanted - given
    return total


def _finish(trace: Trace, facts: Simulated, owner: Ints, weight: Array, speed: Array, best: Array) -> Array:
    """Return the ``(t,)`` upper estimates of ρ."""
    work, share = facts.jobs, weight[owner] / weight.sum()
    rate = taken(speed, share[:, None, None] * facts.servers.capacity, work.gpus.astype(float))[:, 0] * best
    with np.errstate(divide="ignore"):
        alone = np.bincount(owner, work.work / rate, weight.size)
    took = np.bincount(owner, trace.completion_s - work.arrival_s, weight.size)
    return np.asarray(np.where(np.isfinite(alone), took / alone, np.nan))


def tenants_of(data: Any) -> tuple[tuple[str, ...], Ints, Array]:
    """Return the names of tenants with jobs, the tenant of each job, and their weights, from the raw instance."""
    weights = {tenant["id"]: float(tenant.get("weight", 1.0)) for tenant in data.get("tenants", ())}
    owners = [job.get("tenant", job["id"]) for job in data["jobs"]]
    names = tuple(dict.fromkeys(owners))
    at = {name: i for i, name in enumerate(names)}
    return (
        names,
        np.array([at[name] for name in owners], np.int64),
        np.array([weights.get(name, 1.0) for name in names]),
    )

r"""The competitive equilibrium from equal incomes: how the largest Nash welfare is found and settled to the last digit.

Tenants get budgets in proportion to their weights and buy devices at prices at which all are sold. Eisenberg and Gale
(Consensus of subjective probabilities, 1959): the allocation is the one of largest Nash welfare, and the prices are the
multipliers of its capacity rows. With :math:`z_t^j` for tenant t's devices in equal splits, :math:`W_t^j` for what all
devices of type j are worth to t, as a part of what all devices are worth to it, and :math:`B_t` for its part of all
weights, bundles and prices p solve

.. math:: \lambda_t W_t^j + s_t^j = p_j, \quad \lambda_t \sum_j W_t^j z_t^j = 1, \quad \sum_t B_t z_t^j = 1,
    \quad z_t^j s_t^j = \mu

with :math:`\mu = 0`. Three methods were compared ([](experiments.md)); the one here is

- **an interior point** for μ towards 0 with Mehrotra's correction. A step eliminates everything but the prices, so that
  it costs one pass over tenants and one system of the size of the types. Weights multiply nothing but the sums: tenants
  with equal speedups get equal bundles per weight, whether they are merged or not.
- **Settling.** Who buys what is then known. Prices follow from it, since a tenant that buys two types finds them
  equally good; spending follows from budgets and prices. Every bundle costs its budget and holds its tenant's best
  types only, so nobody prefers another bundle. All bundles are scaled to fit, and what is left (rounding errors) is
  divided equally: neither creates envy.
- **Ties.** Gains and prices are unique, bundles need not be. The interior point ends near the bundles with the largest
  :math:`\sum_t B_t \sum_j \log z_t^j` over the entries that can be positive, which treat equal tenants alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools
from schedgap.instances.views.oef import Allocation, OefView, kinds, whole
from schedgap.models.engine.solve import Size, Solution, SolveOptions, Times
from schedgap.models.engine.statements import grouped
from schedgap.models.oef.envy import parts
from schedgap.models.oef.printed import shares
from schedgap.models.registry import Outcome

ENDED = 1e-11
"""Mean of :math:`z s` at which the interior point ends; below it, rounding errors grow."""

STEPS = 100
"""Most steps; a hundred random instances with up to 20,000 tenants took at most 41."""

BEST = 1e-12
"""A type is among a tenant's best if it is worth at most this part less per price."""

ENOUGH = 1e-8
"""Error of an equilibrium that counts as optimal."""


def build_nash(view: OefView) -> pyo.ConcreteModel:
    r"""Build the program of largest Nash welfare (Eisenberg and Gale): the product by weight of the tenants' gains.

    - :math:`t`: tenants as a whole; :math:`l \in t`: the rows of t, one for each of its job types.
    - :math:`e_t = \sum_j \max_{l \in t} w_l^j m_j \pi_t / \sum_i \pi_i`: efficiency of t with the equal split, by
      weight, if every type runs the job type that is fastest on it.
    - ``g`` :math:`g_t \ge 0`: gain of tenant t, its efficiency as a multiple of that with the equal split.

    .. math:: \max \prod_t g_t^{\pi_t / \sum_i \pi_i}
    .. math:: \sum_{l \in t} \sum_j w_l^j x_l^j = e_t \cdot g_t \quad \forall t \label{gain}

    *Assumption.* A tenant with several job types has one utility, the sum of its rows, and may starve some of them. The
    paper's virtual tenants (§4.2.4) would divide its budget equally among its job types instead.

    Duals: the price of a type, in parts of all budgets per device. Every tenant spends its weight, as a part of all,
    on types that are worth most to it per price. So no tenant prefers what another can pay with the same budget, and
    each could buy the equal split: envy-freeness and the sharing incentive hold between tenants, and no other
    allocation is better for one tenant and worse for none.
    """
    m = shares(view)
    seen, _ = whole(view)
    m.WHOLE = pyo.RangeSet(0, seen.size - 1)
    m.OWN = pyo.Set(m.WHOLE, initialize=grouped(zip(view.owner.tolist(), range(view.size), strict=True)))
    m.e = pyo.Param(m.WHOLE, initialize=seen.split_efficiency.tolist())
    m.share = pyo.Param(m.WHOLE, initialize=(seen.weight / seen.weight.sum()).tolist())
    m.g = pyo.Var(m.WHOLE, domain=pyo.NonNegativeReals, initialize=1.0)

    @m.Constraint(m.WHOLE)
    def gain(m: Any, t: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for l in m.OWN[t] for j in m.TYPES) == m.e[t] * m.g[t]

    m.welfare = pyo.Objective(rule=lambda m: sum(m.share[t] * pyo.log(m.g[t]) for t in m.WHOLE), sense=pyo.maximize)
    return m


class Equilibrium(NamedTuple):
    """Bundles ``(n, k)`` in equal splits, and the `error` of the equilibrium (:func:`error_of`)."""

    bundle: Array
    error: float


class InteriorPoint(NamedTuple):
    """A point of the interior-point method.

    Attributes
    ----------
    bundle, slack
        ``(n, k)`` bundles z in equal splits, and how much more a type costs than it is worth to a tenant, s.
    gain, rate
        ``(n,)`` gains, and λ, a tenant's price of a unit of gain.
    price
        ``(k,)`` prices of all devices of a type; they add up to 1 in the end.
    """

    bundle: Array
    slack: Array
    gain: Array
    rate: Array
    price: Array

    def moved(self, by: InteriorPoint, part: float) -> InteriorPoint:
        """Return the point after a part of a step."""
        return InteriorPoint(*(here + part * step for here, step in zip(self, by, strict=True)))


def error_of(worth: Array, bundle: Array) -> float:
    r"""Return ε ≥ 0 of the equilibrium nearest to a hand: :math:`\sum_j \max_t W_t^j / g_t - 1`.

    At the prices :math:`p_j = \max_t W_t^j / g_t`, which add up to 1 + ε, every tenant has at least what its budget can
    buy, and all of them together spend at most ε more than their budgets; Nash welfare is within a factor 1 + ε of the
    largest.
    """
    return float((worth / (worth * bundle).sum(axis=1)[:, None]).max(axis=0).sum()) - 1


def equilibrium(worth: Array, share: Array, budget: clock.Budget) -> tuple[Equilibrium, int]:
    """Return the equilibrium of tenants with budgets `share` ``(n,)``, which add up to 1, and the number of steps.

    `worth` ``(n, k)`` is what all devices of a type are worth to a tenant; rows add up to 1. If time is up, the bundles
    are those of the last step, scaled until they fit.
    """
    rate = np.ones(len(worth))
    price = 1.5 * worth.max(axis=0)
    at = InteriorPoint(np.ones_like(worth), price - worth, np.ones(len(worth)), rate, price)
    steps = 0
    while (mean := _mean(at, share)) > ENDED and steps < STEPS and budget.left_s > 0:
        at = at.moved(*_step(at, worth, share, mean))
        steps += 1
    found = [fitted(at.bundle, share)]
    if mean <= ENDED:
        found.append(fitted(_settled(at, worth, share), share))
    return min((Equilibrium(bundle, error_of(worth, bundle)) for bundle in found), key=lambda one: one.error), steps


def fitted(bundle: Array, share: Array) -> Array:
    """Return bundles ``(n, k)`` scaled until they fit, with what is left of each type divided equally."""
    fits = bundle / max(1.0, float((share @ bundle).max()))
    return np.asarray(fits + np.maximum(1 - share @ fits, 0.0))


def _mean(at: InteriorPoint, share: Array) -> float:
    """Return the mean of z·s, by weight."""
    return float(share @ (at.bundle * at.slack).mean(axis=1))


def _step(at: InteriorPoint, worth: Array, share: Array, mean: float) -> tuple[InteriorPoint, float]:
    """Return a step of the interior-point method, and the part of it that may be taken.

    Newton's equations are solved for the change of prices first: a tenant's own system is a diagonal plus a rank one.
    """
    z, s, gain, rate, price = at
    inverse, lam = z / s, rate / gain
    scaled = worth * inverse
    shrink = lam / (1 + lam * (worth * scaled).sum(axis=1))
    system = np.diag(share @ inverse) - (scaled * (share * shrink)[:, None]).T @ scaled
    off = rate[:, None] * worth + s - price, (worth * z).sum(axis=1) - gain, 1 - share @ z

    def solved(value: Array) -> Array:
        return np.asarray(inverse * value - scaled * (shrink * (scaled * value).sum(axis=1))[:, None])

    def towards(target: float, second: Array | float, second_rate: Array | float) -> InteriorPoint:
        product, unit = target - z * s - second, 1 - rate * gain - second_rate
        value = off[0] + product / z + worth * ((unit - rate * off[1]) / gain)[:, None]
        dprice = np.linalg.solve(system, share @ solved(value) - off[2])
        dz = solved(value - dprice)
        dgain = (worth * dz).sum(axis=1) + off[1]
        return InteriorPoint(dz, (product - s * dz) / z, dgain, (unit - rate * dgain) / gain, dprice)

    def longest(step: InteriorPoint) -> float:
        return 1 / max(1.0, *(float((-d / here).max()) for here, d in zip(at[:4], step[:4], strict=True)))

    first = towards(0.0, 0.0, 0.0)
    part = longest(first)
    centre = (_mean(at.moved(first, part), share) / mean) ** 3
    # The correction is exact for a whole step. With shorter ones it would drive rate · gain away from 1.
    step = towards(centre * mean, part**2 * first.bundle * first.slack, part**2 * first.gain * first.rate)
    part = longest(step)
    part = 1.0 if part == 1 else max(0.9, 1 - mean) * part
    while np.abs(np.log((rate + part * step.rate) * (gain + part * step.gain))).max() > 1:
        part *= 0.7
    return step, part


def _settled(at: InteriorPoint, worth: Array, share: Array) -> Array:
    """Return bundles of which everyone costs its budget exactly and has its tenant's best types only."""
    bought = at.bundle * at.price > at.slack / at.price
    spent = np.where(bought, at.bundle * at.price, 0.0)
    spent[~bought.any(axis=1)] = 1.0
    spent /= spent.sum(axis=1)[:, None]
    price = _prices(at, worth, share, spent)
    per_price = worth / price
    best = per_price >= per_price.max(axis=1)[:, None] * (1 - BEST)
    spent = np.where(best, spent, 0.0)
    lost = spent.sum(axis=1) == 0
    spent[lost] = best[lost]
    spent /= spent.sum(axis=1)[:, None]
    for _ in range(3):  # nearest spending that pays all prices; more than once, since rows are scaled in between
        pays = share @ spent
        of_type = _least_squares(np.diag(pays) - spent.T @ (spent * share[:, None]), price - pays)
        spent = np.maximum(spent * (1 + of_type - (spent @ of_type)[:, None]), 0.0)
        spent /= spent.sum(axis=1)[:, None]
    return np.asarray(spent / price)


def _prices(at: InteriorPoint, worth: Array, share: Array, spent: Array) -> Array:
    """Return the prices at which all types that a tenant buys are equally good, and that its budgets can pay."""
    log, part = np.log(worth), spent * share[:, None]
    system = np.diag(part.sum(axis=0)) - spent.T @ part
    wanted = (part * log).sum(axis=0) - (part * log).sum(axis=1) @ spent
    start = np.log(at.price)
    price = np.exp(start + _least_squares(system, wanted - system @ start))
    linked = _linked(spent > 0)
    of = linked[(spent > 0).argmax(axis=1)]
    for group in np.unique(linked):  # types that share no buyer with others earn the budgets of their own buyers
        price[linked == group] *= share[of == group].sum() / price[linked == group].sum()
    return np.asarray(price)


def _linked(bought: Bools) -> Array:
    """Return ``(k,)`` a number for each type, equal for types that a chain of tenants buys together."""
    k = bought.shape[1]
    together = (bought.T.astype(float) @ bought > 0) | np.eye(k, dtype=bool)
    for _ in range(k):
        together = together.astype(float) @ together > 0
    return np.asarray(together.argmax(axis=1))


def _least_squares(system: Array, value: Array) -> Array:
    return np.asarray(np.linalg.lstsq(system, value, rcond=1e-12)[0])


def nash(view: OefView, options: SolveOptions) -> Outcome:
    """Find the equilibrium by an interior point over merged tenants, and settle it (:mod:`schedgap.models.oef.market`).

    The bound of the row follows from the prices alone.
    """
    began = clock.now()
    kind = kinds(view)
    of = parts(kind.view)
    found, steps = equilibrium(of.worth, of.share, clock.Budget(options.time_limit_s))
    devices = kind.divided(kind.view.equal_split * found.bundle)
    welfare = float(np.exp(of.share @ np.log((of.worth * found.bundle).sum(axis=1))))
    solution = Solution(
        status="optimal" if found.error <= ENOUGH else "time limit with incumbent",
        termination=f"{steps} steps, error of the equilibrium {found.error:.1e}",
        solution_status="feasible",
        objective=welfare,
        bound=welfare * (1 + max(found.error, 0.0)),
        times=Times().since(began),
        size=Size(rows=len(view.gpu_types) + len(view.tenants), columns=view.speedups.size + len(view.tenants)),
        iterations=steps,
    )
    return Outcome(solution, Allocation(devices))

"""Compiled loops over envy rows for the modules :mod:`.envy` and :mod:`.first_order`; see there.

`worth` ``(n, k)`` is what all devices of each type are worth to a tenant, as a part of what all devices are worth to
it; a row adds up to 1. `bundle` ``(n, k)`` is what a tenant has per weight, as a multiple of an equal split.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.clock import njit


@njit(cache=True, fastmath=True)
def envied(worth, bundle, part, least, who, envy):  # type: ignore[no-untyped-def]
    """Find for each tenant the tenants whom it envies most, by more than `least`: `who` ``(n, m)``, -1 for none.

    Of what another's bundle is worth to it, only a `part` counts: 1 for all.
    """
    n, k = worth.shape
    most = who.shape[1]
    for a in range(n):
        own = 0.0
        for j in range(k):
            own += worth[a, j] * bundle[a, j]
        envy[a], who[a] = least, -1
        for b in range(n):
            value = -own
            for j in range(k):
                value += part * worth[a, j] * bundle[b, j]
            if value > envy[a, most - 1] and b != a:
                at = most - 1
                while at > 0 and envy[a, at - 1] < value:
                    envy[a, at], who[a, at] = envy[a, at - 1], who[a, at - 1]
                    at -= 1
                envy[a, at], who[a, at] = value, b


@njit(cache=True)
def premiums(worth, weight, first, wanted, bundle, premium, own, least, sweeps):  # type: ignore[no-untyped-def]
    """Raise the premiums of bundles until no tenant wants another's, and let circles of tenants exchange theirs.

    The bundles that tenant l may want are ``wanted[first[l] : first[l + 1]]``, among them `own` ``(n,)``, the one that
    it has. Wants of less than `least` are ignored. Return whether they all are, after at most so many sweeps.
    """
    n = len(worth)
    owner = np.empty(n, np.int64)
    for l in range(n):
        owner[own[l]] = l
    follows, want, mark = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    likes, mixed = np.empty(len(wanted)), True
    for _ in range(sweeps):
        if mixed:
            _like(worth, first, wanted, bundle, likes)
        changed = mixed = False
        for l in range(n):
            at, best, kept = _favourite(first[l], first[l + 1], wanted, likes, premium, own[l])
            if best > kept + least:
                premium[own[l]] += best - kept
                follows[l], want[l], changed = owner[at], at, True
        if not changed:
            return True
        mark[:] = 0
        for s in range(n):
            x = _circle(s, follows, mark)
            if x >= 0:
                mixed |= _exchange(x, follows, want, weight, bundle, premium, own)
        for l in range(n):
            owner[own[l]] = l
        for l in range(n):
            if follows[l] >= 0:
                follows[l] = owner[want[l]]
    return False


@njit(cache=True, fastmath=True)
def _like(worth, first, wanted, bundle, likes):  # type: ignore[no-untyped-def]
    """Write down in `likes` what each bundle that a tenant may want is worth to it, without its premium."""
    n, k = worth.shape
    for l in range(n):
        for r in range(first[l], first[l + 1]):
            value = 0.0
            for j in range(k):
                value += worth[l, j] * bundle[wanted[r], j]
            likes[r] = value


@njit(cache=True)
def _favourite(start, end, wanted, likes, premium, own):  # type: ignore[no-untyped-def]
    """Return the bundle that a tenant likes best, and what this one and its own are worth to it with their premiums."""
    at, best, kept = -1, -np.inf, -np.inf
    for r in range(start, end):
        i = wanted[r]
        value = likes[r] + premium[i]
        if i == own:
            kept = value
        if value > best:
            at, best = i, value
    return at, best, kept


@njit(cache=True)
def _circle(start, follows, mark):  # type: ignore[no-untyped-def]
    """Return a tenant of the circle to which `start` leads, or -1 if it leads to none or was looked at before."""
    x = start
    while x >= 0 and mark[x] == 0 and follows[x] >= 0:
        mark[x] = start + 1
        x = follows[x]
    return x if x >= 0 and mark[x] == start + 1 and follows[x] >= 0 else -1


@njit(cache=True)
def _exchange(start, follows, want, weight, bundle, premium, own):  # type: ignore[no-untyped-def]
    """Give each tenant of a circle what the next one has, as far as the least weight in it allows.

    Return whether bundles had to be mixed for that.
    """
    least, x = weight[start], follows[start]
    equal = True
    while x != start:
        equal = equal and weight[x] == least
        least = min(least, weight[x])
        x = follows[x]
    if equal:
        while follows[x] >= 0:
            after = follows[x]
            own[x] = want[x]
            follows[x] = -1
            x = after
        return False
    # A tenant of larger weight keeps a part of its bundle; a mixture is worth to nobody more than the better part.
    kept, paid = bundle[own[start]].copy(), premium[own[start]]
    while follows[x] >= 0:
        after = follows[x]
        part, mine = least / weight[x], own[x]
        last = after == start
        other, extra = (kept, paid) if last else (bundle[own[after]], premium[own[after]])
        bundle[mine] = (1 - part) * bundle[mine] + part * other
        premium[mine] = (1 - part) * premium[mine] + part * extra
        follows[x] = -1
        x = after
    return True


@njit(cache=True, fastmath=True)
def gathered(worth, first, other, multiplier, out):  # type: ignore[no-untyped-def]
    """Add up what envy rows with these multipliers add to what devices are worth, in `out` ``(n, k)``."""
    n, k = worth.shape
    out[:] = 0.0
    for a in range(n):
        whole = 0.0
        for r in range(first[a], first[a + 1]):
            y, i = multiplier[r], other[r]
            whole += y
            for j in range(k):  # without a branch for y = 0, which processors guess wrong too often
                out[i, j] -= y * worth[a, j]
        for j in range(k):
            out[a, j] += whole * worth[a, j]


@njit(cache=True, fastmath=True)
def moved(worth, gain, share, first, other, steps, point, slope, to):  # type: ignore[no-untyped-def]
    """Write the next point of the primal-dual hybrid gradient method to `to`.

    A point has the bundles ``(n, k)``, multipliers of envy rows ``(m,)`` and prices of types ``(k,)``; `slope` is
    :func:`gathered` of its multipliers. `steps` has the step of each bundle ``(n, k)``, of rows, and of prices.
    """
    bundle, multiplier, price = point
    next_bundle, next_multiplier, next_price = to
    width, of_row, of_price = steps
    n, k = worth.shape
    ahead = np.empty((n, k))
    used = np.zeros(k)
    for a in range(n):
        for j in range(k):
            x = bundle[a, j] + width[a, j] * (gain[a] * worth[a, j] + slope[a, j] - share[a] * price[j])
            x = max(x, 0.0)
            next_bundle[a, j], ahead[a, j] = x, 2 * x - bundle[a, j]
            used[j] += share[a] * ahead[a, j]
    for a in range(n):
        own = 0.0
        for j in range(k):
            own += worth[a, j] * ahead[a, j]
        for r in range(first[a], first[a + 1]):
            envy = -own
            for j in range(k):
                envy += worth[a, j] * ahead[other[r], j]
            next_multiplier[r] = max(multiplier[r] + of_row * envy, 0.0)
    for j in range(k):
        next_price[j] = max(price[j] + of_price * (used[j] - 1), 0.0)


@njit(cache=True, fastmath=True)
def mixed(part, to, point, anchor, out):  # type: ignore[no-untyped-def]
    """Write `part` of ``2 to − point`` and the rest of the anchor, all of them flat, to `out`."""
    for r in range(len(to)):
        out[r] = part * (2 * to[r] - point[r]) + (1 - part) * anchor[r]

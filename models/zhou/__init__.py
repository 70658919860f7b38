r"""Zhou et al.: elastic jobs with parameter servers (PSs) or rings, in slots numbered from 1.

Sets: jobs :math:`j`, servers :math:`h`, resources :math:`r`, worker types :math:`m`, PS types :math:`p`, slots
:math:`t`. Data: work :math:`E_j D_j K_j` mini-batches, at most :math:`D_j` workers, arrival :math:`a_j`, weight
:math:`w_j`, rate :math:`\rho` of a worker (eq. 1, 14), capacity :math:`C_h^r`, what a worker takes :math:`e_m^r` and a
PS :math:`z_p^r`, bandwidths :math:`b_m` and :math:`B_p`.

A *choice* of a job is :math:`k = (m, p, q, d, t^-)`: types, whether everything is on one server (q = 1), duration and
start. With it the number of workers that (2f) asks for is known, :math:`N_k = \lceil EDK/(d\rho) \rceil`; only the
shortest d of each N matters, because a longer one takes more and ends later. So the products of variables in (2f) and
(2h) vanish. Binary ``x[k]``; integers ``y[k,h]``, ``s[k,h]`` (workers and PSs there).

**Offline** (2)–(2o), and with rings (15)::

    min Σ_k w_j·(t⁻ + d)·x[k]                                                        (2)
    Σ_{k of j} x[k] = 1                                                              (2a), with (2b), (2c), (2e), (2j)
    N_k·x[k] ≤ Σ_h y[k,h] ≤ D_j·x[k], in a ring Σ_h y[k,h] = N_k·x[k]                (2f), (2g)
    Σ_h s[k,h] ≥ x[k]                                                                (2e)
    Σ_h one[k,h] = x[k],  y[k,h] ≤ room·one[k,h],  s[k,h] ≤ room·one[k,h]            (2d) where q = 1
    Σ_h (y[k,h] + s[k,h]) − y[k,h'] − s[k,h'] ≥ x[k]  for every h'                   (2d) where q = 0
    s[k,h] ≤ room·has[k,h],  b_m·Σ_{h' ≠ h} y[k,h'] ≤ B_p·s[k,h] + b_m·D_j·(x[k] − has[k,h])     (2i)
    Σ_{k: t⁻ ≤ t < t⁻ + d} (e_m^r·y[k,h] + z_p^r·s[k,h]) ≤ C_h^r                     (2h)

A ring's rate depends on its number of workers, and two may be slower than one: there N is exact. Slots end somewhere
(:func:`schedgap.models.zhou.common.horizon` proves where they may).

**Maximum weight** (7), (16): the same with ``max Σ w_j·x[k]``, ``≤ 1`` in (2a), all jobs there in slot 1, and (7b)
``t⁻ + d ≤ τ``: slot τ is never used. **Least cost** (12), (20): the same for one job, with prices
:math:`\delta_h^r(t)` and in what others leave free; (13), (21) is one choice of it.

**Schedules** (8), (17). One binary ``x[l]`` for every choice with its placement l, which takes ``f[l,h,r]``::

    max Σ_l w_j·x[l]                                                                 (8)
    Σ_{l: t in T(l)} f[l,h,r]·x[l] ≤ C_h^r                                           (8a)
    Σ_{l of j} x[l] ≤ 1                                                              (8b)

and with costs ``w_j·(t⁻ + d)`` and ``= 1`` the offline problem. PSs on several hosts never help (see
:mod:`schedgap.instances.elastic.search`), so that schedules have one host with as many PSs as the workers elsewhere
need.

**Dual** (9), (18) of its relaxation: prices ``δ[h,r,t]`` and payoffs ``u[j]``, all ≥ 0::

    min Σ_j u[j] + Σ δ[h,r,t]·C_h^r                                                  (9)
    u[j] ≥ w_j − Σ_{t in T(l)} Σ_{h,r} δ[h,r,t]·f[l,h,r]                             (9a)

**Fluid**: a lower bound that holds when jobs may be interrupted, too (:mod:`schedgap.models.zhou.fluid`).
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

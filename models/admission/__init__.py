r"""The admission example: elastic jobs with utilities and deadlines, on servers with room for workers and PSs.

Sets: jobs :math:`j`, servers :math:`s`, worker types :math:`w`, the PS type :math:`p`, slots :math:`t` from 0. Data:
work :math:`E_j D_j M_j` mini-batches, at most :math:`D_j` workers, arrival :math:`r_j`, deadline :math:`\tau_j`, rate
:math:`k` of a worker (with all on one server, or not), capacities :math:`C_{sw}` and :math:`C_{sp}`, utility
:math:`f_j` of the time since the arrival.

A *schedule* l of a job: start :math:`a > r_j` (or ≥, where the arrival slot may be used), number of workers and layout,
which make the duration :math:`d = \lceil EDM/(k D_w) \rceil` and completion :math:`\hat t_l = a + d \le \tau_j`, and
servers: in slots a … a + d − 1 it has ``y[l,s,w]`` workers and ``z[l,s,p]`` PSs there.

**Offline**. One binary ``x[l]`` per schedule::

    max Σ_l f_j(t̂_l − r_j)·x[l]
    Σ_{l runs in t} y[l,s,w]·x[l] ≤ C_sw
    Σ_{l runs in t} z[l,s,p]·x[l] ≤ C_sp
    Σ_{l of j} x[l] ≤ 1

**Dual** (18a) of its relaxation: prices ``α[s,w,t]``, ``β[s,p,t]`` and payoffs ``μ[j]``, all ≥ 0::

    min Σ_j μ[j] + Σ C_sw·α[s,w,t] + Σ C_sp·β[s,p,t]
    μ[j] ≥ f_j(t̂_l − r_j) − Σ_t Σ_s (Σ_w α[s,w,t]·y[l,s,w] + β[s,p,t]·z[l,s,p])         (18a)
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

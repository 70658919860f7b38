r"""Hadar: gangs on GPUs of several types, in slots (Sultana et al., §III).

Sets: jobs :math:`j`, slots :math:`t`, GPU types :math:`r`. Data: gang :math:`W_j`, work :math:`E_j N_j`, rates
:math:`X_j^r` of one GPU, arrival :math:`a_j`, slot length :math:`L`, capacity :math:`C^r`, utilities :math:`U_j(f)` of
finishing in slot :math:`f` (``View.utility``: of ``f − a + 1`` slots; the paper's :math:`f_j − a_j` is 0 for a job that
finishes in its arrival slot, by which effective throughput then divides).

**P1** (1)–(1e). Variables: ``z[j,t,k]`` = j runs in slot t and its slowest type is k; ``w[j,t,r]`` GPUs of type r;
``v[j,f]`` = j's last slot is f; ``pending[j,t]`` = Σ_{f ≥ t} v[j,f]::

    max Σ_j Σ_f U_j(f)·v[j,f]                                                   (1)
    Σ_{t ≤ f} Σ_k W_j·L·X_j^k·z[j,t,k] ≥ E_j N_j·Σ_{g ≤ f} v[j,g]  for every f  (1a; the paper's is the last f)
    w[j,t,r] ≤ min(W_j, C^r)·Σ_{k: X_j^k ≤ X_j^r} z[j,t,k]                      (1b)
    Σ_k z[j,t,k] ≤ pending[j,t]                                                 (1c)
    Σ_j w[j,t,r] ≤ C^r                                                          (1d)
    Σ_r w[j,t,r] = W_j·Σ_k z[j,t,k]                                             (1e)
    Σ_f v[j,f] ≤ 1, or = 1 where every job completes

(1b) linearises the minimum over types exactly: naming a slower type than the slowest in use only loses progress. As
printed, (1a) makes every job complete while P2 may reject jobs: they have the same optimum only under the same rule,
so both rules are offered for both.

**P2** (2)–(2c). One binary ``x[j,s]`` per job and schedule s, of utility ``U[j,s]``, that holds ``n[j,s,t,r]`` GPUs::

    max Σ_j Σ_s U[j,s]·x[j,s]                                                   (2)
    Σ_j Σ_s n[j,s,t,r]·x[j,s] ≤ C^r                                             (2a)
    Σ_s x[j,s] ≤ 1, or = 1 where every job completes                            (2b)

**P3** (3)–(3a), the dual of P2's relaxation: prices ``k[t,r]`` and payoffs ``μ[j]``, all ≥ 0::

    min Σ_j μ[j] + Σ_t Σ_r C^r·k[t,r]                                           (3)
    μ[j] ≥ U[j,s] − Σ_t Σ_r n[j,s,t,r]·k[t,r]                                   (3a)
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

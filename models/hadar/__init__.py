r"""Hadar: gangs on GPUs of several types, in slots (Sultana et al., §III).

- :math:`j`: jobs that can complete.
- :math:`t, f \in \{a_j, \ldots, T\}`: slots, from a job's arrival on.
- :math:`r, k`: GPU types; :math:`h`: servers, with GPUs of type :math:`r(h)`; a server with several types counts as one
  h per type.
- :math:`W_j`: GPUs that the gang of j needs, all or nothing.
- :math:`E_j N_j`: work of j, epochs times iterations per epoch.
- :math:`X_j^r`: iterations per second of one GPU of type r.
- :math:`a_j`: slot in which j arrives.
- :math:`L`: length of a slot in seconds.
- :math:`C^r, c_h`: GPUs of type r, and of server h.
- :math:`U_j(f)`: utility of completing in slot f, after :math:`f - a_j + 1` slots; non-increasing in f.
- :math:`s \in S_j`: schedules of j: slots, each with the GPUs by type that the gang holds in it.
- :math:`U_{j,s}`: utility of completing in the last slot of s.
- :math:`w^{r,s}_{j,t}`: GPUs of type r that schedule s of job j holds in slot t, over all servers; the paper's
  :math:`w^{rs}_{jh}(t)` has a server h.

*Errata.* The paper counts :math:`f_j - a_j` slots until completion, which is 0 for a job that finishes in its arrival
slot, and effective throughput divides by it. As printed, (1a) makes every job complete, while P2 may reject jobs. The
two have the same optimum only under the same rule, so each is offered under both rules.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

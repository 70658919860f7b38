r"""Zhou et al.: moldable jobs with parameter servers (PSs) or rings, in slots numbered from 1.

- :math:`j`: jobs; :math:`h, r, t`: servers, resources, slots; :math:`m, p`: types of workers and of PSs.
- :math:`E_j D_j K_j`: work of j, epochs, chunks and mini-batches per chunk; :math:`D_j` is also the most workers.
- :math:`a_j, w_j`: arrival and weight of j.
- :math:`e_m^r, z_p^r`: amount of resource r that a worker, and a PS, takes.
- :math:`b_m, B_p`: bandwidths of a worker and of a PS.
- :math:`C_h^r`: capacity of server h.
- :math:`k = (m, p, q, d, t^-)`: choices of a job: types, whether all is on one server (:math:`q = 1`), duration, start.
- :math:`v_{jm}, U_j^p, \pi_j`: slots that a worker computes for a mini-batch, slots of an update on a PS (in a ring, on
  a worker), and size of the gradients.
- :math:`\rho_k = 1/(v_{jm} + U_j^p + (1 - q) \cdot 2\pi_j/b_m)`: mini-batches that a worker does in a slot (1); in a
  ring (14) it is :math:`1/(v_{jm} + (N_k - 1)/N_k \cdot (U_j + (1 - q) \cdot 2\pi_j/b_m))`.
- :math:`N_k = \lceil E_j D_j K_j / (d \cdot \rho_k) \rceil`: workers that do the work in d slots.
- :math:`l \in \Gamma_j`: schedules of j, choices with their placement; :math:`T(l)` are the slots of l.
- :math:`f_{l,h,r}`: amount of resource r that schedule l takes on server h.

Where an equation has two numbers, the first is for PSs, the second for rings. A schedule has the slots :math:`t^-,
\ldots, t^- + d - 1` and completes at :math:`t^- + d`.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

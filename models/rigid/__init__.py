r"""Bounds on gangs of fixed duration, and the search for good schedules.

Job j holds :math:`g_j` of the :math:`G` GPUs of its pool for a time :math:`p_j`, no earlier than its release
:math:`r_j`, and completes at :math:`C_j`. Pools share no jobs, so bounds for single pools can be combined by summing
them or, for the makespan, by taking the largest.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

"""Machinery of the models: what solves, bounds and searches, apart from what a paper states.

- `solve`: the only path from a Pyomo model to HiGHS and other solvers.
- `columns`: column generation, and branch and price, for packing problems.
- `fluid`: relaxations over intervals of time, and to a single machine.
- `gangs`: the pricing problem of gangs in slots (Hadar), and of jobs as copies.
- `moldable`: pricing, placement and annealing of moldable jobs (Zhou, admission).

Nothing here imports the folder of a paper.
"""

"""The raw instance, read from its canonical JSON as plain data with numpy and the standard library alone.

Checkers of decisions and the rules of certificates share this reading. It follows what the documents of the schema and
the problems say (``instances/schema/``, ``instances/views/``) and imports none of their code: what it has in common
with models and heuristics is the file. So a wrong array of a model's view shows up as a decision, an objective or a
bound that the checker does not find.

===============  ====================================================================
module           what it reads
===============  ====================================================================
``jobs``         jobs and tenants: arrivals, work, gangs, rates
``servers``      servers and GPU types
``utility``      what a job's completion is worth
``gangs``        gangs in slots (Hadar, Gavel), with slots for instances without horizon
``sensitive``    rates by CPUs and memory, and shares of pooled servers
``synergy``      Synergy's rounds, and the jobs of a single one
``simulated``    jobs and servers of a simulation
``elastic``      jobs on workers and parameter servers: rates, and what fits on empty servers
``zhou``         Zhou's slots, deadline τ, loads, and F
``admission``    the walk-through's room for workers, and deadlines
``oef``          tenants' job types: speedups, weights, devices
``rigid``        gangs of fixed duration, from logs and from rates
===============  ====================================================================
"""

"""Reads the raw instance from its canonical JSON, as plain data, with numpy and the standard library alone.

Checkers of decisions and the rules of certificates share this code. It follows the documentation of the schema and of
the problems (``instances/schema/``, ``instances/views/``) and imports none of their code: all that it has in common
with models and heuristics is the file. So if an array of a model's view is wrong, the checker finds another objective
or bound, or a violated constraint.

===============  ====================================================================
module           what it reads
===============  ====================================================================
``columns``      a field of all jobs, listed or in columns
``jobs``         jobs and tenants: arrivals, work, gangs, rates
``servers``      servers and GPU types
``utility``      what a job's completion is worth
``gangs``        gangs in slots (Hadar, Gavel), with slots for instances without horizon
``sensitive``    rates by CPUs and memory, and shares of pooled servers
``synergy``      Synergy's rounds, and the jobs of a single one
``simulated``    jobs and servers of a simulation
``moldable``      jobs on workers and parameter servers: rates, and what fits on empty servers
``zhou``         Zhou's slots, deadline τ, loads, and F
``admission``    the walk-through's room for workers, and deadlines
``oef``          tenants' job types: speedups, weights, devices
``rigid``        gangs of fixed duration, from logs and from rates
===============  ====================================================================
"""

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
``gangs``        gangs in slots (Hadar, Gavel), with slots of instances without horizon
``oef``          tenants' job types: speedups, weights, devices
``rigid``        gangs of fixed duration, from logs and from rates
===============  ====================================================================
"""

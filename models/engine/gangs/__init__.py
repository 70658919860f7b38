"""The pricing problem of gangs in slots, exact and by period, and of jobs that run as copies."""

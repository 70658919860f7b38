#!/usr/bin/env python3
"""A FIFO scheduler as an external program, with only Python's standard library.

Jobs are served in order of arrival, each on the fastest GPU type that has room for its whole gang; the first job that
must wait blocks those behind it (the policy hadar.fifo). To simulate it:

    harness simulate --instance gen/20jobs --policy exec:examples/fifo.py fifo
"""

import json
import sys


def options(hello, job):
    """Return a job's possible allocations {type: GPUs}, best first; they mix types only if no single type suffices."""
    rates, gang = job["rates"], job["gpus"]
    total = [sum(s["gpus"] for s in hello["servers"] if s["gpu_type"] == t) for t in range(len(rates))]
    types = sorted((t for t in range(len(rates)) if rates[t] > 0), key=lambda t: -rates[t])
    single = [{t: gang} for t in types if total[t] >= gang]
    if single:
        return single
    mixed = {}
    for t in types:
        taken = min(total[t], gang - sum(mixed.values()))
        if taken:
            mixed[t] = taken
    return [mixed] if sum(mixed.values()) == gang else []


def choose(state, order, choices, free):
    """Return the jobs to run, {job: {type: GPUs}}, and subtract their GPUs from the `free` GPUs of each type."""
    present = {job["job"] for job in state["jobs"]}
    allocation = {}
    for job in (job for job in order if job in present):
        fitting = [o for o in choices[job] if all(free[t] >= gpus for t, gpus in o.items())]
        if not fitting:
            break
        allocation[job] = fitting[0]
        for t, gpus in fitting[0].items():
            free[t] -= gpus
    return allocation


def place(hello, state, allocation):
    """Return the entries of an assignment; a gang that keeps its types keeps its servers, so it need not restart."""
    servers = hello["servers"]
    free = [server["gpus"] for server in servers]
    before = {}
    for entry in state["running"]:
        before.setdefault(entry["job"], []).append(entry)
    run = []
    for job, need in allocation.items():
        held = {}
        for entry in before.get(job, []):
            t = servers[entry["server"]]["gpu_type"]
            held[t] = held.get(t, 0) + entry["gpus"]
        if held == need:
            run += before[job]
    for entry in run:
        free[entry["server"]] -= entry["gpus"]
    settled = {entry["job"] for entry in run}
    for job, need in allocation.items():
        for t, gpus in need.items() if job not in settled else ():
            left = gpus
            for s in sorted(range(len(servers)), key=lambda s: -free[s]):
                if servers[s]["gpu_type"] == t and (taken := min(left, free[s])):
                    run.append({"job": job, "server": s, "gpus": taken})
                    free[s] -= taken
                    left -= taken
    return run


def say(message):
    """Write a message as one line and flush it."""
    print(json.dumps(message), flush=True)


def main():
    """Read messages and answer each one."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            hello, jobs = message, message["jobs"]
            order = sorted(range(len(jobs)), key=lambda job: jobs[job]["arrival_s"])
            choices = [options(hello, job) for job in jobs]
            say({"type": "hello", "version": 1})
        elif message["type"] == "state":
            free = [0] * len(hello["gpu_types"])
            for server in hello["servers"]:
                free[server["gpu_type"]] += server["gpus"]
            run = place(hello, message, choose(message, order, choices, free))
            say({"type": "assignment", "round": message["round"], "run": run})


if __name__ == "__main__":
    main()

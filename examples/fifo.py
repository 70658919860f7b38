#!/usr/bin/env python3
"""FIFO in a program of its own, with nothing but Python's standard library.

Jobs are served in the order of their arrival, each on the fastest GPU type that has room for its whole gang; the first
that has to wait stops those behind it (the policy hadar.fifo). To simulate it:

    harness simulate --instance gen/20jobs --policy exec:examples/fifo.py fifo
"""

import json
import sys


def options(hello, job):
    """Return how a job could run, best first, each as {type: GPUs}: all of one type, or of several if it must."""
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


def chosen(state, order, choices, free):
    """Return who runs, as {job: {type: GPUs}}, where `free` GPUs of each type are left."""
    present = {job["job"] for job in state["jobs"]}
    found = {}
    for job in (job for job in order if job in present):
        fitting = [o for o in choices[job] if all(free[t] >= gpus for t, gpus in o.items())]
        if not fitting:
            break
        found[job] = fitting[0]
        for t, gpus in fitting[0].items():
            free[t] -= gpus
    return found


def placed(hello, state, wanted):
    """Return the entries of an assignment; a gang that keeps its types keeps its servers, so it need not restart."""
    servers = hello["servers"]
    free = [server["gpus"] for server in servers]
    before = {}
    for entry in state["running"]:
        before.setdefault(entry["job"], []).append(entry)
    run = []
    for job, need in wanted.items():
        held = {}
        for entry in before.get(job, []):
            t = servers[entry["server"]]["gpu_type"]
            held[t] = held.get(t, 0) + entry["gpus"]
        if held == need:
            run += before[job]
    for entry in run:
        free[entry["server"]] -= entry["gpus"]
    settled = {entry["job"] for entry in run}
    for job, need in wanted.items():
        for t, gpus in need.items() if job not in settled else ():
            left = gpus
            for s in sorted(range(len(servers)), key=lambda s: -free[s]):
                if servers[s]["gpu_type"] == t and (taken := min(left, free[s])):
                    run.append({"job": job, "server": s, "gpus": taken})
                    free[s] -= taken
                    left -= taken
    return run


def say(message):
    """Write a line, at once."""
    print(json.dumps(message), flush=True)


def main():
    """Answer line by line."""
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
            run = placed(hello, message, chosen(message, order, choices, free))
            say({"type": "assignment", "round": message["round"], "run": run})


if __name__ == "__main__":
    main()

// A schedule for Hadar's problem by a program of its own, which the harness checks and certifies:
//
//     g++ -std=c++17 -O2 -o schedule examples/schedule.cpp
//     harness show gen/20jobs --json | ./schedule > mine.csv
//     harness verify --instance gen/20jobs --problem hadar.utility mine.csv
//
// Jobs come in the order of their arrival. Each runs without interruption on the GPU type where it ends first in what
// the jobs before it have left over; one that would end too late is rejected.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "json.hpp"

struct Job {
    std::string id;
    int gpus, first;                     // the first slot that it may use
    std::map<std::string, int> lasts;    // slots that its work takes, by GPU type
};

// Iterations per second of one GPU by type: the job's own, or those of its model, which its tenant has.
const Json& rates(const Json& job, const Json& instance) {
    if (job.has("rates") && !job["rates"].fields.empty()) return job["rates"];
    for (const Json& tenant : instance["tenants"].items)
        if (tenant["id"].text == job["tenant"].text)
            for (const Json& type : tenant["job_types"].items)
                if (type["name"].text == job["model"].text) return type["rates"];
    throw std::runtime_error("job " + job["id"].text + " has no rates");
}

int main() {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    const Json instance = Reader(text).value();
    const double slot_s = instance["horizon"]["slot_s"].number;
    const int slots = instance["horizon"]["slots"].whole();

    std::map<std::string, std::vector<int>> free;  // GPUs by type and slot
    for (const Json& group : instance["cluster"]["servers"].items) {
        auto& there = free.try_emplace(group["gpu_type"].text, slots, 0).first->second;
        for (int& gpus : there) gpus += group.number_or("count", 1) * group["gpus"].whole();
    }

    std::vector<Job> jobs;
    for (const Json& job : instance["jobs"].items) {
        const double work = job["epochs"].number * job.number_or("chunks", 1) * job.number_or("minibatches_per_chunk", 1);
        Job found{job["id"].text, job["gpus"].whole(), int(std::ceil(job.number_or("submit_s", 0) / slot_s)), {}};
        for (const auto& [type, rate] : rates(job, instance).fields)
            if (rate.number > 0) found.lasts[type] = int(std::ceil(work / (found.gpus * rate.number * slot_s)));
        jobs.push_back(found);
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.first < b.first; });

    std::cout << "job,start,end,type,gpus\n";
    for (const Job& job : jobs) {
        int begin = 0, end = slots + 1;
        std::string where;
        for (const auto& [type, lasts] : job.lasts) {
            const auto& there = free[type];
            for (int start = job.first, ran = 0, t = start; t < int(there.size()) && t < end; ++t) {
                ran = there[t] >= job.gpus ? ran + 1 : 0;
                if (!ran) start = t + 1;
                if (ran == lasts && t + 1 < end) begin = start, end = t + 1, where = type;
            }
        }
        if (where.empty()) continue;
        for (int t = begin; t < end; ++t) free[where][t] -= job.gpus;
        std::cout << job.id << ',' << begin * slot_s << ',' << end * slot_s << ',' << where << ',' << job.gpus << '\n';
    }
}

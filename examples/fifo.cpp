// FIFO in a program of its own: this file and json.hpp, nothing but C++17's standard library.
//
// Jobs are served in the order of their arrival, each on the fastest GPU type that has room for its whole gang; the
// first that has to wait stops those behind it (the policy hadar.fifo). To compile and simulate it:
//
//     g++ -std=c++17 -O2 -o fifo examples/fifo.cpp
//     harness simulate --instance gen/20jobs --policy exec:./fifo fifo

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "json.hpp"

using Need = std::map<int, int>;  // GPUs by type

struct Entry {
    int job, server, gpus;
};

struct Scheduler {
    Json hello;
    std::vector<int> total;                 // GPUs of each type
    std::vector<int> order;                 // jobs by arrival
    std::vector<std::vector<Need>> choices;  // how each job could run, best first

    explicit Scheduler(Json message) : hello(std::move(message)), total(hello["gpu_types"].items.size()) {
        for (const Json& server : servers()) total[server["gpu_type"].whole()] += server["gpus"].whole();
        const auto& jobs = hello["jobs"].items;
        for (std::size_t job = 0; job < jobs.size(); ++job) {
            order.push_back(static_cast<int>(job));
            choices.push_back(options(jobs[job]));
        }
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return jobs[a]["arrival_s"].number < jobs[b]["arrival_s"].number;
        });
    }

    const std::vector<Json>& servers() const { return hello["servers"].items; }

    // All GPUs of one type, the fastest first; of several only where no type could ever hold the gang.
    std::vector<Need> options(const Json& job) const {
        const auto& rates = job["rates"].items;
        const int gang = job["gpus"].whole();
        std::vector<int> types;
        for (std::size_t t = 0; t < rates.size(); ++t)
            if (rates[t].number > 0) types.push_back(static_cast<int>(t));
        std::stable_sort(types.begin(), types.end(), [&](int a, int b) { return rates[a].number > rates[b].number; });
        std::vector<Need> found;
        for (int t : types)
            if (total[t] >= gang) found.push_back({{t, gang}});
        if (!found.empty()) return found;
        Need mixed;
        int left = gang;
        for (int t : types) {
            const int taken = std::min(total[t], left);
            if (taken) mixed[t] = taken;
            left -= taken;
        }
        if (!left) found.push_back(mixed);
        return found;
    }

    std::vector<std::pair<int, Need>> chosen(const Json& state) const {
        std::vector<bool> present(choices.size());
        for (const Json& job : state["jobs"].items) present[job["job"].whole()] = true;
        std::vector<int> free = total;
        std::vector<std::pair<int, Need>> found;
        for (int job : order) {
            if (!present[job]) continue;
            const auto fits = [&](const Need& need) {
                return std::all_of(need.begin(), need.end(), [&](const auto& n) { return free[n.first] >= n.second; });
            };
            const auto option = std::find_if(choices[job].begin(), choices[job].end(), fits);
            if (option == choices[job].end()) break;
            for (const auto& [t, gpus] : *option) free[t] -= gpus;
            found.emplace_back(job, *option);
        }
        return found;
    }

    // A gang that keeps its types keeps its servers, so that it need not restart; the others go where there is room.
    std::vector<Entry> decide(const Json& state) const {
        std::vector<int> free;
        for (const Json& server : servers()) free.push_back(server["gpus"].whole());
        std::map<int, std::vector<Entry>> before;
        std::map<int, Need> held;
        for (const Json& json : state["running"].items) {
            const Entry entry{json["job"].whole(), json["server"].whole(), json["gpus"].whole()};
            before[entry.job].push_back(entry);
            held[entry.job][servers()[entry.server]["gpu_type"].whole()] += entry.gpus;
        }
        std::vector<Entry> run;
        std::vector<std::pair<int, Need>> moving;
        for (const auto& [job, need] : chosen(state)) {
            if (held[job] != need) {
                moving.emplace_back(job, need);
                continue;
            }
            for (const Entry& entry : before[job]) {
                free[entry.server] -= entry.gpus;
                run.push_back(entry);
            }
        }
        for (const auto& [job, need] : moving)
            for (const auto& [t, gpus] : need) place(job, t, gpus, free, run);
        return run;
    }

    // The emptiest servers of a type first.
    void place(int job, int type, int gpus, std::vector<int>& free, std::vector<Entry>& run) const {
        std::vector<int> hosts;
        for (std::size_t s = 0; s < free.size(); ++s)
            if (free[s] && servers()[s]["gpu_type"].whole() == type) hosts.push_back(static_cast<int>(s));
        std::stable_sort(hosts.begin(), hosts.end(), [&](int a, int b) { return free[a] > free[b]; });
        for (int s : hosts) {
            const int taken = std::min(gpus, free[s]);
            if (!taken) break;
            run.push_back({job, s, taken});
            free[s] -= taken;
            gpus -= taken;
        }
    }
};

int main() {
    std::vector<Scheduler> scheduler;  // one, once hello has come
    for (std::string line; std::getline(std::cin, line);) {
        Json message = Reader(line).value();
        const std::string type = message["type"].text;
        if (type == "hello") {
            scheduler.emplace_back(std::move(message));
            std::cout << R"({"type": "hello", "version": 1})" << std::endl;
        } else if (type == "state") {
            std::cout << R"({"type": "assignment", "round": )" << message["round"].whole() << R"(, "run": [)";
            const char* comma = "";
            for (const Entry& entry : scheduler.at(0).decide(message)) {
                std::cout << comma << R"({"job": )" << entry.job << R"(, "server": )" << entry.server << R"(, "gpus": )"
                          << entry.gpus << "}";
                comma = ", ";
            }
            std::cout << "]}" << std::endl;
        } else {
            break;  // end
        }
    }
}

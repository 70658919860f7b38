// A FIFO scheduler as an external program: this single file uses only C++17's standard library.
//
// As a scheduler, it speaks the protocol of `harness schema policy`. Jobs are served in order of arrival, each on the
// fastest GPU type that has room for its whole gang; the first job that must wait blocks those behind it (the policy
// hadar.fifo). To compile and simulate it:
//
//     g++ -std=c++17 -O2 -o my_scheduler examples/fifo.cpp
//     harness simulate --instance gen/20jobs --policy exec:./my_scheduler fifo
//
// If the first line is an instance, it answers with a schedule for Hadar's problem, which the harness checks and
// certifies. Jobs are scheduled in order of arrival; each runs without interruption on the GPU type where it ends first,
// given the GPUs that earlier jobs have left, and a job that would end after the horizon is rejected:
//
//     harness show gen/20jobs --json | ./my_scheduler > mine.csv
//     harness verify --instance gen/20jobs --problem hadar.utility mine.csv

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// A JSON value. Strings keep their escapes, since they are only compared and passed on.
struct Json {
    double number = 0;
    std::string text;
    std::vector<Json> items;
    std::map<std::string, Json> fields;

    const Json& operator[](const std::string& name) const { return fields.at(name); }
    int whole() const { return static_cast<int>(number); }
    bool has(const std::string& name) const { return fields.count(name) > 0; }
    double number_or(const std::string& name, double absent) const { return has(name) ? fields.at(name).number : absent; }
};

class Reader {
public:
    explicit Reader(const std::string& line) : at(line.c_str()) {}

    Json value() {
        Json found;
        const char first = next();
        if (first == '{') {
            for (++at; next() != '}'; skip(',')) {
                const std::string name = text();
                skip(':');
                found.fields.emplace(name, value());
            }
            ++at;
        } else if (first == '[') {
            for (++at; next() != ']'; skip(',')) found.items.push_back(value());
            ++at;
        } else if (first == '"') {
            found.text = text();
        } else if (first == 't' || first == 'f' || first == 'n') {  // true, false, null: not used here
            while (*at >= 'a' && *at <= 'z') ++at;
        } else {
            char* end = nullptr;
            found.number = std::strtod(at, &end);
            if (end == at) throw std::runtime_error("not JSON");
            at = end;
        }
        return found;
    }

private:
    const char* at;

    char next() {
        while (*at == ' ' || *at == '\t' || *at == '\r') ++at;
        if (!*at) throw std::runtime_error("the line ends too early");
        return *at;
    }

    void skip(char wanted) {
        if (next() == wanted) ++at;
    }

    std::string text() {
        std::string found;
        next();
        for (++at; *at != '"'; ++at) {
            if (!*at) throw std::runtime_error("the line ends within a text");
            if (*at == '\\') found += *at++;
            found += *at;
        }
        ++at;
        return found;
    }
};

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

    // All GPUs of one type, the fastest first; of several types only if no single type could ever hold the gang.
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

    // A gang that keeps its types keeps its servers, so it need not restart; the others go wherever there is room.
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

    // Take the emptiest servers of a type first.
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

struct Job {
    std::string id;
    int gpus, first;                     // size of the gang, first slot that it may use
    std::map<std::string, int> lasts;    // duration in slots, by GPU type
};

// Iterations per second of one GPU by type: the job's own rates, or its tenant's rates for the job's model.
const Json& rates(const Json& job, const Json& instance) {
    if (job.has("rates") && !job["rates"].fields.empty()) return job["rates"];
    for (const Json& tenant : instance["tenants"].items)
        if (tenant["id"].text == job["tenant"].text)
            for (const Json& type : tenant["job_types"].items)
                if (type["name"].text == job["model"].text) return type["rates"];
    throw std::runtime_error("job " + job["id"].text + " has no rates");
}

void schedule(const Json& instance) {
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

int main() {
    std::vector<Scheduler> scheduler;  // empty until the hello message
    for (std::string line; std::getline(std::cin, line);) {
        Json message = Reader(line).value();
        if (!message.has("type")) {
            schedule(message);
            break;
        }
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

// JSON, as far as these examples need it: nothing but C++17's standard library.
#pragma once

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

// A JSON value. Text keeps its escapes: it is compared and passed on.
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

// Answers requests of dpaudit:  c++ -std=c++17 -O2 -o audit audit.cpp && ./audit noisy_count
//
// Copy this file, and name your mechanisms here. Each takes a dataset and a generator, and returns a number.
#include <cctype>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "count.hpp"

using Rows = std::vector<double>;
using Generator = std::mt19937_64;

const std::map<std::string, std::function<double(const Rows&, Generator&)>> mechanisms = {
    {"noisy_count", [](const Rows& rows, Generator& generator) { return noisy_count(rows, 0.7, generator); }},
    {"noisy_count_with_bug", [](const Rows& rows, Generator&) { return noisy_count_with_bug(rows, 0.7); }},
};

// A request is {"runs": 1000, "seed": 7, "dataset": [1, 2, 3]}. With its seed, an audit can be repeated. A mechanism that
// ignores the generator and draws from the operating system can be audited as well.
int main(int count, char** arguments) {
    const std::string name = count > 1 ? arguments[1] : "";
    if (!mechanisms.count(name)) {
        std::cerr << "no mechanism is named '" << name << "'\n";
        return 1;
    }
    const auto& mechanism = mechanisms.at(name);
    for (std::string request; std::getline(std::cin, request);) {
        // Enough for a list of numbers. Read other datasets with a library for JSON.
        for (char& c : request) c = std::isalnum(c) || c == '.' || c == '+' || c == '-' ? c : ' ';
        std::istringstream words(request);
        std::string key, word;
        std::size_t runs;
        std::uint64_t seed;
        words >> key >> runs >> key >> seed >> key;
        Rows dataset;
        while (words >> word) dataset.push_back(std::stod(word));
        Generator generator(seed);
        std::vector<double> outputs(runs);
        for (double& output : outputs) output = mechanism(dataset, generator);
        std::cout << "{\"format\": \"float64\", \"shape\": [" << runs << "]}\n";  // vectors: [runs, coordinates]
        std::cout.write(reinterpret_cast<const char*>(outputs.data()), runs * sizeof(double)).flush();
    }
}

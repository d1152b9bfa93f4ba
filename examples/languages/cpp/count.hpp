#pragma once
#include <cmath>
#include <random>
#include <vector>

template <class Generator>
double geometric(double scale, Generator& generator) {
    return std::floor(std::exponential_distribution<>(1 / scale)(generator));
}

/** epsilon-DP count for rows added or removed: discrete Laplace noise, the difference of two geometric numbers. A release
 * passes a std::random_device. */
template <class Generator>
double noisy_count(const std::vector<double>& rows, double epsilon, Generator& generator) {
    double scale = 1 / epsilon;
    double noise = geometric(scale, generator);
    return rows.size() + noise - geometric(scale, generator);
}

/** As noisy_count, with a bug: without a seed this engine starts with the seed 5489, so that all noise is the same. */
inline double noisy_count_with_bug(const std::vector<double>& rows, double epsilon) {
    std::mt19937_64 engine;
    return noisy_count(rows, epsilon, engine);
}

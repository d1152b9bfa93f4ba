# epsilon-DP count for rows added or removed: discrete Laplace noise, the difference of two geometric numbers.
# R has no secure generator: a release needs one from a package.
noisy_count <- function(rows, epsilon) {
  scale <- 1 / epsilon
  length(rows) + floor(rexp(1, rate = 1 / scale)) - floor(rexp(1, rate = 1 / scale))
}

# As noisy_count, with a bug: the second argument of rexp is the rate, not the scale.
noisy_count_with_bug <- function(rows, epsilon) {
  scale <- 1 / epsilon
  length(rows) + floor(rexp(1, scale)) - floor(rexp(1, scale))
}

# Answers requests of dpaudit:  Rscript audit.R noisy_count
#
# Copy this file, and name your mechanisms here. Each takes a dataset and returns a number.
source("count.R")

mechanisms <- list(
  noisy_count = function(rows) noisy_count(rows, 0.7),
  noisy_count_with_bug = function(rows) noisy_count_with_bug(rows, 0.7)
)

# A request is {"runs": 1000, "seed": 7, "dataset": [1, 2, 3]}. With its seed, below 2^53, an audit can be repeated. This
# generator takes all its bits, and set.seed only 32.
seeded <- function(seed) {
  RNGkind("L'Ecuyer-CMRG")
  set.seed(1)
  .Random.seed[2:3] <<- as.integer(c(seed %% 2^31, seed %/% 2^31))
}

name <- commandArgs(trailingOnly = TRUE)[1]
mechanism <- mechanisms[[name]]
if (is.null(mechanism)) stop("no mechanism is named ", name)
requests <- file("stdin", "r")
answers <- pipe("cat", "wb")
while (length(request <- readLines(requests, 1)) > 0) {
  # Enough for a list of numbers. Read other datasets with jsonlite.
  numbers <- scan(text = gsub('"[a-z]+":|[][{},]', " ", request), quiet = TRUE)
  seeded(numbers[2])
  outputs <- vapply(seq_len(numbers[1]), function(run) mechanism(numbers[-(1:2)]), 0)
  writeBin(charToRaw(sprintf('{"format": "float64", "shape": [%d]}\n', length(outputs))), answers)
  writeBin(outputs, answers, endian = "little")
  flush(answers)
}

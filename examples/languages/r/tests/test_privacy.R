library(testthat)

dpaudit <- function(mechanism, options) {
  program <- shQuote(paste("Rscript audit.R", mechanism))
  said <- suppressWarnings(system2("dpaudit", c("audit", "--program", program, options), stdout = TRUE, stderr = TRUE))
  expect(is.null(attr(said, "status")), paste(said, collapse = "\n"))
}

test_that("noisy_count is 0.7-DP", {
  setwd("..")
  dpaudit("noisy_count", "--x [1] --y [] --epsilon 0.7 --adjacency add-remove --runs 100000 --alpha 1e-5")
})

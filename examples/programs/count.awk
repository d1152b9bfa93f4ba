# Noisy count of the rows of a CSV file that has a line of names:  awk -v seed=1 -v scale=1 -f count.awk data.csv
#
# (1 / scale)-DP for rows added or removed. It knows nothing of dpaudit. For demonstration only: rand() is no source
# of noise for a real release.

BEGIN { srand(seed) }
END {
  do u = rand() - 0.5; while (u == -0.5)
  print NR - 1 + (u < 0 ? scale : -scale) * log(1 - 2 * (u < 0 ? -u : u))
}

// Package count releases counts with differential privacy.
package count

import (
	"math"
	"math/rand"
)

// NoisyCount is epsilon-DP for rows added or removed: discrete Laplace noise, the difference of two geometric numbers.
// A release needs a generator whose source is crypto/rand.
func NoisyCount(rows []float64, epsilon float64, random *rand.Rand) float64 {
	scale := 1 / epsilon
	geometric := func() float64 { return math.Floor(scale * random.ExpFloat64()) }
	return float64(len(rows)) + geometric() - geometric()
}

// NoisyCountWithBug adds whole numbers too, with a bug: int truncates towards 0, so that noise 0 is twice as likely.
func NoisyCountWithBug(rows []float64, epsilon float64, random *rand.Rand) int {
	scale := 1 / epsilon
	laplace := scale*random.ExpFloat64() - scale*random.ExpFloat64()
	return len(rows) + int(laplace)
}

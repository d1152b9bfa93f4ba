// Answers requests of dpaudit:  go run ./cmd/audit NoisyCount
//
// Copy this file, and name your mechanisms here. Each takes a dataset and a generator, and returns a number.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"os"

	"count"
)

type rows []float64 // or any type that encoding/json reads

var mechanisms = map[string]func(rows, *rand.Rand) float64{
	"NoisyCount": func(data rows, random *rand.Rand) float64 { return count.NoisyCount(data, 0.7, random) },
	"NoisyCountWithBug": func(data rows, random *rand.Rand) float64 {
		return float64(count.NoisyCountWithBug(data, 0.7, random))
	},
}

func main() {
	mechanism, found := mechanisms[os.Args[1]]
	if !found {
		log.Fatalf("no mechanism is named %q", os.Args[1])
	}
	requests := json.NewDecoder(os.Stdin)
	for {
		var request struct { // {"runs": 1000, "seed": 7, "dataset": [1, 2, 3]}
			Runs    int
			Seed    int64
			Dataset rows
		}
		if err := requests.Decode(&request); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		// With the seed, an audit can be repeated. A mechanism that draws from crypto/rand can be audited as well.
		random := rand.New(rand.NewSource(request.Seed))
		outputs := make([]float64, request.Runs)
		for i := range outputs {
			outputs[i] = mechanism(request.Dataset, random)
		}
		fmt.Printf("{\"format\": \"float64\", \"shape\": [%d]}\n", len(outputs)) // vectors: [runs, coordinates]
		binary.Write(os.Stdout, binary.LittleEndian, outputs)
	}
}

package main

import (
	"os/exec"
	"strings"
	"testing"
)

func dpaudit(t *testing.T, mechanism, options string) {
	t.Helper()
	command := []string{"audit", "--program", "go run . " + mechanism}
	said, err := exec.Command("dpaudit", append(command, strings.Fields(options)...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

func TestNoisyCountIsPrivate(t *testing.T) {
	dpaudit(t, "NoisyCount", "--x [1] --y [] --epsilon 0.7 --adjacency add-remove --runs 100000 --alpha 1e-5")
}

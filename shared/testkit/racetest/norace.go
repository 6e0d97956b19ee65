//go:build !race

package racetest

// Enabled reports whether the race detector watches.
const Enabled = false

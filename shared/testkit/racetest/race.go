//go:build race

// Package racetest reports whether the race detector is on. The detector makes tests several times
// slower, and finds nothing new in further repetitions.
package racetest

const Enabled = true

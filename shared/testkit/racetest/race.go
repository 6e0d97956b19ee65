//go:build race

// Package racetest reports whether the race detector is on. It makes tests several times slower,
// and finds nothing new in many repetitions.
package racetest

const Enabled = true

//go:build race

// Package racetest reports whether the race detector is on. With it, tests are several times slower, and further
// repetitions find nothing new.
package racetest

const Enabled = true

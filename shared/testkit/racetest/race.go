//go:build race

// Package racetest reports whether the race detector is on. It makes tests several times slower, and
// finds nothing new in the tenth repetition.
package racetest

// Enabled reports whether the race detector watches.
const Enabled = true

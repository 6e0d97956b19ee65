//go:build race

// Package racetest tells tests whether the race detector watches them. It makes what they
// do several times slower, and finds nothing more in the tenth repetition.
package racetest

// Enabled reports whether the race detector watches.
const Enabled = true

//go:build !race

package racetest

const Enabled = false

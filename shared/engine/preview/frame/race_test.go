//go:build race

package frame_test

// With the race detector, drawing is several times slower, so only every sixth look is compared.
const compareEach = 6

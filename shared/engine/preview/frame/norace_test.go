//go:build !race

package frame_test

// Without the race detector, every look is compared with finished media.
const compareEach = 1

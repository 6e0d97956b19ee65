//go:build !race

package frame_test

// Compare every look with finished media.
const compareEach = 1

//go:build !race

package frame_test

// All looks are compared with finished media.
const compareEach = 1

//go:build !race

package frame_test

// compareEach is the interval of the looks that are compared with finished media: all of them.
const compareEach = 1

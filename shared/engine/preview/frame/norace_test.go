//go:build !race

package frame_test

// compareEach is the interval of the looks that are compared with the finished
// ones: all.
const compareEach = 1

//go:build !race

package frame_test

// compareEach tells which of the looks are compared with the finished ones: all.
const compareEach = 1

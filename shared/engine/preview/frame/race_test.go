//go:build race

package frame_test

// compareEach is the interval of the looks that are compared with the finished
// ones: every sixth, as the race detector has nothing to find in one session's
// drawing and makes it several times slower.
const compareEach = 6

//go:build race

package frame_test

// compareEach is the interval of compared looks: every sixth, because the race detector finds nothing
// in one session's drawing and makes it several times slower.
const compareEach = 6

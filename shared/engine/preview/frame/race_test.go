//go:build race

package frame_test

// compareEach tells which of the looks are compared with the finished ones: every
// sixth, as the race detector has nothing to find in one session's drawing and
// makes it several times as slow.
const compareEach = 6

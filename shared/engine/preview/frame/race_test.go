//go:build race

package frame_test

// Every sixth look is compared, because the race detector finds nothing in one session's drawing
// and makes it several times slower.
const compareEach = 6

//go:build race

package frame_test

// Every sixth look is compared, because the race detector makes drawing several times slower.
const compareEach = 6

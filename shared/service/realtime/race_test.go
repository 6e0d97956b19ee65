//go:build race

package realtime_test

// The number is small, because the race detector makes drawing many times slower.
const mutations = 40

//go:build race

package realtime_test

// mutations are how many pictures are sent by default: the race detector makes the
// drawing many times as slow, and has little to find in it.
const mutations = 40

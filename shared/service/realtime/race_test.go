//go:build race

package realtime_test

// mutations is how many pictures are sent by default: the race detector makes
// the drawing many times slower, and finds little in it.
const mutations = 40

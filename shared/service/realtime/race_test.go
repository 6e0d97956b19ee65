//go:build race

package realtime_test

// mutations is the default number of pictures. It is small, because the race detector makes drawing many times
// slower.
const mutations = 40

//go:build !race

package realtime_test

const mutations = 80

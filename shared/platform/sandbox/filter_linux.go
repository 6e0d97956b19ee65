package sandbox

import (
	_ "embed"
	"encoding/binary"
	"runtime"
)

// The seccomp filters are embedded, because assembling one takes longer than the rest of a
// program's startup. testdata/filter_<architecture>.txt shows them as text.
//
//go:generate go test -run TestFiltersMatchPolicy -update .
var (
	//go:embed filter_amd64.bin
	filterAMD64 string
	//go:embed filter_arm64.bin
	filterARM64 string
)

// callFilter returns one instruction per word. It returns nil except on amd64 and arm64.
func callFilter() []uint64 {
	encoded := map[string]string{"amd64": filterAMD64, "arm64": filterARM64}[runtime.GOARCH]
	filter := make([]uint64, len(encoded)/8)
	for i := range filter {
		filter[i] = binary.BigEndian.Uint64([]byte(encoded[8*i:]))
	}
	return filter
}

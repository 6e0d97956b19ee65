package mediatest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// ProgressiveJPEG is a picture of 96x64 pixels whose coefficients are in several scans. Neither
// FFmpeg nor Go writes such files, so Pillow made it, from a few sine waves.
//
//go:embed files/progressive.jpg
var ProgressiveJPEG []byte

// Mutate returns a damaged version of one of the files. It changes bits and bytes, inserts extreme numbers, and
// removes or repeats pieces or takes them from another file. The same random numbers produce the same file.
func Mutate(random *rand.Rand, files [][]byte) []byte {
	data := bytes.Clone(files[random.IntN(len(files))])
	for range 1 + random.IntN(6) {
		if len(data) < 2 {
			break
		}
		// Changes near the start do the most damage, because the headers are there.
		reach := len(data)
		if random.IntN(2) == 0 {
			reach = min(reach, 256)
		}
		data = mutateOnce(random, data, random.IntN(reach), files)
	}
	return data
}

func mutateOnce(random *rand.Rand, data []byte, at int, files [][]byte) []byte {
	end := min(len(data), at+1+random.IntN(64))
	switch random.IntN(8) {
	case 0, 1:
		data[at] ^= 1 << random.IntN(8)
	case 2:
		data[at] = byte(random.Uint32())
	case 3: // a 16-bit number
		extreme := []uint16{0, 1, 0x7fff, 0x8000, 0xffff, 0xffd8, 0xffda, 0xffc2}
		if at+2 <= len(data) {
			binary.BigEndian.PutUint16(data[at:], extreme[random.IntN(len(extreme))])
		}
	case 4: // a 32-bit number
		if at+4 <= len(data) {
			binary.LittleEndian.PutUint32(data[at:], []uint32{0, 1, 0x7fffffff, 0xffffffff, 0x00ffffff}[random.IntN(5)])
		}
	case 5:
		data = slices.Delete(data, at, end)
	case 6:
		data = slices.Insert(data, at, bytes.Clone(data[at:end])...)
	case 7:
		other := files[random.IntN(len(files))]
		from := random.IntN(len(other))
		data = slices.Concat(data[:at], other[from:min(len(other), from+256)], data[at:])
	}
	return data
}

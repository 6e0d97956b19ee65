package media

import "encoding/binary"

// inspectAVI reads the main header. In a large file, that header counts only the frames of the first RIFF list.
func inspectAVI(w *window) Info {
	head := w.at(0, 72)
	if head == nil || string(head[20:28]) != "hdrlavih" {
		return Info{}
	}
	field := func(i int) uint32 { return binary.LittleEndian.Uint32(head[32+4*i:]) }
	microseconds, frames := float64(field(0)), float64(field(4))
	return Info{
		Width:    int(field(8)),
		Height:   int(field(9)),
		Duration: Seconds(microseconds * frames / 1e6),
	}
}

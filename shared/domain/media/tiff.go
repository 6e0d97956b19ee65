package media

import (
	"bytes"
	"encoding/binary"
)

// The tags that are read (TIFF 6.0, section 8).
const (
	tiffWidth       = 256
	tiffHeight      = 257
	tiffOrientation = 274
)

func inspectTIFF(w *window) Info {
	tags := tiffTags(w)
	return Info{Width: tags[tiffWidth], Height: tags[tiffHeight]}
}

// turnedByExif reports whether Exif's orientation swaps the sides. Its data is a TIFF without a
// picture.
func turnedByExif(exif []byte) bool {
	tags := tiffTags(&window{source: bytes.NewReader(exif), size: int64(len(exif))})
	return tags[tiffOrientation] >= 5 && tags[tiffOrientation] <= 8
}

// tiffTags reads the listed tags of the first directory whose value is one number.
func tiffTags(w *window) map[int]int {
	const (
		entrySize  = 12
		maxEntries = 512
		short      = 3
		long       = 4
	)
	head := w.at(0, 8)
	if head == nil {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(head[4:]))
	count := w.at(at, 2)
	if count == nil {
		return nil
	}
	tags := map[int]int{}
	for range min(int(order.Uint16(count)), maxEntries) {
		entry := w.at(at+2, entrySize)
		at += entrySize
		if entry == nil {
			break
		}
		if order.Uint32(entry[4:]) != 1 {
			continue
		}
		tag := int(order.Uint16(entry))
		switch order.Uint16(entry[2:]) {
		case short:
			tags[tag] = int(order.Uint16(entry[8:]))
		case long:
			tags[tag] = int(order.Uint32(entry[8:]))
		}
	}
	return tags
}

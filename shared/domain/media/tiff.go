package media

import (
	"bytes"
	"encoding/binary"
	"io"

	"cutroom/shared/domain/fault"
)

// These are the ids of the tags that this file reads (TIFF 6.0, section 8).
const (
	tiffWidth       = 256
	tiffHeight      = 257
	tiffCompression = 259
	tiffOrientation = 274
	tiffProfile     = 34675
	dngVersion      = 50706
)

func inspectTIFF(w *window) Info {
	tags := tiffTags(w)
	return Info{Width: tags[tiffWidth].value, Height: tags[tiffHeight].value}
}

// CheckTIFF rejects a TIFF that FFmpeg would decode as a black picture or a thumbnail.
//
// Errors: fault.Invalid, with a message for the sender; errors of r.
func CheckTIFF(r io.ReaderAt, size int64) error {
	w := &window{source: r, size: size}
	tags := tiffTags(w)
	const oldJPEG, jpeg = 6, 7
	switch compression := tags[tiffCompression].value; {
	case tags[dngVersion].count > 0:
		return fault.New(fault.Invalid, "The file is a raw photo (DNG). Export it as a JPEG.")
	case compression == oldJPEG || compression == jpeg:
		return fault.New(fault.Invalid, "The TIFF is compressed as JPEG, which is not supported. Save it as a JPEG or with LZW.")
	}
	return w.err
}

// exifOrientation returns 0 if the orientation is unknown. In some files the data starts with the
// prefix that is used in JPEGs.
func exifOrientation(exif []byte) int {
	exif = bytes.TrimPrefix(exif, []byte("Exif\x00\x00"))
	return tiffTags(&window{source: bytes.NewReader(exif), size: int64(len(exif))})[tiffOrientation].value
}

// tiffTag holds a number, or the offset of a value that takes several bytes.
type tiffTag struct{ count, value int }

// tiffTags reads tags of the first directory: all single numbers, the profile, and the DNG version.
func tiffTags(w *window) map[int]tiffTag {
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
	tags := map[int]tiffTag{}
	for range min(int(order.Uint16(count)), maxEntries) {
		entry := w.at(at+2, entrySize)
		at += entrySize
		if entry == nil {
			break
		}
		tag, count := int(order.Uint16(entry)), int(order.Uint32(entry[4:]))
		if count != 1 && tag != tiffProfile && tag != dngVersion {
			continue
		}
		switch kind := order.Uint16(entry[2:]); {
		case kind == short:
			tags[tag] = tiffTag{count, int(order.Uint16(entry[8:]))}
		case kind == long || tag == tiffProfile || tag == dngVersion:
			tags[tag] = tiffTag{count, int(order.Uint32(entry[8:]))}
		}
	}
	return tags
}

package media

import (
	"bytes"
	"encoding/binary"
)

func fixedSize(w *window, mime string) (width, height int) {
	head := w.at(0, 30)
	if head == nil {
		return 0, 0
	}
	little, big := binary.LittleEndian, binary.BigEndian
	switch mime {
	case "image/png": // ISO/IEC 15948, 11.2.2: IHDR comes first
		return int(big.Uint32(head[16:])), int(big.Uint32(head[20:]))
	case "image/gif": // the logical screen size
		return int(little.Uint16(head[6:])), int(little.Uint16(head[8:]))
	case "image/bmp":
		if little.Uint32(head[14:]) < 40 { // an OS/2 header
			return int(little.Uint16(head[18:])), int(little.Uint16(head[20:]))
		}
		height := int(int32(little.Uint32(head[22:])))
		return int(int32(little.Uint32(head[18:]))), max(height, -height)
	case "image/webp":
		return webpSize(w, head)
	}
	return 0, 0
}

const maxChunks = 64

// webpSize reads the size from the first chunk (RFC 9649, section 2). In an extended file, it returns the size of
// the largest picture if that exceeds the canvas, because decoders allocate memory for the pictures.
func webpSize(w *window, head []byte) (width, height int) {
	little := binary.LittleEndian
	if string(head[12:16]) != "VP8X" {
		return webpPicture(string(head[12:16]), head[20:])
	}
	width, height = int(uint24(head[24:]))+1, int(uint24(head[27:]))+1
	at := int64(12)
	for range maxChunks {
		chunk := w.at(at, 8)
		if chunk == nil {
			break
		}
		kind, size := string(chunk[:4]), int64(little.Uint32(chunk[4:]))
		content := at + 8
		if kind == "ANMF" {
			const frameHeader = 16 // size of the frame header before the frame's chunks
			if frame := w.at(content, frameHeader); frame != nil {
				width, height = max(width, int(uint24(frame[6:]))+1), max(height, int(uint24(frame[9:]))+1)
			}
			at = content + frameHeader
			continue
		}
		if picture := w.at(content, 10); picture != nil {
			wide, high := webpPicture(kind, picture)
			width, height = max(width, wide), max(height, high)
		}
		at = content + size + size%2
	}
	return width, height
}

// webpPicture reads the size from the first ten bytes of a picture chunk.
func webpPicture(kind string, content []byte) (width, height int) {
	little := binary.LittleEndian
	switch kind {
	case "VP8L":
		bits := little.Uint32(content[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8 ":
		return int(little.Uint16(content[6:]) & 0x3fff), int(little.Uint16(content[8:]) & 0x3fff)
	}
	return 0, 0
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// readJPEG reads the segments (ITU-T T.81, annex B) up to the frame header.
func readJPEG(w *window) (info Info, still Still) {
	const (
		firstFrame, lastFrame = 0xc0, 0xcf
		huffmanTables         = 0xc4
		jpegExtensions        = 0xc8
		arithmeticConditions  = 0xcc
		startOfScan           = 0xda
		app1, app2            = 0xe1, 0xe2
		exif, profile         = "Exif\x00\x00", "ICC_PROFILE\x00"
	)
	for at := int64(2); ; {
		segment := w.at(at, 4)
		if segment == nil || segment[0] != 0xff {
			return info, still
		}
		marker, length := segment[1], int64(binary.BigEndian.Uint16(segment[2:]))
		switch {
		case marker == 0xff: // a fill byte
			at++
			continue
		case marker == startOfScan || length < 2:
			return info, still
		case marker == app1 || marker == app2:
			content := w.at(at+4, int(length-2))
			if marker == app1 && bytes.HasPrefix(content, []byte(exif)) && still.Orientation == 0 {
				still.Orientation = exifOrientation(content)
			}
			if marker == app2 && bytes.HasPrefix(content, []byte(profile)) && len(content) > len(profile)+2 &&
				len(still.Profile) < maxProfile {
				// Ignore the segments' numbers, because in practice the segments are in order.
				still.Profile = append(still.Profile, content[len(profile)+2:]...)
			}
		case marker >= firstFrame && marker <= lastFrame &&
			marker != huffmanTables && marker != jpegExtensions && marker != arithmeticConditions:
			frame := w.at(at+4, 6)
			if frame == nil {
				return info, still
			}
			info.Height, info.Width = int(binary.BigEndian.Uint16(frame[1:])), int(binary.BigEndian.Uint16(frame[3:]))
			still.CMYK = frame[5] == 4
			return info, still
		}
		at += 2 + length
	}
}

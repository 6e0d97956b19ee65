package media

import "encoding/binary"

// readAVC reads a video's properties from an H.264 decoder configuration (ISO/IEC 14496-15, 5.3.3.1). plain is
// true if the video is progressive 8-bit 4:2:0 with limited range and square pixels.
func readAVC(config []byte) (info Info, plain bool) {
	const head = 8 // the bytes before the first parameter set
	if len(config) < head || config[0] != 1 || config[5]&0x1f != 1 {
		return Info{}, false
	}
	length := int(binary.BigEndian.Uint16(config[6:]))
	if length < 4 || len(config) < head+length || config[head]&0x1f != 7 {
		return Info{}, false
	}
	return readParameters(config[head+1 : head+length])
}

// readParameters reads a sequence parameter set (ITU-T H.264, 7.3.2.1.1).
func readParameters(set []byte) (info Info, plain bool) {
	profile := set[0]
	b := &bitReader{bytes: unescape(set[3:])}
	b.ue() // id of the parameter set
	switch profile {
	case 66, 77: // Baseline and Main are always 8-bit 4:2:0
	case 100:
		// 4:2:0, 8-bit luma and chroma, no lossless mode, no scaling matrices.
		if b.ue() != 1 || b.ue() != 0 || b.ue() != 0 || b.read(1) != 0 || b.read(1) != 0 {
			return Info{}, false
		}
	default:
		return Info{}, false
	}
	b.ue() // frame number length in bits
	switch b.ue() {
	case 0:
		b.ue()
	case 2:
	default:
		return Info{}, false
	}
	b.ue() // number of reference frames
	b.read(1)
	across, down := b.ue()+1, b.ue()+1
	if progressive := b.read(1) == 1; !progressive || across > 1<<12 || down > 1<<12 {
		return Info{}, false
	}
	b.read(1)
	info = Info{Width: 16 * int(across), Height: 16 * int(down), PixelFormat: "yuv420p"}
	if b.read(1) == 1 { // cropping, in units of two pixels
		left, right, top, bottom := b.ue(), b.ue(), b.ue(), b.ue()
		if max(left, right, top, bottom) > 1<<12 {
			return Info{}, false
		}
		info.Width -= 2 * int(left+right)
		info.Height -= 2 * int(top+bottom)
	}
	if b.read(1) == 1 && !readUsability(b, &info) {
		return Info{}, false
	}
	return info, !b.over && info.Width > 0 && info.Height > 0
}

// readUsability reads the color properties from the video usability information (ITU-T H.264, E.1.1). It reports
// whether the video is ordinary: square pixels, limited range and common color properties.
func readUsability(b *bitReader, info *Info) bool {
	if b.read(1) == 1 && b.read(8) != 1 {
		return false
	}
	if b.read(1) == 1 {
		b.read(1) // overscan
	}
	if b.read(1) == 0 {
		return true
	}
	b.read(3) // video format, such as PAL
	if full := b.read(1) == 1; full {
		return false
	}
	if b.read(1) == 0 {
		return true
	}
	primaries, transfer, matrix := b.read(8), b.read(8), b.read(8)
	var known bool
	if info.Primaries, known = ordinaryColours[primaries]; !known {
		return false
	}
	if info.Transfer, known = ordinaryColours[transfer]; !known || transfer == 5 {
		return false // FFmpeg's name for this transfer curve is different
	}
	info.Matrix, known = ordinaryColours[matrix]
	return known
}

// ordinaryColours maps ITU-T H.273 numbers to FFmpeg's names for common color properties.
var ordinaryColours = map[uint32]string{1: "bt709", 5: "bt470bg", 6: "smpte170m"}

// unescape removes the bytes inserted to prevent start codes (ITU-T H.264, 7.4.1).
func unescape(unit []byte) []byte {
	out, zeros := make([]byte, 0, len(unit)), 0
	for _, b := range unit {
		if zeros >= 2 && b == 3 {
			zeros = 0
			continue
		}
		if b == 0 {
			zeros++
		} else {
			zeros = 0
		}
		out = append(out, b)
	}
	return out
}

// bitReader reads bits, most significant bit first. Past the end it returns 0.
type bitReader struct {
	bytes []byte
	at    int
	over  bool
}

func (b *bitReader) read(n int) (value uint32) {
	for range n {
		value <<= 1
		if b.at>>3 >= len(b.bytes) {
			b.over = true
			continue
		}
		value |= uint32(b.bytes[b.at>>3]>>(7-b.at&7)) & 1
		b.at++
	}
	return value
}

// ue reads an Exp-Golomb-coded number (ITU-T H.264, 9.1).
func (b *bitReader) ue() uint32 {
	zeros := 0
	for b.read(1) == 0 {
		if zeros++; zeros > 31 || b.over {
			b.over = true
			return 0
		}
	}
	return 1<<zeros - 1 + b.read(zeros)
}

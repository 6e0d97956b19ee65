package media

import (
	"encoding/binary"
	"errors"
	"io"

	"cutroom/shared/domain/fault"
)

type JPEG struct {
	// Width and Height are the size as stored.
	Width, Height int
	// Components is 1 for gray pictures, 3 for color and 4 for CMYK.
	Components int
	// Progressive pictures can be decoded only as a whole.
	Progressive bool
	// Scans is an upper bound for the number of scans (ITU-T T.81, B.1.1.5).
	Scans int
	// Memory is the number of bytes that a decoder may need for planes, coefficients and an RGB copy.
	Memory int64
}

// These are the JPEG markers (ITU-T T.81, table B.1).
const (
	jpegBaseline    = 0xc0
	jpegProgressive = 0xc2
	jpegHuffman     = 0xc4
	jpegScan        = 0xda
	jpegQuantizers  = 0xdb
	jpegRestarts    = 0xdd
	jpegFirstApp    = 0xe0
	jpegLastApp     = 0xef
	jpegComment     = 0xfe
	jpegFill        = 0xff
)

// InspectJPEG reads the header of a JPEG before this process decodes the picture. It rejects invalid files even if
// decoders tolerate them, because two decoders may find different sizes in them. It reads the bytes once and
// allocates no memory.
func InspectJPEG(data []byte) (JPEG, bool) {
	if len(data) < 2 || data[0] != 0xff || data[1] != 0xd8 {
		return JPEG{}, false
	}
	var header JPEG
	for rest := data[2:]; ; {
		for len(rest) > 1 && rest[0] == 0xff && rest[1] == jpegFill {
			rest = rest[1:]
		}
		if len(rest) < 4 || rest[0] != 0xff {
			return JPEG{}, false
		}
		marker, length := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if length < 2 || length+2 > len(rest) {
			return JPEG{}, false
		}
		content := rest[4 : 2+length]
		switch {
		case marker >= jpegBaseline && marker <= jpegProgressive:
			if header.Width > 0 || !header.frame(content) {
				return JPEG{}, false
			}
			header.Progressive = marker == jpegProgressive
		case marker == jpegScan:
			if header.Width == 0 {
				return JPEG{}, false
			}
			header.Scans = scans(rest)
			header.Memory = header.memory(header.Memory)
			return header, true
		case marker == jpegHuffman, marker == jpegQuantizers, marker == jpegRestarts, marker == jpegComment,
			marker >= jpegFirstApp && marker <= jpegLastApp:
		default:
			return JPEG{}, false
		}
		rest = rest[2+length:]
	}
}

// frame reads a frame header (ITU-T T.81, B.2.2) and reports whether its type is known.
func (j *JPEG) frame(content []byte) bool {
	if len(content) < 6 || content[0] != 8 {
		return false
	}
	j.Height, j.Width = int(binary.BigEndian.Uint16(content[1:])), int(binary.BigEndian.Uint16(content[3:]))
	j.Components = int(content[5])
	if j.Width == 0 || j.Height == 0 || j.Components != 1 && j.Components != 3 && j.Components != 4 ||
		len(content) != 6+3*j.Components {
		return false
	}
	perUnit, across, down := 0, 1, 1
	for i := range j.Components {
		sampling := content[7+3*i]
		h, v := int(sampling>>4), int(sampling&0x0f)
		if h < 1 || h > 4 || v < 1 || v > 4 {
			return false
		}
		if j.Components == 1 {
			h, v = 1, 1 // a picture with one component is not interleaved
		}
		perUnit, across, down = perUnit+h*v, max(across, h), max(down, v)
	}
	units := int64((j.Width+8*across-1)/(8*across)) * int64((j.Height+8*down-1)/(8*down))
	j.Memory = units * int64(perUnit)
	return true
}

// memory counts, per block, 64 one-byte samples and 64 four-byte coefficients (if they are kept),
// and four bytes per pixel for a copy.
func (j *JPEG) memory(blocks int64) int64 {
	bytes := 64 * blocks
	if j.Progressive {
		bytes += 256 * blocks
	}
	return bytes + 4*int64(j.Width)*int64(j.Height)
}

// maxScans limits the scans in a JPEG. Encoders write about ten. A dozen bytes can encode a scan that changes
// nothing, and yet a decoder visits every block for it. Phones append a video to the picture. In the video, a marker
// occurs by chance about once in 65,536 bytes, so a file may have one more scan per bytesPerScan, up to mostScans.
const (
	maxScans     = 100
	bytesPerScan = 16 << 10
	mostScans    = 1000
)

// CheckJPEG rejects a JPEG with more scans than a decoder can process in a few seconds.
//
// Errors: fault.Invalid, with a message for the sender; errors from r.
func CheckJPEG(r io.ReaderAt, size int64) error {
	count, most := 0, int(min(maxScans+size/bytesPerScan, mostScans))
	buffer := make([]byte, 64<<10)
	// The chunks overlap by one byte, because a marker has two bytes.
	for at := int64(0); at < size; at += int64(len(buffer) - 1) {
		n, err := r.ReadAt(buffer, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if count += scans(buffer[:n]); count > most {
			return fault.New(fault.Invalid, "The JPEG has more than %d scans. Save it with fewer scans.", most)
		}
	}
	return nil
}

func scans(data []byte) (count int) {
	for i := 0; i+1 < len(data); i++ {
		if data[i] == 0xff && data[i+1] == jpegScan {
			count++
		}
	}
	return count
}

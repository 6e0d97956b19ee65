package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"time"
)

const maxProfile = 4 << 20 // in bytes

// Still says how to display an image.
type Still struct {
	// Orientation (Exif) is 2 to 8 if the picture must be rotated or mirrored, otherwise 0 or 1.
	Orientation int
	Profile     []byte // an ICC profile, or nil
	CMYK        bool   // true for a JPEG with four color components
	// Gamma is the exponent of a PNG without a profile, or 0. The usual value is 0.45455.
	Gamma  float64
	Frames []Frame
	// Transfer and Primaries are the color property numbers (ITU-T H.273) of an AVIF or HEIC without a profile.
	Transfer, Primaries int
	// Others lists the offsets of the flags of all pictures in an AVIF or HEIC except the main one.
	// Setting a picture's flags to 1 hides it.
	Others []int64
}

// Frame is a frame of an animated WebP. Its chunks are at the offsets from Start to End.
type Frame struct {
	Start, End int64
	// X and Y are the frame's position on a canvas of size Width by Height.
	X, Y, Width, Height int
	// Wide and High are the frame's own size.
	Wide, High int
	Duration   time.Duration
	// A frame either replaces the canvas below it or is blended with it. Cleared means that the frame's area is
	// cleared afterwards.
	Replaces, Cleared bool
}

// InspectStill reads how to display an image. It may read the entire file, so use it only for files
// on disk. Missing or invalid properties are zero. It returns only errors from r.
func InspectStill(r io.ReaderAt, size int64, mime string) (Still, error) {
	w := &window{source: r, size: size, thorough: true}
	s := inspectStill(w, mime)
	return s, w.err
}

func inspectStill(w *window, mime string) (s Still) {
	switch mime {
	case "image/jpeg":
		_, s = readJPEG(w)
	case "image/png":
		s.readPNG(w)
	case "image/webp":
		s.readWebP(w)
	case "image/tiff":
		tags := tiffTags(w)
		s.Orientation = tags[tiffOrientation].value
		if profile := tags[tiffProfile]; profile.count > 4 {
			s.Profile = w.copy(int64(profile.value), int64(profile.count))
		}
	case "image/avif", "image/heic":
		s.readHEIF(w)
	}
	return s
}

// Sideways reports whether an Exif orientation swaps width and height.
func Sideways(orientation int) bool { return orientation >= 5 && orientation <= 8 }

func (w *window) copy(offset, length int64) []byte {
	if length > maxProfile || offset < 0 || offset > w.size-length {
		return nil
	}
	content := make([]byte, 0, length)
	for length > int64(len(content)) {
		part := w.at(offset+int64(len(content)), int(min(length-int64(len(content)), windowSize)))
		if part == nil {
			return nil
		}
		content = append(content, part...)
	}
	return content
}

// The Exif chunk may be the last one (PNG, third edition, 11.3).
func (s *Still) readPNG(w *window) {
	at := int64(8)
	for range maxPNGChunks {
		chunk := w.at(at, 8)
		if chunk == nil || string(chunk[4:]) == "IEND" {
			return
		}
		kind, length := string(chunk[4:]), int64(binary.BigEndian.Uint32(chunk))
		switch {
		case kind == "IDAT" && !w.thorough:
			return
		case kind == "eXIf" && s.Orientation == 0:
			s.Orientation = exifOrientation(w.copy(at+8, min(length, windowSize)))
		case kind == "gAMA" && s.Gamma == 0:
			if content := w.at(at+8, 4); content != nil {
				s.Gamma = float64(binary.BigEndian.Uint32(content)) / 100_000
			}
		case kind == "sRGB":
			s.Gamma = 1 / 2.2
		case kind == "iCCP" && s.Profile == nil && w.thorough:
			content := w.copy(at+8, length)
			_, compressed, found := bytes.Cut(content, []byte{0, 0}) // the name, then compression method 0
			if reader, err := zlib.NewReader(bytes.NewReader(compressed)); found && err == nil {
				s.Profile, _ = io.ReadAll(io.LimitReader(reader, maxProfile))
			}
		}
		at += 12 + length
	}
}

// See RFC 9649, section 2.7.
func (s *Still) readWebP(w *window) {
	at, canvas := int64(12), [2]int{}
	for range maxWebPChunks {
		chunk := w.at(at, 8)
		if chunk == nil {
			return
		}
		kind, length := string(chunk[:4]), int64(binary.LittleEndian.Uint32(chunk[4:]))
		content := at + 8
		switch head := w.at(content, 16); {
		case kind == "EXIF" && s.Orientation == 0:
			s.Orientation = exifOrientation(w.copy(content, min(length, windowSize)))
		case kind == "ICCP" && s.Profile == nil:
			s.Profile = w.copy(content, length)
		case head == nil:
		case kind == "VP8X":
			canvas = [2]int{int(uint24(head[4:])) + 1, int(uint24(head[7:])) + 1}
		case kind == "ANMF" && canvas[0] > 0 && (w.thorough || s.Frames == nil):
			s.Frames = append(s.Frames, Frame{
				Start: content + 16, End: min(content+length, w.size), X: 2 * int(uint24(head)), Y: 2 * int(uint24(head[3:])),
				Width: canvas[0], Height: canvas[1], Wide: int(uint24(head[6:])) + 1, High: int(uint24(head[9:])) + 1,
				Duration: time.Duration(uint24(head[12:])) * time.Millisecond, Replaces: head[15]&2 != 0, Cleared: head[15]&1 != 0,
			})
		}
		at = content + length + length%2
	}
}

// maxWebPChunks allows for many frames, because the Exif chunk follows them.
const maxWebPChunks = 10_000

// Static returns the frame as a separate WebP.
func (f *Frame) Static(r io.ReaderAt) io.Reader {
	length := f.End - f.Start
	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(length+4))
	first := make([]byte, 8)
	if n, _ := r.ReadAt(first, f.Start); n == len(first) && string(first[:4]) == "ALPH" {
		// Only an extended file may have an alpha chunk. The size is in the picture chunk that follows.
		picture := f.Start + 8 + int64(binary.LittleEndian.Uint32(first[4:])+1)&^1
		content := make([]byte, 18)
		_, _ = r.ReadAt(content, picture)
		width, height := webpPicture(string(content[:4]), content[8:])
		head = binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(length+4+18))
		head = append(head, "WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00"...)
		for _, side := range []int{width - 1, height - 1} {
			head = append(head, byte(side), byte(side>>8), byte(side>>16))
		}
	} else {
		head = append(head, "WEBP"...)
	}
	return io.MultiReader(bytes.NewReader(head), io.NewSectionReader(r, f.Start, length))
}

// readHEIF reads the properties of the main picture (ISO/IEC 23008-12). The orientation is given by
// the properties irot and imir. Exif is ignored.
func (s *Still) readHEIF(w *window) {
	var primary int
	var properties, assignments []box
	var items box
	for meta := range boxes(w, 0, w.size) {
		if meta.kind != "meta" {
			continue
		}
		for b := range boxes(w, meta.start+4, meta.end) {
			switch b.kind {
			case "pitm":
				primary, _ = heifID(w, b.start+4, w.at(b.start, 1))
			case "iinf":
				items = b
			case "iprp":
				for inner := range boxes(w, b.start, b.end) {
					if inner.kind == "ipma" {
						assignments = append(assignments, inner)
					}
					for property := range boxes(w, inner.start, inner.end) {
						if inner.kind == "ipco" {
							properties = append(properties, property)
						}
					}
				}
			}
		}
		break
	}
	s.readItems(w, items, primary)
	for _, b := range assignments[:min(len(assignments), maxAssignments)] {
		numbers := assigned(w, b, primary)
		for _, number := range numbers {
			if number > 0 && number <= len(properties) {
				s.readProperty(w, properties[number-1])
			}
		}
		if numbers != nil {
			return
		}
	}
}

// maxAssignments limits the boxes that assign properties to items. A file has one or two.
const maxAssignments = 16

// heifID reads an item's id, which has two bytes in version 0 and four bytes in later versions.
func heifID(w *window, at int64, version []byte) (id int, size int64) {
	if version == nil {
		return 0, 0
	}
	if version[0] == 0 {
		if content := w.at(at, 2); content != nil {
			return int(binary.BigEndian.Uint16(content)), 2
		}
	} else if content := w.at(at, 4); content != nil {
		return int(binary.BigEndian.Uint32(content)), 4
	}
	return 0, 0
}

// readItems records the offsets of the flags of all items except the main one.
func (s *Still) readItems(w *window, iinf box, primary int) {
	version := w.at(iinf.start, 1)
	if version == nil {
		return
	}
	start := iinf.start + 6
	if version[0] > 0 {
		start += 2
	}
	for item := range boxes(w, start, iinf.end) {
		kind := w.at(item.start, 4)
		if item.kind != "infe" || kind == nil || kind[0] < 2 {
			continue
		}
		// In version 2, ids have two bytes.
		if id, _ := heifID(w, item.start+4, []byte{kind[0] - 2}); id != primary {
			s.Others = append(s.Others, item.start+3)
		}
	}
}

// assigned returns the numbers of the properties assigned to an item, counted from 1.
func assigned(w *window, ipma box, item int) (numbers []int) {
	head := w.at(ipma.start, 8)
	if head == nil {
		return nil
	}
	version, wide, count := []byte{head[0]}, head[3]&1 == 1, binary.BigEndian.Uint32(head[4:])
	at := ipma.start + 8
	for range min(count, maxBoxes) {
		id, size := heifID(w, at, version)
		length := w.at(at+size, 1)
		if size == 0 || length == nil {
			return numbers
		}
		entries, each := int64(length[0]), int64(1)
		if wide {
			each = 2
		}
		content := w.at(at+size+1, int(entries*each))
		if content == nil || numbers != nil || at >= ipma.end {
			return numbers
		}
		for i := int64(0); id == item && i < entries; i++ {
			if wide {
				numbers = append(numbers, int(binary.BigEndian.Uint16(content[2*i:])&0x7fff))
			} else {
				numbers = append(numbers, int(content[i]&0x7f))
			}
		}
		at += size + 1 + entries*each
	}
	return numbers
}

func (s *Still) readProperty(w *window, b box) {
	switch b.kind {
	case "irot":
		// The value is a number of counterclockwise quarter turns. Mirroring does not swap width and height.
		if turns := w.at(b.start, 1); turns != nil {
			s.Orientation = []int{1, 8, 3, 6}[turns[0]&3]
		}
	case "colr":
		if colours := w.at(b.start, 8); colours != nil && string(colours[:4]) == "nclx" {
			s.Primaries, s.Transfer = int(binary.BigEndian.Uint16(colours[4:])), int(binary.BigEndian.Uint16(colours[6:]))
		}
	}
}

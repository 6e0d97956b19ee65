package mediatest

import (
	"bytes"
	"embed"
	"encoding/binary"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func orient(t testing.TB, path string, orientation int) {
	t.Helper()
	content := read(t, path)
	exif := []byte("II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	exif[8+2+8] = byte(orientation)
	switch filepath.Ext(path) {
	case ".jpg":
		segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(2+6+len(exif)))
		content = slices.Insert(content, 2, slices.Concat(segment, []byte("Exif\x00\x00"), exif)...)
	case ".png":
		content = slices.Insert(content, 33, Chunk("eXIf", exif)...)
	case ".webp":
		content = extended(content, 8, nil, riff("EXIF", exif))
	case ".tif":
		content = orientTIFF(content, orientation)
	case ".avif", ".heic":
		content = orientHEIF(t, content, orientation)
	default:
		t.Fatalf("%s has no orientation", path)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func Chunk(kind string, content []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	chunk = append(append(chunk, kind...), content...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
}

func riff(kind string, content []byte) []byte {
	chunk := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(content)))
	chunk = append(chunk, content...)
	return append(chunk, make([]byte, len(content)%2)...)
}

// extended turns a simple WebP into an extended one, with chunks before and after its picture.
func extended(simple []byte, flags byte, before, after []byte) []byte {
	width, height := webpSides(simple)
	head := []byte{flags, 0, 0, 0, byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0}
	return webp(riff("VP8X", head), before, simple[12:], after)
}

func webp(chunks ...[]byte) []byte {
	return riff("RIFF", append([]byte("WEBP"), slices.Concat(chunks...)...))
}

func webpSides(simple []byte) (width, height int) {
	return int(binary.LittleEndian.Uint16(simple[26:])), int(binary.LittleEndian.Uint16(simple[28:]))
}

// AnimatedWebP makes an animation from lossy WebPs, each at the given position on a canvas.
func AnimatedWebP(t testing.TB, width, height, x, y int, pictures ...string) string {
	t.Helper()
	head := []byte{2, 0, 0, 0, byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0}
	chunks := [][]byte{riff("VP8X", head), riff("ANIM", make([]byte, 6))}
	for _, picture := range pictures {
		simple := read(t, picture)
		wide, high := webpSides(simple)
		frame := []byte{byte(x / 2), 0, 0, byte(y / 2), 0, 0, byte(wide - 1), 0, 0, byte(high - 1), 0, 0, 100, 0, 0, 0}
		chunks = append(chunks, riff("ANMF", append(frame, simple[12:]...)))
	}
	return Noise(t, webp(chunks...), 0)
}

// orientTIFF appends a copy of the first directory of a TIFF, with the orientation tag added.
func orientTIFF(content []byte, orientation int) []byte {
	little := binary.LittleEndian
	at := little.Uint32(content[4:])
	count := little.Uint16(content[at:])
	entries := slices.Clone(content[at+2:][:12*int(count)])
	tag := []byte{0x12, 1, 3, 0, 1, 0, 0, 0, byte(orientation), 0, 0, 0}
	place := 0
	for place < len(entries) && little.Uint16(entries[place:]) < 274 {
		place += 12
	}
	entries = slices.Insert(entries, place, tag...)
	content = append(content, make([]byte, len(content)%2)...)
	little.PutUint32(content[4:], uint32(len(content)))
	content = little.AppendUint16(content, count+1)
	return append(append(content, entries...), 0, 0, 0, 0)
}

// turned maps an Exif orientation to the counterclockwise quarter turns and the mirror axis of a HEIF. An axis of -1
// means that the picture is not mirrored.
var turned = map[int][2]int{1: {0, -1}, 2: {0, 1}, 3: {2, -1}, 4: {0, 0}, 5: {1, 0}, 6: {3, -1}, 7: {3, 0}, 8: {1, -1}}

// orientHEIF appends a changed copy of the "meta" box. It hides the old box instead of removing it, so that the
// pictures' offsets stay valid.
func orientHEIF(t testing.TB, content []byte, orientation int) []byte {
	t.Helper()
	at := bytes.Index(content, []byte("meta")) - 4
	meta := slices.Clone(content[at:][:binary.BigEndian.Uint32(content[at:])])
	copy(content[at+4:], "free")
	grow := func(kind string, by int) (end int) {
		start := bytes.Index(meta, []byte(kind)) - 4
		size := binary.BigEndian.Uint32(meta[start:])
		binary.BigEndian.PutUint32(meta[start:], size+uint32(by))
		return start + int(size)
	}
	turn := turned[orientation]
	added := [][]byte{{0, 0, 0, 9, 'i', 'r', 'o', 't', byte(turn[0])}}
	if turn[1] >= 0 {
		added = append(added, []byte{0, 0, 0, 9, 'i', 'm', 'i', 'r', byte(turn[1])})
	}
	properties := 0
	start := bytes.Index(meta, []byte("ipco")) + 4
	for end := start - 8 + int(binary.BigEndian.Uint32(meta[start-8:])); start < end; properties++ {
		start += int(binary.BigEndian.Uint32(meta[start:]))
	}
	for _, kind := range []string{"meta", "iprp"} {
		grow(kind, 10*len(added))
	}
	meta = slices.Insert(meta, grow("ipco", 9*len(added)), slices.Concat(added...)...)
	// The first entry is for the main picture.
	grow("ipma", len(added))
	ipma := bytes.Index(meta, []byte("ipma")) + 4
	if meta[ipma] != 0 || meta[ipma+3] != 0 {
		t.Fatal("a HEIF with long ids")
	}
	count := ipma + 8 + 2
	associated := int(meta[count])
	meta[count] += byte(len(added))
	for i := range added {
		meta = slices.Insert(meta, count+1+associated+i, byte(0x80|(properties+1+i)))
	}
	return append(content, meta...)
}

// EncodeHEIF encodes a PNG as HEIC or AVIF, depending on the extension of path.
func EncodeHEIF(t testing.TB, png, path string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "heif-enc", "-q", "90", "-o", path, png).CombinedOutput()
	if err != nil {
		t.Fatalf("heif-enc (package libheif-examples): %v: %s", err, out)
	}
}

//go:embed files/grid.avif files/cmyk.jpg files/display-p3.jpg
var files embed.FS

// File writes an embedded file that no available tool can create: display-p3.jpg, grid.avif or
// cmyk.jpg. The last two have red, green, blue and white quarters.
func File(t testing.TB, name string) string {
	t.Helper()
	content, err := files.ReadFile("files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name, content)
}

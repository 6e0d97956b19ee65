package media_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/testkit/alloctest"
)

func mp4(kind string, content ...[]byte) []byte {
	all := bytes.Join(content, nil)
	return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(8+len(all))), []byte(kind), all)
}

// However large the file, only a window of it is in memory.
func TestContainersNeedLittleMemory(t *testing.T) {
	const count = 8000
	many := func(piece []byte) []byte { return bytes.Repeat(piece, count) }
	deep := func(kind string, depth int) (inside []byte) {
		for range depth {
			inside = mp4(kind, inside)
		}
		return inside
	}
	avcC := slices.Concat([]byte("\x01\x64\x00\x1f\xff\xe1\x00\x04\x67\x64\x00\x1f"), make([]byte, 20))
	sample := mp4("avc1", make([]byte, 78), many(mp4("avcC", avcC)))
	samples := mp4("stbl", mp4("stsd", []byte{0, 0, 0, 0, 0, 0, 0, 1}, sample))
	full := func(inside []byte) []byte { return mp4("moov", mp4("trak", mp4("mdia", mp4("minf", inside)))) }
	webm := func(inside []byte) []byte {
		return slices.Concat([]byte("\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff"), inside)
	}
	tiff := slices.Concat([]byte("II*\x00\x08\x00\x00\x00"), binary.LittleEndian.AppendUint16(nil, 65535))
	for i := range count {
		tiff = append(binary.LittleEndian.AppendUint16(tiff, uint16(i)), "\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00"...)
	}
	exif := slices.Concat([]byte("\xff\xe1\xff\xfeExif\x00\x00"), tiff, make([]byte, 1<<16))[:2+0xfffe]
	for name, c := range map[string]struct{ mime, bytes string }{
		"boxes":                 {"video/mp4", string(many(mp4("free")))},
		"boxes of a movie":      {"video/mp4", string(mp4("moov", many(mp4("free"))))},
		"headers of a movie":    {"video/mp4", string(mp4("moov", many(mp4("mvhd"))))},
		"tracks":                {"video/mp4", string(mp4("moov", many(mp4("trak"))))},
		"tracks of media":       {"video/mp4", string(mp4("moov", many(mp4("trak", mp4("mdia", mp4("hdlr", make([]byte, 12)))))))},
		"headers of a track":    {"video/mp4", string(mp4("moov", mp4("trak", many(mp4("tkhd", make([]byte, 84))))))},
		"kinds":                 {"video/mp4", string(mp4("moov", mp4("trak", mp4("mdia", many(mp4("hdlr", make([]byte, 12)))))))},
		"fragments":             {"video/mp4", string(mp4("moov", mp4("mvex", many(mp4("mehd", make([]byte, 8))))))},
		"times":                 {"video/mp4", string(full(mp4("stbl", many(mp4("stts", make([]byte, 8))))))},
		"formats":               {"video/mp4", string(full(mp4("stbl", many(mp4("stsd", make([]byte, 8))))))},
		"decoders":              {"video/mp4", string(full(samples))},
		"deep":                  {"video/mp4", string(mp4("moov", deep("trak", 2000)))},
		"pictures of AVIF":      {"image/avif", string(mp4("meta", make([]byte, 4), mp4("iprp", mp4("ipco", many(mp4("ispe", make([]byte, 12)))))))},
		"properties of AVIF":    {"image/avif", string(mp4("meta", make([]byte, 4), many(mp4("iprp"))))},
		"elements":              {"video/webm", string(webm(many([]byte("\xec\x80"))))},
		"tracks of WebM":        {"video/webm", string(webm(slices.Concat([]byte("\x16\x54\xae\x6b\x01\xff\xff\xff\xff\xff\xff\xff"), many([]byte("\xae\x80")))))},
		"pictures of WebM":      {"video/webm", string(webm(slices.Concat([]byte("\x16\x54\xae\x6b\x01\xff\xff\xff\xff\xff\xff\xff\xae\x01\xff\xff\xff\xff\xff\xff\xff"), many([]byte("\xe0\x83\xb0\x81\x01")))))},
		"fields of WebM":        {"video/webm", string(webm(slices.Concat([]byte("\x16\x54\xae\x6b\x01\xff\xff\xff\xff\xff\xff\xff\xae\x01\xff\xff\xff\xff\xff\xff\xff\xe0\x01\xff\xff\xff\xff\xff\xff\xff"), many([]byte("\xb0\x81\x01")))))},
		"chunks of WebP":        {"image/webp", "RIFF\xff\xff\xff\x00WEBPVP8X\x0a\x00\x00\x00" + string(make([]byte, 10)) + string(many([]byte("ANMF\x00\x00\x00\x00")))},
		"chunks of AVI":         {"video/x-msvideo", "RIFF\xff\xff\xff\x00AVI LIST\xff\xff\x00\x00hdrlavih" + string(many([]byte("LIST\x00\x00\x00\x00")))},
		"chunks of PNG":         {"image/png", "\x89PNG\r\n\x1a\n" + string(many([]byte("\x00\x00\x00\x00IHDR\x00\x00\x00\x00")))},
		"blocks of GIF":         {"image/gif", "GIF89a\xff\xff\xff\xff\x00\x00\x00" + string(many([]byte("!\xfe\x00")))},
		"segments of JPEG":      {"image/jpeg", "\xff\xd8" + string(many([]byte("\xff\xfe\x00\x02")))},
		"Exif segments":         {"image/jpeg", "\xff\xd8" + string(many([]byte("\xff\xe1\x00\x10Exif\x00\x00MM\x00*\x00\x00\x00\x08")))},
		"Exif segments of tags": {"image/jpeg", "\xff\xd8" + string(bytes.Repeat(exif, 20))},
		"tags of TIFF":          {"image/tiff", string(tiff)},
		"scans of JPEG":         {"image/jpeg", "\xff\xd8\xff\xc0\x00\x11\x08\x00\x10\x00\x10\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00" + string(many([]byte("\xff\xda")))},
	} {
		t.Run(name, func(t *testing.T) {
			content := []byte(c.bytes)
			alloctest.Check(t, len(content), func() {
				reader := bytes.NewReader(content)
				sniff.Any(content[:min(len(content), media.SniffLen)])
				_, _ = media.Inspect(reader, int64(len(content)), c.mime)
				media.InspectJPEG(content)
			})
		})
	}
}

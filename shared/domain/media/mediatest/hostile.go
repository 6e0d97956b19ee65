package mediatest

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// Playlist creates an HLS playlist with one segment, in a file named like a video.
func Playlist(t testing.TB, uri string) string { return write(t, "playlist.mp4", playlist(uri)) }

func playlist(uri string) []byte {
	return fmt.Appendf(nil,
		"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\n%s\n#EXT-X-ENDLIST\n", uri)
}

// DisguisedPlaylist creates a file that starts with the first box of an MP4, followed by a playlist.
func DisguisedPlaylist(t testing.TB, uri string) string {
	return write(t, "disguised.mp4", append(fileType(), playlist(uri)...))
}

func fileType() []byte { return []byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42") }

// ConcatScript creates a script in FFmpeg's concat format that plays the named file.
func ConcatScript(t testing.TB, file string) string {
	return write(t, "script.mp4", fmt.Appendf(nil, "ffconcat version 1.0\nfile '%s'\n", file))
}

// SVG creates a vector graphic that embeds an image by URI.
func SVG(t testing.TB, uri string) string {
	return write(t, "picture.png", fmt.Appendf(nil, `<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64"><image xlink:href="%s" width="64" height="64"/></svg>
`, uri))
}

// SessionDescription creates an SDP file, which tells a player to receive a stream.
func SessionDescription(t testing.TB) string {
	return write(
		t, "session.mp4",
		[]byte(
			"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
		),
	)
}

func TextFile(t testing.TB) string {
	return write(t, "text.mp4", []byte(strings.Repeat("This is no video. ", 500)))
}

func Noise(t testing.TB, head []byte, size int) string {
	content := append([]byte{}, head...)
	for state := uint32(1); len(content) < size; {
		state = state*1664525 + 1013904223
		content = append(content, byte(state>>24))
	}
	return write(t, "noise", content)
}

// Truncated keeps only the given fraction (0 to 1) of a file, from the start.
func Truncated(t testing.TB, path string, fraction float64) string {
	content := read(t, path)
	return write(t, "truncated"+filepath.Ext(path), content[:int(float64(len(content))*fraction)])
}

// WithZip creates a file that some programs read as a video and others as a ZIP archive.
func WithZip(t testing.TB, path string) string {
	t.Helper()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	entry, err := writer.Create("inside.txt")
	if err == nil {
		_, err = io.WriteString(entry, "inside")
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "polyglot"+filepath.Ext(path), append(read(t, path), archive.Bytes()...))
}

// PNGHeader creates a PNG that claims the given size but has almost no picture data.
func PNGHeader(t testing.TB, width, height int) string {
	return write(t, "header.png", png(t, width, height, 8, pngChunk("IDAT", deflate(t, 16))))
}

// PNGBomb creates a PNG of a few KiB whose picture is a square with sides of the given length.
func PNGBomb(t testing.TB, side int) string {
	row := int64(1 + (side+7)/8)
	return write(t, "bomb.png", png(t, side, side, 1, pngChunk("IDAT", deflate(t, row*int64(side)))))
}

// PNGProfileBomb creates a PNG with a color profile that decompresses to the given size in bytes.
func PNGProfileBomb(t testing.TB, size int64) string {
	profile := pngChunk("iCCP", append([]byte("profile\x00\x00"), deflate(t, size)...))
	return write(t, "profile.png", png(t, 16, 16, 8, append(profile, pngChunk("IDAT", deflate(t, 17*16))...)))
}

// PNGTextBomb creates a PNG with text chunks ("zTXt" or "iTXt"). Each of them decompresses to the given size in
// bytes.
func PNGTextBomb(t testing.TB, kind string, texts int, size int64) string {
	head := "text\x00\x00"
	if kind == "iTXt" {
		head = "text\x00\x01\x00en\x00text\x00"
	}
	text := pngChunk(kind, append([]byte(head), deflate(t, size)...))
	return write(t, "text.png", png(t, 16, 16, 8, append(bytes.Repeat(text, texts), pngChunk("IDAT", deflate(t, 17*16))...)))
}

func png(t testing.TB, width, height, bits int, chunks []byte) []byte {
	t.Helper()
	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, byte(bits), 0, 0, 0, 0)
	content := append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", header)...)
	return append(append(content, chunks...), pngChunk("IEND", nil)...)
}

func pngChunk(kind string, content []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	chunk = append(append(chunk, kind...), content...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
}

// deflate returns the given number of zeros in zlib format (RFC 1950). It repeats one compressed MiB, because
// compressing all of them would take longer than any test.
func deflate(t testing.TB, size int64) []byte {
	t.Helper()
	const piece = 1 << 20
	packed := []byte{0x78, 0x9c}
	var buffer bytes.Buffer
	writer, err := flate.NewWriter(&buffer, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	pack := func(n int64) []byte {
		buffer.Reset()
		_, err := writer.Write(make([]byte, n))
		if err == nil {
			err = writer.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(buffer.Bytes())
	}
	packed = append(packed, pack(size%piece)...)
	packed = append(packed, bytes.Repeat(pack(piece), int(size/piece))...)
	buffer.Reset()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	packed = append(packed, buffer.Bytes()...)
	// This is the Adler-32 checksum of zeros.
	return binary.BigEndian.AppendUint32(packed, uint32(size%65521)<<16|1)
}

// ExternalTrack creates a QuickTime file whose picture data is in another file, the one at path. It refers to that
// file by an alias.
func ExternalTrack(t testing.TB, path string) string {
	t.Helper()
	clip := read(t, Video{Name: "external.mov", Silent: true, Codec: "mjpeg", PixelFormat: "yuvj420p"}.Make(t))
	alias := make([]byte, 10) // fields that are ignored here
	alias = append(alias, append([]byte{6}, "volume"...)...)
	alias = append(alias, make([]byte, 27-6+12)...)
	name := filepath.Base(path)
	name = name[:min(len(name), 63)]
	alias = append(alias, byte(len(name)))
	alias = append(alias, name...)
	alias = append(alias, make([]byte, 63-len(name)+16)...)
	alias = append(alias, 0, 0, 0, 0) // no directory levels in common, so that the absolute path is used
	alias = append(alias, make([]byte, 16)...)
	const absolutePath = 2
	alias = binary.BigEndian.AppendUint16(alias, absolutePath)
	alias = binary.BigEndian.AppendUint16(alias, uint16(len(path)))
	alias = append(alias, path...)
	if len(path)%2 == 1 {
		alias = append(alias, 0)
	}
	alias = append(alias, 0xff, 0xff, 0, 0)
	entry := movieBox("alis", append(make([]byte, 4), alias...))
	references := movieBox("dref", append([]byte{0, 0, 0, 0, 0, 0, 0, 1}, entry...))
	return write(t, "external.mov", replaceBox(clip, []string{"moov", "trak", "mdia", "minf", "dinf", "dref"}, references))
}

func movieBox(kind string, content []byte) []byte {
	box := binary.BigEndian.AppendUint32(nil, uint32(8+len(content)))
	return append(append(box, kind...), content...)
}

func replaceBox(boxes []byte, path []string, box []byte) []byte {
	var out []byte
	for len(boxes) >= 8 {
		size := int(binary.BigEndian.Uint32(boxes))
		kind := string(boxes[4:8])
		switch {
		case kind != path[0]:
			out = append(out, boxes[:size]...)
		case len(path) == 1:
			out = append(out, box...)
		default:
			out = append(out, movieBox(kind, replaceBox(boxes[8:size], path[1:], box))...)
		}
		boxes = boxes[size:]
	}
	return out
}

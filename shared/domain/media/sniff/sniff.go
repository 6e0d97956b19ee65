// Package sniff detects a file's type from its first bytes. It is separate from package media
// because its library slows the start of every program that links it and adds 0.3 MB.
package sniff

import (
	"bytes"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"cutroom/shared/domain/media"
)

// synonyms maps type names used by mimetype to the names that this service uses.
var synonyms = map[string]string{
	"video/x-m4v":         "video/mp4",
	"audio/mp4":           "video/mp4", // Sony cameras use a brand that is detected as audio
	"video/3gpp2":         "video/3gpp",
	"image/heic-sequence": "image/heic",
	"image/heif":          "image/heic",
	"image/heif-sequence": "image/heic",
	"image/apng":          "image/png",
	"video/matroska":      "video/x-matroska", // the registered name (RFC 9559); existing files use the older name
}

// Media looks at no more than the first media.SniffLen bytes, and reports whether the service accepts the type.
func Media(head []byte) (media.Type, bool) {
	head = head[:min(len(head), media.SniffLen)]
	if isTransportStream(head) {
		return media.Find("video/mp2t")
	}
	mime := mimetype.Detect(head).String()
	if synonym, ok := synonyms[mime]; ok {
		mime = synonym
	}
	// mimetype does not know VP8 in Ogg, and it checks only the first track, which may be sound.
	if strings.HasSuffix(mime, "/ogg") &&
		(bytes.Contains(head, []byte("\x80theora")) || bytes.Contains(head, []byte("OVP80"))) {
		mime = "video/ogg"
	}
	kind, known := media.Find(mime)
	const flags, animated = 20, 2 // in the VP8X chunk
	if mime == "image/webp" && len(head) > flags && string(head[12:16]) == "VP8X" && head[flags]&animated != 0 {
		kind.Video = true
	}
	return kind, known
}

// Any returns the type of any file, without parameters. known is false for text and for unknown bytes.
func Any(head []byte) (mime string, known bool) {
	if kind, known := Media(head); known {
		return kind.MIME, true
	}
	mime, _, _ = strings.Cut(mimetype.Detect(head[:min(len(head), media.SniffLen)]).String(), ";")
	return mime, mime != "application/octet-stream" && mime != "text/plain"
}

// isTransportStream recognizes an MPEG transport stream by its packets (ISO/IEC 13818-1, 2.4.3.2).
// Camcorders (AVCHD) and Blu-ray discs write a four-byte time before each packet.
func isTransportStream(head []byte) bool {
	const timeSize, packetSize = 4, 188
	return hasPackets(head, 0, packetSize) || hasPackets(head, timeSize, timeSize+packetSize)
}

// A packet's sync byte is the letter G, so one or two matches are not enough.
func hasPackets(head []byte, at, size int) bool {
	const packets, sync = 5, 0x47
	for i := range packets {
		if next := at + i*size; next >= len(head) || head[next] != sync {
			return false
		}
	}
	return true
}

package mediatest

import (
	"encoding/binary"
	"fmt"
	"testing"
)

type HostileFile struct {
	Name, Path string
	MIME       string
	// Refused means that nothing in the file may be decoded.
	Refused bool
}

// These texts make players open the resource %s. FFmpeg understands about half of them.
var references = []struct{ name, text string }{
	{"HLS", "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10.0,\n%s\n#EXT-X-ENDLIST\n"},
	{"HLS of variants", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1280000,RESOLUTION=64x64\n%s\n"},
	{
		"HLS with a key",
		"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-KEY:METHOD=AES-128,URI=\"%s\"\n#EXTINF:10.0,\nconcat:a\n#EXT-X-ENDLIST\n",
	},
	{
		"HLS with a header",
		"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-MAP:URI=\"%[1]s\"\n#EXTINF:10.0,\n%[1]s\n#EXT-X-ENDLIST\n",
	},
	{"HLS of joined files", "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10.0,\nconcat:%[1]s|%[1]s\n#EXT-X-ENDLIST\n"},
	{
		"HLS of a part of a file",
		"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10.0,\nsubfile,,start,0,end,64,,:%s\n#EXT-X-ENDLIST\n",
	},
	{"concat script", "ffconcat version 1.0\nfile '%s'\n"},
	{"concat script with options", "ffconcat version 1.0\nfile '%s'\noption protocol_whitelist file,http,tcp\n"},
	{
		"DASH",
		`<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S" ` +
			`minBufferTime="PT1S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" ` +
			`bandwidth="1"><BaseURL>%s</BaseURL></Representation></AdaptationSet></Period></MPD>`,
	},
	{
		"Smooth Streaming",
		`<SmoothStreamingMedia MajorVersion="2" MinorVersion="0" Duration="1"><StreamIndex Type="video" ` +
			`Url="%s"></StreamIndex></SmoothStreamingMedia>`,
	},
	{
		"IMF list",
		`<?xml version="1.0"?><CompositionPlaylist ` +
			`xmlns="http://www.smpte-ra.org/schemas/2067-3/2016"><Id>%s</Id></CompositionPlaylist>`,
	},
	{
		"SVG",
		`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64"><image ` +
			`xlink:href="%s" width="64" height="64"/></svg>`,
	},
	{
		"SVG with an entity",
		`<!DOCTYPE svg [<!ENTITY x SYSTEM "%s">]><svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>`,
	},
	{
		"session description",
		"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=%s\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
	},
	{"PLS", "[playlist]\nFile1=%s\nNumberOfEntries=1\n"},
	{"ASX", `<asx version="3.0"><entry><ref href="%s"/></entry></asx>`},
	{
		"XSPF",
		`<playlist version="1" ` +
			`xmlns="http://xspf.org/ns/0/"><trackList><track><location>%s</location></track></trackList></playlist>`,
	},
	{"RealMedia link", "rtsp://127.0.0.1:1/\n%s\n"},
	{"SubRip", "1\n00:00:00,000 --> 00:00:01,000\n<img src=\"%s\">\n"},
	{"WebVTT", "WEBVTT\n\nSTYLE\n::cue { background: url(%s) }\n\n00:00.000 --> 00:01.000\nx\n"},
	{"Advanced SubStation", "[Script Info]\nScriptType: v4.00+\n[Fonts]\nfontname: %s\n[Events]\n"},
	{"SAMI", `<SAMI><BODY><SYNC Start=0><IMG SRC="%s"></SYNC></BODY></SAMI>`},
	{"vector script", "push graphic-context\nviewbox 0 0 64 64\nimage over 0,0 0,0 '%s'\npop graphic-context\n"},
	{"PostScript", "%%!PS-Adobe-3.0 EPSF-3.0\n%%%%BoundingBox: 0 0 64 64\n(%s) run\n"},
	{"AviSynth", "FFmpegSource2(\"%s\")\n"},
}

var heads = []struct{ mime, head string }{
	{"video/mp4", "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"},
	{"video/webm", "\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm"},
	{"video/x-msvideo", "RIFF\x00\x00\x01\x00AVI LIST"},
	{"video/mp2t", "G@\x00\x10\x00\x00\xb0\x0d\x00\x01"},
	{"video/ogg", "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"},
	{"video/x-flv", "FLV\x01\x05\x00\x00\x00\x09\x00\x00\x00\x00"},
	{"image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"},
	{"image/gif", "GIF89a\x40\x00\x40\x00\x00\x00\x00"},
	{"image/jpeg", "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"},
	{"image/webp", "RIFF\x40\x00\x00\x00WEBPVP8 "},
	{"image/bmp", "BM\x40\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00"},
	{"image/tiff", "II*\x00\x08\x00\x00\x00\x01\x00"},
}

// HostileSet creates files that refer to a forbidden address or file in every known way, files with
// false headers, and broken files.
func HostileSet(t testing.TB, address, file string) []HostileFile {
	t.Helper()
	var set []HostileFile
	add := func(name, mime string, refused bool, path string) {
		set = append(set, HostileFile{name, path, mime, refused})
	}
	for i, reference := range references {
		targets := []struct{ name, target string }{{"an address", address}, {"a file", file}}
		to, head := targets[i%2], heads[i%len(heads)]
		add(reference.name+" with "+to.name, head.mime, true,
			write(t, "plain", fmt.Appendf(nil, reference.text, to.target)))
		to = targets[1-i%2]
		add(reference.name+" with "+to.name+" disguised as "+head.mime, head.mime, true,
			write(t, "disguised", fmt.Appendf([]byte(head.head), reference.text, to.target)))
	}
	for _, head := range heads {
		add("noise after the head of "+head.mime, head.mime, true, Noise(t, []byte(head.head), 32<<10))
		add("only the head of "+head.mime, head.mime, true, write(t, "head", []byte(head.head)))
	}
	return append(append(set, damaged(t)...), liars(t)...)
}

func damaged(t testing.TB) []HostileFile {
	t.Helper()
	var set []HostileFile
	for name, mime := range map[string]string{
		"a.mp4": "video/mp4", "a.mov": "video/quicktime", "a.webm": "video/webm", "a.mkv": "video/x-matroska",
		"a.avi": "video/x-msvideo",
		"a.ts":  "video/mp2t", "a.ogv": "video/ogg", "a.flv": "video/x-flv", "a.gif": "image/gif",
	} {
		path := Truncated(t, Video{Name: name, Width: 64, Height: 64, FPS: 5}.Make(t), 0.5)
		set = append(set, HostileFile{"half of " + name, path, mime, false})
	}
	for name, mime := range map[string]string{
		"a.png": "image/png", "a.jpg": "image/jpeg", "a.webp": "image/webp", "a.bmp": "image/bmp", "a.tif": "image/tiff",
		"a.avif": "image/avif",
	} {
		path := Truncated(t, Image{Name: name, Width: 64, Height: 64}.Make(t), 0.5)
		set = append(set, HostileFile{"half of " + name, path, mime, false})
	}
	return set
}

// liars creates files with false headers, and files that are much larger than they seem.
func liars(t testing.TB) []HostileFile {
	t.Helper()
	clip := Video{Width: 64, Height: 64, FPS: 5}.Make(t)
	secret := Video{
		Name: "secret.mov", Source: "color=c=red", Silent: true, Codec: "mjpeg", PixelFormat: "yuvj420p",
	}.Make(t)
	return []HostileFile{
		{"PNG of 60,000 by 60,000", PNGHeader(t, 60_000, 60_000), "image/png", true},
		{"PNG without a side", PNGHeader(t, 0, 64), "image/png", true},
		{"PNG two billion wide", PNGHeader(t, 1<<31-1, 1), "image/png", true},
		{"bomb of 12,000x12,000", PNGBomb(t, 12_000), "image/png", true},
		{"profile bomb", PNGProfileBomb(t, 900<<20), "image/png", false},
		{
			"GIF of 65,535 by 65,535",
			write(t, "a.gif", []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x08\xff;")),
			"image/gif", true,
		},
		{"BMP of two billion", write(t, "a.bmp", bmpOf(1<<31-1, 1<<30)), "image/bmp", true},
		{"BMP upside down", write(t, "a.bmp", bmpOf(1<<20, -1<<20)), "image/bmp", true},
		{
			"WebP of 16,384 by 16,384",
			write(t, "a.webp", []byte("RIFF\x16\x00\x00\x00WEBPVP8L\x09\x00\x00\x00\x2f\xff\xff\xff\x0f\x00\x00\x00\x00\x00")),
			"image/webp", true,
		},
		{
			"JPEG of 65,535 by 65,535",
			write(
				t,
				"a.jpg", []byte(
					"\xff\xd8\xff\xc0\x00\x0b\x08\xff\xff\xff\xff\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xff\xd9",
				),
			),
			"image/jpeg", true,
		},
		{"MP4 that claims hours", ClaimDuration(t, clip, 6*3600, false), "video/mp4", true},
		{"MP4 whose tracks claim hours", ClaimDuration(t, clip, 6*3600, true), "video/mp4", true},
		{
			"Matroska of a thousand pictures a second",
			Video{Name: "a.mkv", FPS: 1000, Seconds: 0.5, Width: 16, Height: 16, Silent: true}.Make(t), "video/x-matroska",
			false,
		},
		{"picture in another file", ExternalTrack(t, secret), "video/quicktime", false},
		{"MP4 and archive", WithZip(t, clip), "video/mp4", false},
	}
}

func bmpOf(width, height int32) []byte {
	header := append([]byte("BM"), make([]byte, 52)...)
	binary.LittleEndian.PutUint32(header[10:], 54)
	binary.LittleEndian.PutUint32(header[14:], 40)
	binary.LittleEndian.PutUint32(header[18:], uint32(width))
	binary.LittleEndian.PutUint32(header[22:], uint32(height))
	binary.LittleEndian.PutUint16(header[26:], 1)
	binary.LittleEndian.PutUint16(header[28:], 24)
	return header
}

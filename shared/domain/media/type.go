package media

import "strings"

// SniffLen is how many bytes from the front of a file tell its type, at most (package sniff).
const SniffLen = 3072

// Type is a kind of file that the service accepts.
type Type struct {
	// MIME is the media type, such as "video/mp4".
	MIME string
	// Extension begins with a dot, such as ".mp4".
	Extension string
	// Video types are accepted where a form asks for a video, Image types
	// where it asks for an image. A GIF is both.
	Video, Image bool
}

// types is every kind of file that is accepted. Anything else is not media, in
// particular text and files that name other files, such as playlists, scripts
// and vector graphics.
var types = []Type{
	{MIME: "video/mp4", Extension: ".mp4", Video: true},
	{MIME: "video/quicktime", Extension: ".mov", Video: true},
	{MIME: "video/3gpp", Extension: ".3gp", Video: true},
	{MIME: "video/webm", Extension: ".webm", Video: true},
	{MIME: "video/x-matroska", Extension: ".mkv", Video: true},
	{MIME: "video/x-msvideo", Extension: ".avi", Video: true},
	{MIME: "video/mp2t", Extension: ".ts", Video: true},
	{MIME: "video/ogg", Extension: ".ogv", Video: true},
	{MIME: "video/x-flv", Extension: ".flv", Video: true},
	{MIME: "image/gif", Extension: ".gif", Video: true, Image: true},
	{MIME: "image/png", Extension: ".png", Image: true},
	{MIME: "image/jpeg", Extension: ".jpg", Image: true},
	{MIME: "image/webp", Extension: ".webp", Image: true},
	{MIME: "image/avif", Extension: ".avif", Image: true},
	{MIME: "image/bmp", Extension: ".bmp", Image: true},
	{MIME: "image/tiff", Extension: ".tif", Image: true},
}

// Names returns the common names of the wanted types, such as "MP4".
func Names(wanted func(Type) bool) []string {
	var names []string
	for _, t := range types {
		if wanted(t) {
			names = append(names, strings.ToUpper(t.Extension[1:]))
		}
	}
	return names
}

// Find returns the type with the MIME type.
func Find(mime string) (Type, bool) {
	for _, t := range types {
		if t.MIME == mime {
			return t, true
		}
	}
	return Type{}, false
}

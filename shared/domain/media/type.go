package media

import "strings"

// SniffLen is the number of bytes that package sniff needs.
const SniffLen = 3072

type Type struct {
	MIME      string
	Extension string
	// A GIF is both a video and an image.
	Video, Image bool
}

// types lists the accepted file types. Files that refer to other files, such as playlists, scripts
// and vector graphics, are not accepted.
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
	{MIME: "image/heic", Extension: ".heic", Image: true},
	{MIME: "image/bmp", Extension: ".bmp", Image: true},
	{MIME: "image/tiff", Extension: ".tif", Image: true},
}

func Names(wanted func(Type) bool) []string {
	var names []string
	for _, t := range types {
		if wanted(t) {
			names = append(names, strings.ToUpper(t.Extension[1:]))
		}
	}
	return names
}

func Find(mime string) (Type, bool) {
	for _, t := range types {
		if t.MIME == mime {
			return t, true
		}
	}
	return Type{}, false
}

// Package media tells what bytes are by looking at them: the kind of file
// ([Sniff], from its first bytes) and what its header says of size and length
// ([Inspect]). It trusts neither names nor declared types, never runs a
// program, and reads little of a file, so that it serves a Lambda as well as a
// server.
package media

import "time"

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

// Info is what is known of a file's picture. Zero means unknown.
type Info struct {
	// Width and Height are in pixels, as displayed: after a rotation that the
	// file asks for.
	Width, Height int
	Duration      time.Duration
	// Audio reports whether there is an audio track.
	Audio bool
}

// Package ffmpeg runs the programs ffmpeg and ffprobe on files from strangers.
//
// Every run is fenced: the demuxer is forced by the sniffed type, the protocol
// whitelist is "file", memory, processor time, output size, pixels and frames
// are bounded, the programs run in a process group and a folder of their own
// and are gone when the call returns.
package ffmpeg

import (
	"io"
	"time"
)

// Source is one input of a command.
type Source struct {
	// Path is the file; MIME, told by its content, chooses the demuxer.
	Path, MIME string
	// Options stand before the input, such as "-ss", "1".
	Options []string
}

// Command is one run of ffmpeg. The package adds all that fences it.
type Command struct {
	// Folder is the working folder; outputs are named relative to it.
	Folder string
	Inputs []Source
	// Args stand after the inputs: filters, codecs and outputs.
	Args []string
	// Stdout takes what goes to pipe:1, when not nil.
	Stdout io.Writer
	// Progress is called with the time written so far, when not nil.
	Progress func(written time.Duration)
	// MaxOutput bounds the size of each file written, in bytes; 0 takes the
	// default.
	MaxOutput int64
}

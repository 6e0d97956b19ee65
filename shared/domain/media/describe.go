package media

import (
	"encoding/binary"
	"io"
	"math"
)

// maxTimes limits the entries read from a table of frame durations. A constant frame rate needs only one.
const maxTimes = 1024

// Describe returns a video's properties from its header. complete reports whether ffprobe would find the same
// properties by decoding. That is the case for most clips: an upright, progressive MP4 with one H.264 track in 8-bit
// 4:2:0, with square pixels and limited range, and at most one AAC track. Describe returns only errors from r.
func Describe(r io.ReaderAt, size int64, mime string) (info Info, complete bool, err error) {
	if mime != "video/mp4" && mime != "video/quicktime" {
		return Info{}, false, nil
	}
	w := &window{source: r, size: size}
	for top := range boxes(w, 0, size) {
		if top.kind == "moov" {
			info, complete = describeMovie(w, top)
			break
		}
	}
	if w.err != nil || !complete {
		return Info{}, false, w.err
	}
	return info, true, nil
}

func describeMovie(w *window, moov box) (info Info, complete bool) {
	var video, audio *track
	movie := 0.0 // in seconds
	for b := range boxes(w, moov.start, moov.end) {
		switch b.kind {
		case "mvhd":
			scale, duration := movieTime(w, b)
			if scale == 0 || movie > 0 || !upright(w, b, movieMatrix) {
				return Info{}, false
			}
			movie = float64(duration) / float64(scale)
		case "trak":
			t := readTrack(w, b)
			switch {
			case t.kind == "vide" && video == nil:
				video = &t
			case t.kind == "soun" && audio == nil:
				audio = &t
			default:
				return Info{}, false
			}
		case "mvex":
			return Info{}, false
		}
	}
	if movie == 0 || video == nil || !video.plain || audio != nil && (audio.codec != "mp4a" || audio.late) {
		return Info{}, false
	}
	return video.describe(movie, audio != nil)
}

// describe returns the properties of a track. movie is the movie's length in seconds.
func (t *track) describe(movie float64, audio bool) (info Info, complete bool) {
	shown, ok := readAVC(t.config)
	if !ok || shown.Width != t.width || shown.Height != t.height || t.frames == 0 || t.times == 0 || t.scale == 0 {
		return Info{}, false
	}
	if t.primaries != 0 && (shown.Matrix == "" || shown.Primaries != ordinaryColours[uint32(t.primaries)] ||
		shown.Transfer != ordinaryColours[uint32(t.transfer)] || shown.Matrix != ordinaryColours[uint32(t.matrix)]) {
		return Info{}, false // the header adds to the stream's properties or contradicts them
	}
	length := float64(min(t.length, t.times)) / float64(t.scale)
	// If a track is longer than its movie by more than rounding, an edit list has cut it.
	if length > movie+0.002 {
		return Info{}, false
	}
	info = shown
	// FFmpeg rounds to microseconds.
	info.Duration = Seconds(math.Round(max(movie, length)*1e6) / 1e6)
	info.FrameRate = float64(t.frames) * float64(t.scale) / float64(t.times)
	info.Audio = audio
	info.Interlaced = min(info.Width, info.Height) >= LeastFields // later frames may be interlaced
	return info, info.Duration > 0
}

type track struct {
	kind, codec string
	// plain is false if the picture has properties that Describe does not handle.
	plain bool
	// late is true if the track may begin after the others.
	late bool
	// width and height are the display size.
	width, height int
	// primaries, transfer and matrix are the color property numbers from the header, or 0.
	config                      []byte
	primaries, transfer, matrix uint16
	// scale is the number of time units per second. length is the declared duration, and times is
	// the sum of all frame durations.
	scale, length, times uint64
	frames               uint64
	seen                 map[string]bool // boxes seen that may occur only once
}

// once marks the track as not plain if a box that may occur only once is repeated. Programs differ
// in which duplicate they read.
func (t *track) once(kind string) {
	t.plain = t.plain && !t.seen[kind]
	t.seen[kind] = true
}

func readTrack(w *window, trak box) track {
	t := track{plain: true, seen: map[string]bool{}}
	for b := range boxes(w, trak.start, trak.end) {
		switch b.kind {
		case "tkhd":
			t.once(b.kind)
			t.width, t.height = trackSize(w, b)
			t.plain = t.plain && upright(w, b, trackMatrix)
		case "edts":
			t.late = !plainEdits(w, b)
			t.plain = t.plain && !t.late
		case "mdia":
			t.readMedia(w, b)
		}
	}
	return t
}

// These are the offsets of the matrix in headers with 32-bit times.
const movieMatrix, trackMatrix = 36, 40

// upright reports whether the matrix in the header neither rotates nor scales the picture.
func upright(w *window, b box, at int64) bool {
	matrix := b.start + at
	if version := w.at(b.start, 1); version == nil || version[0] > 1 {
		return false
	} else if version[0] == 1 {
		matrix += 12
	}
	content := w.at(matrix, 36)
	if content == nil || matrix+36 > b.end {
		return false
	}
	for i, want := range Upright {
		if binary.BigEndian.Uint32(content[4*i:]) != want {
			return false
		}
	}
	return true
}

// MatrixAt returns the offset of the matrix of an MP4's first track, in a header with 32-bit times, or 0.
func MatrixAt(r io.ReaderAt, size int64) int64 {
	w := &window{source: r, size: size}
	for top := range boxes(w, 0, size) {
		for trak := range boxes(w, top.start, top.end) {
			for b := range boxes(w, trak.start, trak.end) {
				if top.kind == "moov" && trak.kind == "trak" && b.kind == "tkhd" {
					return b.start + trackMatrix
				}
			}
		}
	}
	return 0
}

// Upright is the matrix of a track that is shown as stored.
var Upright = [9]uint32{1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30}

// plainEdits reports whether an edit list plays the track once, from near its start. Encoders write
// such lists because some frames are decoded earlier than they are shown.
func plainEdits(w *window, edts box) bool {
	for b := range boxes(w, edts.start, edts.end) {
		if b.kind != "elst" {
			continue
		}
		content := w.at(b.start, 20)
		if content == nil || b.end-b.start < 20 || content[0] != 0 || binary.BigEndian.Uint32(content[4:]) != 1 {
			return false
		}
		start, rate := int32(binary.BigEndian.Uint32(content[12:])), binary.BigEndian.Uint32(content[16:])
		if start < 0 || rate != 1<<16 {
			return false
		}
	}
	return true
}

func (t *track) readMedia(w *window, mdia box) {
	for b := range boxes(w, mdia.start, mdia.end) {
		switch b.kind {
		case "mdhd":
			t.once(b.kind)
			t.scale, t.length = movieTime(w, b) // the format is the same as in a movie header
		case "hdlr":
			t.kind = string(w.at(b.start+8, 4))
		case "minf":
			for inner := range boxes(w, b.start, b.end) {
				if inner.kind == "stbl" {
					t.readSamples(w, inner)
				}
			}
		}
	}
}

func (t *track) readSamples(w *window, stbl box) {
	for b := range boxes(w, stbl.start, stbl.end) {
		switch b.kind {
		case "stts":
			t.once(b.kind)
			t.readTimes(w, b)
		case "stsd":
			t.once(b.kind)
			t.readFormat(w, b)
		}
	}
}

func (t *track) readTimes(w *window, b box) {
	head := w.at(b.start, 8)
	if head == nil {
		return
	}
	entries := int64(binary.BigEndian.Uint32(head[4:]))
	if entries > maxTimes || b.start+8+8*entries > b.end {
		t.plain = false
		return
	}
	for i := range entries {
		entry := w.at(b.start+8+8*i, 8)
		if entry == nil {
			t.plain = false
			return
		}
		count := uint64(binary.BigEndian.Uint32(entry))
		lasts := count * uint64(binary.BigEndian.Uint32(entry[4:]))
		if t.times > math.MaxUint64-lasts {
			t.plain = false
			return
		}
		t.frames, t.times = t.frames+count, t.times+lasts
	}
}

func (t *track) readFormat(w *window, stsd box) {
	head := w.at(stsd.start, 8)
	if head == nil || binary.BigEndian.Uint32(head[4:]) != 1 {
		t.plain = false
		return
	}
	for entry := range boxes(w, stsd.start+8, stsd.end) {
		t.codec = entry.kind
		if entry.kind != "avc1" {
			t.plain = false
			return
		}
		const fields = 78 // size of a visual sample entry before its boxes
		content := w.at(entry.start, fields)
		if content == nil || int(binary.BigEndian.Uint16(content[24:])) != t.width ||
			int(binary.BigEndian.Uint16(content[26:])) != t.height {
			t.plain = false
			return
		}
		t.readExtensions(w, box{start: entry.start + fields, end: entry.end})
		return
	}
}

func (t *track) readExtensions(w *window, entry box) {
	for b := range boxes(w, entry.start, entry.end) {
		switch b.kind {
		case "avcC":
			t.once(b.kind)
			t.config = append([]byte(nil), w.at(b.start, int(min(b.end-b.start, 4096)))...)
		case "pasp":
			content := w.at(b.start, 8)
			t.plain = t.plain && content != nil && binary.BigEndian.Uint32(content) == binary.BigEndian.Uint32(content[4:])
		case "colr":
			content := w.at(b.start, 10)
			if content == nil || string(content[:3]) != "ncl" { // an ICC profile rather than "nclx" or "nclc"
				t.plain = false
				return
			}
			number := func(i int) uint16 { return binary.BigEndian.Uint16(content[4+2*i:]) }
			t.primaries, t.transfer, t.matrix = number(0), number(1), number(2)
		case "btrt":
			// The bit rate is irrelevant.
		default:
			t.plain = false
		}
	}
}

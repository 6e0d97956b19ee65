package media

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"time"
)

// These are the ids of the elements that this file reads (RFC 9559, section 5).
const (
	ebmlSegment       = 0x18538067
	ebmlInfo          = 0x1549A966
	ebmlTimestamp     = 0x2AD7B1
	ebmlDuration      = 0x4489
	ebmlTracks        = 0x1654AE6B
	ebmlTrackEntry    = 0xAE
	ebmlTrackType     = 0x83
	ebmlVideo         = 0xE0
	ebmlPixelWidth    = 0xB0
	ebmlPixelHeight   = 0xBA
	ebmlDisplayWidth  = 0x54B0
	ebmlDisplayHeight = 0x54BA
	ebmlDisplayUnit   = 0x54B2
	ebmlCluster       = 0x1F43B675
)

const maxElements = 4096

// element is an EBML element (RFC 8794, section 6).
type element struct {
	id         uint64
	start, end int64
}

// elements iterates over the elements in a range. If an element's size is unknown, as in live recordings, or the
// element extends beyond its parent, it ends where the parent ends.
func elements(w *window, start, end int64) iter.Seq[element] {
	return func(yield func(element) bool) {
		for range maxElements {
			id, idLength := variableInt(w, start, false)
			size, sizeLength := variableInt(w, start+idLength, true)
			content := start + idLength + sizeLength
			if idLength == 0 || sizeLength == 0 || content > end {
				return
			}
			next := end
			if unknown := uint64(1)<<(7*sizeLength) - 1; size != unknown && size < uint64(end-content) {
				next = content + int64(size)
			}
			if !yield(element{id, content, next}) || next == end {
				return
			}
			start = next
		}
	}
}

// variableInt reads a number whose first byte encodes the number's length. For an invalid number,
// length is 0. strip removes the length marker from the value.
func variableInt(w *window, at int64, strip bool) (value uint64, length int64) {
	first := w.at(at, 1)
	if first == nil || first[0] == 0 {
		return 0, 0
	}
	length = int64(bits.LeadingZeros8(first[0])) + 1
	value = number(w.at(at, int(length)))
	if strip {
		value &= 1<<(7*length) - 1
	}
	return value, length
}

func number(content []byte) uint64 {
	var padded [8]byte
	copy(padded[8-min(8, len(content)):], content)
	return binary.BigEndian.Uint64(padded[:])
}

func (e element) uint(w *window) uint64 {
	if e.end-e.start > 8 {
		return 0
	}
	return number(w.at(e.start, int(e.end-e.start)))
}

func (e element) float(w *window) float64 {
	switch e.end - e.start {
	case 4:
		return float64(math.Float32frombits(uint32(e.uint(w))))
	case 8:
		return math.Float64frombits(e.uint(w))
	}
	return 0
}

func inspectMatroska(w *window) Info {
	for top := range elements(w, 0, w.size) {
		if top.id == ebmlSegment {
			return inspectSegment(w, top)
		}
	}
	return Info{}
}

func inspectSegment(w *window, segment element) Info {
	var info Info
	for e := range elements(w, segment.start, segment.end) {
		switch e.id {
		case ebmlInfo:
			info.Duration = segmentDuration(w, e)
		case ebmlTracks:
			for track := range elements(w, e.start, e.end) {
				if track.id == ebmlTrackEntry {
					info.addTrack(w, track)
				}
			}
		case ebmlCluster:
			return info
		}
	}
	return info
}

func segmentDuration(w *window, e element) time.Duration {
	tick, ticks := 1e6, 0.0 // in nanoseconds
	for field := range elements(w, e.start, e.end) {
		switch field.id {
		case ebmlTimestamp:
			tick = float64(field.uint(w))
		case ebmlDuration:
			ticks = field.float(w)
		}
	}
	return Seconds(ticks * tick / 1e9)
}

// Only the first video track is used.
func (i *Info) addTrack(w *window, track element) {
	const video, audio = 1, 2
	kind, width, height := uint64(0), 0, 0
	for field := range elements(w, track.start, track.end) {
		switch field.id {
		case ebmlTrackType:
			kind = field.uint(w)
		case ebmlVideo:
			width, height = trackPicture(w, field)
		}
	}
	switch {
	case kind == audio:
		i.Audio = true
	case kind == video && i.Width == 0:
		i.Width, i.Height = width, height
	}
}

// trackPicture returns the picture size, with the width changed to match the display aspect ratio.
func trackPicture(w *window, e element) (width, height int) {
	const aspectKnown = 3 // display units up to this one define an aspect ratio
	var values = map[uint64]float64{}
	for field := range elements(w, e.start, e.end) {
		values[field.id] = float64(field.uint(w))
	}
	wide, high := values[ebmlPixelWidth], values[ebmlPixelHeight]
	if dw, dh := values[ebmlDisplayWidth], values[ebmlDisplayHeight]; dw > 0 && dh > 0 &&
		values[ebmlDisplayUnit] <= aspectKnown {
		wide = math.Round(high * dw / dh)
	}
	if wide > math.MaxInt32 || high > math.MaxInt32 {
		return 0, 0
	}
	return int(wide), int(high)
}

package media

import (
	"encoding/binary"
	"io"
	"iter"
	"math"
)

const maxBoxes = 4096

// box is the content of a box in the ISO base media file format (ISO/IEC 14496-12, 4.2), on which
// MP4, MOV, 3GP, AVIF and HEIC are based.
type box struct {
	kind       string
	start, end int64
}

// A box that extends beyond its parent ends where the parent ends.
func boxes(w *window, start, end int64) iter.Seq[box] {
	return func(yield func(box) bool) {
		for range maxBoxes {
			head := w.at(start, 8)
			if w.boxes++; head == nil || start+8 > end || w.boxes > maxAllBoxes {
				return
			}
			kind := string(head[4:8])
			size, headSize := int64(binary.BigEndian.Uint32(head)), int64(8)
			switch size {
			case 0: // extends to the end
				size = end - start
			case 1: // a 64-bit size follows
				long := w.at(start+8, 8)
				if long == nil {
					return
				}
				size, headSize = int64(min(binary.BigEndian.Uint64(long), math.MaxInt64)), 16
			}
			if size < headSize {
				return
			}
			next := end
			if size < end-start {
				next = start + size
			}
			if !yield(box{kind, start + headSize, next}) || next == end {
				return
			}
			start = next
		}
	}
}

// In an MP4, MOV or 3GP, the movie box may be anywhere.
func inspectMovie(w *window) Info {
	for top := range boxes(w, 0, w.size) {
		if top.kind == "moov" {
			return inspectMoov(w, top)
		}
	}
	return Info{}
}

func inspectMoov(w *window, moov box) Info {
	var info Info
	scale, duration := uint64(0), uint64(0)
	frames, seconds := 0.0, 0.0
	for b := range boxes(w, moov.start, moov.end) {
		switch b.kind {
		case "mvhd":
			scale, duration = movieTime(w, b)
		case "trak":
			t := inspectTrack(w, b)
			switch {
			case t.kind == "soun":
				info.Audio = true
			case t.kind == "vide" && info.Width == 0:
				info.Width, info.Height = t.width, t.height
				frames, seconds = t.frames, t.seconds
			}
		case "mvex":
			// In a fragmented file, the total duration may be only in this box.
			duration = 0
			for extends := range boxes(w, b.start, b.end) {
				if extends.kind == "mehd" {
					duration = fragmentsTime(w, extends)
				}
			}
		}
	}
	if scale > 0 {
		info.Duration = Seconds(float64(duration) / float64(scale))
	}
	if seconds > 0 {
		info.FrameRate = frames / max(seconds, info.Duration.Seconds())
	}
	return info
}

// movieTime reads the number of time units per second and the duration from a movie header. Each is 0 if unknown.
func movieTime(w *window, b box) (scale, duration uint64) {
	content := w.at(b.start, int(min(b.end-b.start, 32)))
	switch {
	case len(content) >= 32 && content[0] == 1:
		return uint64(binary.BigEndian.Uint32(content[20:])), known(binary.BigEndian.Uint64(content[24:]), math.MaxUint64)
	case len(content) >= 20 && content[0] == 0:
		return uint64(binary.BigEndian.Uint32(content[12:])), known(uint64(binary.BigEndian.Uint32(content[16:])),
			math.MaxUint32)
	}
	return 0, 0
}

func fragmentsTime(w *window, b box) uint64 {
	content := w.at(b.start, int(min(b.end-b.start, 12)))
	switch {
	case len(content) >= 12 && content[0] == 1:
		return known(binary.BigEndian.Uint64(content[4:]), math.MaxUint64)
	case len(content) >= 8 && content[0] == 0:
		return known(uint64(binary.BigEndian.Uint32(content[4:])), math.MaxUint32)
	}
	return 0
}

func known(value, unknown uint64) uint64 {
	if value == unknown {
		return 0
	}
	return value
}

// inspected holds a track's type, such as "vide", its display size, its frame count, and its length in seconds.
// Unknown values are 0.
type inspected struct {
	kind            string
	width, height   int
	frames, seconds float64
}

func inspectTrack(w *window, trak box) (t inspected) {
	for b := range boxes(w, trak.start, trak.end) {
		switch b.kind {
		case "tkhd":
			t.width, t.height = trackSize(w, b)
		case "mdia":
			t.readMedia(w, b)
		}
	}
	return t
}

func (t *inspected) readMedia(w *window, mdia box) {
	for b := range boxes(w, mdia.start, mdia.end) {
		switch b.kind {
		case "hdlr":
			t.kind = string(w.at(b.start+8, 4))
		case "mdhd":
			if scale, length := movieTime(w, b); scale > 0 {
				t.seconds = float64(length) / float64(scale)
			}
		case "minf":
			t.frames = countSamples(w, b)
		}
	}
}

func countSamples(w *window, minf box) (samples float64) {
	for stbl := range boxes(w, minf.start, minf.end) {
		if stbl.kind != "stbl" {
			continue
		}
		for b := range boxes(w, stbl.start, stbl.end) {
			if content := w.at(b.start+8, 4); (b.kind == "stsz" || b.kind == "stz2") && content != nil {
				samples = float64(binary.BigEndian.Uint32(content))
			}
		}
	}
	return samples
}

// trackSize returns the display size of a track, after the rotation in the header's matrix.
func trackSize(w *window, b box) (width, height int) {
	version := w.at(b.start, 1)
	if version == nil {
		return 0, 0
	}
	matrix := b.start + 40
	if version[0] == 1 {
		matrix += 12 // the times have 64 bits
	}
	content := w.at(matrix, 44)
	if content == nil || matrix+44 > b.end {
		return 0, 0
	}
	field := func(i int) uint32 { return binary.BigEndian.Uint32(content[4*i:]) }
	width, height = int(field(9)>>16), int(field(10)>>16)
	// The matrix is {a b u, c d v, x y w}. After a quarter turn, a and d are 0.
	if field(0) == 0 && field(4) == 0 && field(1) != 0 && field(3) != 0 {
		width, height = height, width
	}
	return width, height
}

// MatrixAt returns the offset of the matrix of an MP4's first track, or 0 if there is no track. The track's header
// must have 32-bit times.
func MatrixAt(r io.ReaderAt, size int64) int64 {
	w := &window{source: r, size: size}
	for top := range boxes(w, 0, size) {
		for trak := range boxes(w, top.start, top.end) {
			for b := range boxes(w, trak.start, trak.end) {
				if top.kind == "moov" && trak.kind == "trak" && b.kind == "tkhd" {
					return b.start + 40 // with 32-bit times
				}
			}
		}
	}
	return 0
}

// Upright is the matrix of a track that is shown as stored.
var Upright = [9]uint32{1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30}

// inspectHEIF reads the size of the largest picture from the image properties (ISO/IEC 23008-12).
// The other pictures are thumbnails and masks.
func inspectHEIF(w *window) Info {
	var info Info
	each := func(parent box, kind string, skip int64, visit func(box)) {
		for b := range boxes(w, parent.start+skip, parent.end) {
			if b.kind == kind {
				visit(b)
			}
		}
	}
	// "meta" is a full box, so its content follows a version and flags.
	each(box{end: w.size}, "meta", 0, func(meta box) {
		each(meta, "iprp", 4, func(iprp box) {
			each(iprp, "ipco", 0, func(ipco box) {
				each(ipco, "ispe", 0, func(ispe box) {
					content := w.at(ispe.start, 12)
					if content == nil {
						return
					}
					width, height := int(binary.BigEndian.Uint32(content[4:])), int(binary.BigEndian.Uint32(content[8:]))
					if float64(width)*float64(height) > float64(info.Width)*float64(info.Height) {
						info.Width, info.Height = width, height
					}
				})
			})
		})
	})
	return info
}

package media

import "io"

// Inspect reads what the header of a file of the type says about its picture.
// It reads headers with parsers of its own and not with image decoders: those
// refuse variants that FFmpeg decodes, or take as much memory as a file claims
// to need.
//
// What a header does not say, or says in a broken way, is zero: a file is
// refused for what its header says, not for what it leaves out. It takes at
// most a few dozen reads of 64 KiB, whatever the file is.
//
// Errors: only those of r.
func Inspect(r io.ReaderAt, size int64, mime string) (Info, error) {
	w := &window{source: r, size: size}
	var info Info
	switch mime {
	case "video/mp4", "video/quicktime", "video/3gpp":
		info = inspectMovie(w)
	case "video/webm", "video/x-matroska":
		info = inspectMatroska(w)
	case "video/x-msvideo":
		info = inspectAVI(w)
	case "image/avif":
		info = inspectAVIF(w)
	case "image/jpeg":
		info = inspectJPEG(w)
	case "image/tiff":
		info = inspectTIFF(w)
	case "image/png", "image/gif", "image/webp", "image/bmp":
		info.Width, info.Height = fixedSize(w, mime)
	}
	if w.err != nil {
		return Info{}, w.err
	}
	if info.Width <= 0 || info.Height <= 0 {
		info.Width, info.Height = 0, 0
	}
	return info, nil
}

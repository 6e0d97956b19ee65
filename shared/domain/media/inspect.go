package media

import "io"

// Inspect reads an image's or video's properties from the file's header. It does not use image decoders, because
// they reject variants that FFmpeg decodes, or allocate as much memory as a file claims to need.
//
// Missing or invalid properties are zero. Inspect makes at most a few dozen reads of 64 KiB, and
// returns only errors from r.
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
	case "image/avif", "image/heic":
		info = inspectHEIF(w)
	case "image/jpeg":
		info, _ = readJPEG(w)
	case "image/tiff":
		info = inspectTIFF(w)
	case "image/png", "image/gif", "image/webp", "image/bmp":
		info.Width, info.Height = fixedSize(w, mime)
	}
	if Sideways(inspectStill(w, mime).Orientation) {
		info.Width, info.Height = info.Height, info.Width
	}
	if w.err != nil {
		return Info{}, w.err
	}
	if info.Width <= 0 || info.Height <= 0 {
		info.Width, info.Height = 0, 0
	}
	return info, nil
}

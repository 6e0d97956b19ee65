package preview

import (
	"os"
	"path/filepath"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

const (
	resultThumbnail = "result.pam"
	inputThumbnail  = "input.pam"
	resultPoster    = "poster.jpg"
)

// capture writes a link's first picture to a file if thumbnails are wanted, and returns the next link. For a video it
// also writes the poster. A separate ffmpeg run would take longer.
func (e *edit) capture(link, file string) (next string) {
	if !e.spec.Thumbnails {
		return link
	}
	next, aside := e.split(link)
	first := e.filter("trim=end_frame=1", aside)
	picture := ffmpeg.Picture{Size: e.size, Limited: e.luma}
	picture.Alpha = file == resultThumbnail && e.transparent
	if file == resultThumbnail && e.spec.Kind != catalog.Image {
		small, large := e.split(first)
		first = small
		// Let ffmpeg encode the poster, so that megabytes of pixels need no file.
		e.write(e.filter(picture.PosterFilters(), large), resultPoster, "mjpeg", "-q:v", "4", "-threads", "1")
	}
	e.write(e.filter(picture.ThumbnailFilters(), first), file, "pam")
	return next
}

func (e *edit) write(link, file, codec string, options ...string) {
	e.captures = append(append(e.captures, "-map", link, "-frames:v", "1", "-c:v", codec), options...)
	e.captures = append(e.captures, "-f", "image2pipe", "file:"+filepath.Join(e.folder, file))
}

// readPoster returns nil if the file is missing or too large. The poster is then made from the result.
func (e *edit) readPoster() []byte {
	path := filepath.Join(e.folder, resultPoster)
	info, err := os.Stat(path)
	if err != nil || info.Size() > engine.MaxPoster {
		return nil
	}
	poster, err := os.ReadFile(path)
	if err != nil || engine.CheckPoster(poster) != nil {
		return nil
	}
	return poster
}

func (e *edit) thumbnails() engine.Thumbnails {
	blank := false
	read := func(file string) []byte {
		// If this fails, the thumbnail is made from the result.
		picture, err := ffmpeg.ReadThumbnail(filepath.Join(e.folder, file))
		if err != nil {
			return nil
		}
		blank = blank || picture.Blank
		return picture.JPEG
	}
	made := engine.Thumbnails{Result: read(resultThumbnail)}
	if e.spec.Data != nil {
		made.Input = read(inputThumbnail)
	}
	if blank && e.spec.Kind != catalog.Image {
		// The thumbnails are then made later from the files, because they need later frames.
		return engine.Thumbnails{}
	}
	if e.spec.Kind != catalog.Image {
		made.Poster = e.readPoster()
	}
	return made
}

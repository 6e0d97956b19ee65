package preview

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

const (
	// ffmpeg replaces this file with each new picture.
	previewFile = "preview.jpg"
	// In pixels.
	previewSide = 320
	// A result shorter than this, in seconds, is finished before anyone would see a preview.
	previewedFrom = 2
)

// previews is the state of a run's previews. ffmpeg writes one picture per second of video to a
// second output. The pictures come from the frames of the edit, so they need no extra pass.
type previews struct {
	// written is when the last sent preview was written. sent is when it was sent. Both are zero before the first
	// preview.
	written, sent time.Time
}

// watch adds a preview output for a link, if previews are wanted. It returns the next link and the output's arguments.
func (e *edit) watch(link string) (next string, args []string) {
	if e.spec.PreviewEvery <= 0 || e.spec.Duration.Seconds() < previewedFrom {
		return link, nil
	}
	size := e.size
	if max(size.Width, size.Height) > previewSide {
		size = catalog.Size{Width: previewSide, Height: previewSide}.Fit(size)
	}
	next, aside := e.split(link)
	small := e.filter(fmt.Sprintf("fps=1,scale=%d:%d:out_range=pc,format=yuvj420p", size.Width, size.Height), aside)
	return next, []string{
		"-map", small, "-c:v", "mjpeg", "-q:v", "5", "-threads", "1",
		// Write atomically, because the file is read while ffmpeg writes the next picture.
		"-update", "1", "-atomic_writing", "1", "-f", "image2", "file:" + filepath.Join(e.folder, previewFile),
	}
}

func (e *edit) show() {
	if e.spec.PreviewEvery <= 0 || !e.shown.sent.IsZero() && time.Since(e.shown.sent) < e.spec.PreviewEvery {
		return
	}
	path := filepath.Join(e.folder, previewFile)
	info, err := os.Stat(path)
	if err != nil || !info.ModTime().After(e.shown.written) {
		return
	}
	picture, err := os.ReadFile(path)
	if err != nil || engine.CheckPreview(picture) != nil {
		return // a failed preview must not fail the run
	}
	e.shown.written, e.shown.sent = info.ModTime(), time.Now()
	e.progress(engine.Progress{Fraction: e.reported, Stage: "edit", Preview: picture})
}

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
	poster, err := os.ReadFile(filepath.Join(e.folder, resultPoster))
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

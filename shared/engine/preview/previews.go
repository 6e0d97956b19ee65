package preview

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
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
	if longest := max(size.Width, size.Height); longest > previewSide {
		size = catalog.Size{
			Width: max(2, size.Width*previewSide/longest/2*2), Height: max(2, size.Height*previewSide/longest/2*2),
		}
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

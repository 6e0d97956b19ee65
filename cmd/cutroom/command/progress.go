package command

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"cutroom/shared/client"
)

func (s *Invocation) isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && s.Getenv("TERM") != "dumb"
}

func (s *Invocation) ShowsOut() bool { return s.isTerminal(s.Out) && !s.JSON }

func (s *Invocation) ShowsErr() bool { return s.isTerminal(s.Err) && !s.JSON }

// display shows the progress of edits as bars on a terminal, and nothing otherwise.
type display struct {
	bars *mpb.Progress
	// keep keeps the bars of completed phases on the screen.
	keep bool
	// before is the original Err, which is restored at the end.
	invocation *Invocation
	before     io.Writer
}

// newDisplay starts a display, which the caller must end.
func (s *Invocation) newDisplay(keep bool) *display {
	d := &display{keep: keep, invocation: s, before: s.Err}
	if s.ShowsErr() {
		d.bars = mpb.New(mpb.WithOutput(s.Err), mpb.WithWidth(64))
		s.Err = d.bars // messages appear above the bars
	}
	return d
}

// end waits until the last state is shown. All trackers must have ended.
func (d *display) end() {
	if d.bars != nil {
		d.bars.Wait()
	}
	d.invocation.Err = d.before
}

type tracker struct {
	display *display
	name    string
	phase   string
	bar     *mpb.Bar
	// place describes the job's position in the queue.
	place atomic.Pointer[string]
}

func (d *display) track(name string) *tracker { return &tracker{display: d, name: printable(name)} }

const scale = 1000

func (t *tracker) uploading(done, total int64) { t.show("upload", done, total) }

func (t *tracker) editing(job client.Job) {
	place := outlookOf(job, time.Now())
	t.place.Store(&place)
	t.show(job.Status, int64(job.Progress*scale), scale)
}

func (t *tracker) downloading(done, total int64) { t.show("download", done, total) }

// show updates the bar of a phase, and completes the previous phase's bar.
func (t *tracker) show(phase string, done, total int64) {
	if t.display.bars == nil {
		return
	}
	switch phase {
	case client.Pending:
		phase, done = "queue", 0
	case client.Processing, client.Completed, client.Failed:
		phase = "edit"
	}
	if phase != t.phase {
		t.complete()
		t.phase, t.bar = phase, t.newBar(phase)
	}
	if total > 0 {
		t.bar.SetTotal(total, false)
	}
	t.bar.SetCurrent(done)
}

func (t *tracker) newBar(phase string) *mpb.Bar {
	appended := decor.NewPercentage("%d")
	if phase == "upload" || phase == "download" {
		appended = decor.CountersKibiByte("% .1f / % .1f")
	}
	if phase == "queue" {
		appended = decor.Any(func(decor.Statistics) string { return *t.place.Load() })
	}
	options := []mpb.BarOption{
		mpb.PrependDecorators(decor.Name(fmt.Sprintf("%s  %-8s", t.name, printable(phase)), decor.WCSyncSpaceR)),
		mpb.AppendDecorators(appended),
	}
	if !t.display.keep || phase == "queue" {
		options = append(options, mpb.BarRemoveOnComplete())
	}
	return t.display.bars.AddBar(0, options...)
}

func (t *tracker) complete() {
	if t.bar != nil {
		t.bar.SetTotal(-1, true)
		t.bar = nil
	}
}

// end ends the tracker. After a failed edit, the last bar remains unless other edits continue.
func (t *tracker) end(err error) {
	if t.bar != nil && err != nil {
		t.bar.Abort(!t.display.keep)
		t.bar = nil
	}
	t.complete()
}

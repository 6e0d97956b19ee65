package worker_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

// photographer uses each file's first bytes as its picture.
type photographer struct {
	mu    sync.Mutex
	fails string // the first bytes of a file that cannot be decoded
	asked []int
	hold  chan struct{} // if not nil, delays each call
}

func (p *photographer) Posters(ctx context.Context, folder string, of []engine.Depicted) (posters [][]byte, err error) {
	p.mu.Lock()
	p.asked = append(p.asked, len(of))
	p.mu.Unlock()
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if _, err := os.Stat(folder); err != nil {
		return nil, err
	}
	for _, input := range of {
		content, err := os.ReadFile(input.Path)
		if err != nil {
			return nil, err
		}
		if p.fails != "" && strings.HasPrefix(string(content), p.fails) {
			return nil, errors.New("this is not a picture")
		}
		name := "small: "
		if input.Poster {
			name = "poster: "
		}
		posters = append(posters, []byte(name+string(content)))
	}
	return posters, nil
}

func (p *photographer) calls() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func with(p *photographer) func(*worker.Config) {
	return func(c *worker.Config) { c.Posters = p }
}

func (s *fixture) thumbnails(j job.Job) (pictures job.Thumbnails, ok bool) {
	s.t.Helper()
	content, ok := s.read(j.ThumbnailsBlob())
	if !ok {
		return pictures, false
	}
	pictures, err := job.DecodeThumbnails(content)
	if err != nil {
		s.t.Fatal(err)
	}
	return pictures, true
}

// Thumbnails delay neither the job's end nor the next job.
func TestCompletedJobHasThumbnails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	p := &photographer{hold: make(chan struct{})}
	first := s.submit("one", 0)
	stop := s.start(succeed, with(p))
	j := s.awaitEnd(first)
	second := s.awaitEnd(s.submit("two", 0))
	if _, made := s.thumbnails(j); made {
		t.Error("thumbnails exist before they were made")
	}
	close(p.hold)
	for id, content := range map[string]string{j.ID: "one", second.ID: "two"} {
		ended := s.awaitEnd(id)
		await.Until(t, "thumbnails of "+content, func() bool { _, made := s.thumbnails(ended); return made })
		pictures, _ := s.thumbnails(ended)
		if string(pictures.Result) != "small: edited: "+content || string(pictures.Input) != "small: "+content ||
			string(pictures.Poster) != "poster: edited: "+content {
			t.Errorf("%s: the result's is %q, the input's %q, the poster %q",
				content, pictures.Result, pictures.Input, pictures.Poster)
		}
	}
	s.wantClean(stop)
}

// depicting is an engine that also makes pictures of its result, after it receives from the channel hold.
type depicting struct {
	script
	hold chan struct{}
}

func (d depicting) Run(
	ctx context.Context, spec engine.Spec, progress func(engine.Progress),
) (engine.Outcome, error) {
	outcome, err := d.script.Run(ctx, spec, progress)
	outcome.Thumbnails = func() engine.Thumbnails {
		<-d.hold
		content, err := os.ReadFile(spec.Output) // the job's folder still exists
		if err != nil {
			return engine.Thumbnails{}
		}
		return engine.Thumbnails{Result: append([]byte("by the engine: "), content...)}
	}
	return outcome, err
}

// Only the missing pictures are made. They delay neither the job's end nor the next job.
func TestEngineThumbnailsAreReused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	p, hold := &photographer{}, make(chan struct{})
	first := s.submit("one", 0)
	stop := s.start(succeed, with(p), func(c *worker.Config) { c.Engine = depicting{succeed, hold} })
	j := s.awaitEnd(first)
	s.awaitEnd(s.submit("two", 0))
	if calls := p.calls(); len(calls) != 0 {
		t.Errorf("pictures were made before the engine returned its own: %v", calls)
	}
	close(hold)
	await.Until(t, "thumbnails", func() bool { _, made := s.thumbnails(j); return made })
	pictures, _ := s.thumbnails(j)
	if string(pictures.Result) != "by the engine: edited: one" || string(pictures.Input) != "small: one" ||
		string(pictures.Poster) != "poster: edited: one" {
		t.Errorf("the result's is %q, the input's %q, the poster %q", pictures.Result, pictures.Input, pictures.Poster)
	}
	s.wantClean(stop)
}

func TestFailedThumbnailAffectsNoOthers(t *testing.T) {
	t.Parallel()
	for fails, want := range map[string]string{"clip": "small: edited: clip", "edited": ""} {
		s := newFixture(t)
		p := &photographer{fails: fails}
		id := s.submit("clip", 0)
		stop := s.start(succeed, with(p))
		j := s.awaitEnd(id)
		s.wantClean(stop)
		pictures, made := s.thumbnails(j)
		if j.Status != job.Completed || made != (want != "") || string(pictures.Result) != want || len(pictures.Input) > 0 {
			t.Errorf("%s: the job is %s, with %v, %q and %q", fails, j.Status, made, pictures.Result, pictures.Input)
		}
		if calls := p.calls(); len(calls) != 2 {
			t.Errorf("%s: the pictures were asked for %v", fails, calls)
		}
	}
}

func TestFailedJobHasNoThumbnails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	p := &photographer{}
	id := s.submit("clip", 0)
	stop := s.start(func(context.Context, engine.Spec, func(engine.Progress)) error {
		return engine.InvalidInput(nil, "No.")
	}, with(p))
	s.wantFailure(id, job.InvalidInput, "No.")
	s.wantClean(stop)
	if calls := p.calls(); len(calls) != 0 {
		t.Errorf("pictures were made: %v", calls)
	}

	id = s.submit("clip", 0)
	stop = s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		if err := s.service.Cancel(t.Context(), id, job.CancelledFailure()); err != nil {
			t.Error(err)
		}
		return succeed(t.Context(), spec, progress)
	}, with(p), func(c *worker.Config) { c.CheckEvery, c.ProgressEvery = time.Hour, time.Hour })
	s.wantFailure(id, job.Cancelled, "")
	s.wantClean(stop)
	for entry, err := range s.blobs.(*diskblob.Store).List(t.Context(), job.Folder(id)) {
		if err != nil || entry.Name != job.InputBlob(id, "data") {
			t.Errorf("%v remains, %v", entry.Name, err)
		}
	}
}

func TestShutdownWaitsForThumbnails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	p := &photographer{hold: make(chan struct{})}
	id := s.submit("clip", 0)
	stop := s.start(succeed, with(p))
	j := s.awaitEnd(id)
	go close(p.hold)
	s.wantClean(stop)
	if _, made := s.thumbnails(j); !made {
		t.Error("the thumbnails were abandoned")
	}
}

func TestDeletedJobLeavesNoThumbnails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	p := &photographer{hold: make(chan struct{})}
	id := s.submit("clip", 0)
	stop := s.start(succeed, with(p))
	j := s.awaitEnd(id)
	if err := s.service.Purge(t.Context(), j, s.blobs); err != nil {
		t.Fatal(err)
	}
	close(p.hold)
	s.wantClean(stop)
	if _, made := s.thumbnails(j); made {
		t.Error("the thumbnails of a deleted job are kept")
	}

	// Here the pictures are stored while the job is being deleted.
	stop = s.start(succeed)
	j = s.awaitEnd(s.submit("clip", 0))
	s.wantClean(stop)
	if err := s.service.Purge(t.Context(), j, &lateBlobs{s.blobs, j}); err != nil {
		t.Fatal(err)
	}
	if _, made := s.thumbnails(j); made {
		t.Error("the late thumbnails are kept")
	}
}

// lateBlobs stores a job's thumbnails at the moment when its result is deleted.
type lateBlobs struct {
	blob.Store
	job job.Job
}

func (l *lateBlobs) Delete(ctx context.Context, name string) error {
	if name == l.job.Result.Blob {
		pictures := job.Thumbnails{Result: []byte("small")}.Encode()
		if _, err := l.Put(ctx, l.job.ThumbnailsBlob(), bytes.NewReader(pictures)); err != nil {
			return err
		}
	}
	return l.Store.Delete(ctx, name)
}

func (s *fixture) storeFile(name, content string) string {
	s.t.Helper()
	if _, err := s.blobs.Put(s.t.Context(), "files/"+name, strings.NewReader(content)); err != nil {
		s.t.Fatal(err)
	}
	return "files/" + name
}

// copiesOf adds a reference image to a job and marks its inputs as copies of stored files.
func (s *fixture) copiesOf(data, reference string) func(*job.Job) {
	return func(j *job.Job) {
		input := j.Request.Inputs["data"]
		input.File = data
		picture := job.Input{Blob: job.InputBlob(j.ID, "reference_image"), MIME: "image/png", File: reference}
		if _, err := s.blobs.Put(s.t.Context(), picture.Blob, strings.NewReader("picture")); err != nil {
			s.t.Fatal(err)
		}
		j.Request.Inputs = map[string]job.Input{"data": input, "reference_image": picture}
	}
}

// Thumbnails are made once per file. Deleted files get no thumbnails.
func TestStoredInputsGetThumbnails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	p := &photographer{}
	clip, picture := s.storeFile("file_clip", "clip"), s.storeFile("file_picture.signed", "picture")
	stop := s.start(succeed, with(p))
	ended := s.awaitEnd(s.submit("clip", 0, s.copiesOf(clip, picture)))
	want := func(of, want string) {
		t.Helper()
		await.Until(t, "thumbnail of "+of, func() bool {
			small, err := file.Thumbnail(t.Context(), s.blobs, of)
			return err == nil && string(small) == want
		})
	}
	want(clip, "small: clip")
	want(picture, "small: picture")
	if pictures, made := s.thumbnails(ended); made && string(pictures.Input) != "small: clip" {
		t.Errorf("the job's own is %q", pictures.Input)
	}
	s.awaitEnd(s.submit("clip", 0, s.copiesOf(clip, picture)))
	gone := s.awaitEnd(s.submit("clip", 0, s.copiesOf("files/file_gone", "")))
	s.wantClean(stop)
	if calls := p.calls(); len(calls) != 3 || calls[0] != 4 || calls[1] != 3 || calls[2] != 3 {
		t.Errorf("the pictures were asked for %v", calls)
	}
	if pictures, made := s.thumbnails(gone); !made || string(pictures.Input) != "small: clip" {
		t.Errorf("the thumbnails of the last job: %v, %q", made, pictures.Input)
	}
	if _, err := file.Thumbnail(t.Context(), s.blobs, "files/file_gone"); !fault.Is(err, fault.NotFound) {
		t.Errorf("thumbnail of a deleted file: %v", err)
	}
}

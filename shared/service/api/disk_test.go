package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

var (
	diskSeeds = flag.Int("disk-seeds", 3, "number of random sequences of calls of TestAllBytesOnDiskAreCounted")
	diskSeed  = flag.Uint64("disk-seed", 1, "seed of the first sequence")
)

const (
	diskQuota   = 8 << 20
	diskPending = 4
	diskUpload  = 3 << 20
	// maxCleanup is how long to wait for the worker to delete useless blobs.
	maxCleanup  = 40 * time.Second
	keptUnknown = 7 * 24 * time.Hour
)

// process simulates a server process. Once it has died, calls change nothing.
type process struct {
	// writes is how many writes are left before the process dies. If negative, it does not die.
	writes atomic.Int64
	dead   atomic.Bool
}

var errProcessDied = errors.New("the process died")

func (p *process) write() error {
	if p.writes.Add(-1) == 0 {
		p.dead.Store(true)
	}
	if p.dead.Load() {
		return errProcessDied
	}
	return nil
}

func (p *process) do(write func() error) error {
	if err := p.write(); err != nil {
		return err
	}
	return write()
}

type mortalBlobs struct {
	*diskblob.Store
	process *process
}

func (m mortalBlobs) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := m.process.write(); err != nil {
		return 0, err
	}
	return m.Store.Put(ctx, name, r)
}

func (m mortalBlobs) Copy(ctx context.Context, from, to string) error {
	return m.process.do(func() error { return m.Store.Copy(ctx, from, to) })
}

// Delete does nothing after the process has died, but returns no error, because callers would retry.
func (m mortalBlobs) Delete(ctx context.Context, name string) error {
	if m.process.write() != nil {
		return nil
	}
	return m.Store.Delete(ctx, name)
}

func (m mortalBlobs) DeleteAll(ctx context.Context, prefix string) error {
	if m.process.write() != nil {
		return nil
	}
	return m.Store.DeleteAll(ctx, prefix)
}

type mortalFiles struct {
	file.Store
	process *process
}

func (m mortalFiles) Create(ctx context.Context, f file.File, limit int64) error {
	return m.process.do(func() error { return m.Store.Create(ctx, f, limit) })
}

func (m mortalFiles) Delete(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	if err := m.process.write(); err != nil {
		return file.File{}, err
	}
	return m.Store.Delete(ctx, account, id, now)
}

func (m mortalFiles) Finalize(ctx context.Context, f file.File, now time.Time) error {
	return m.process.do(func() error { return m.Store.Finalize(ctx, f, now) })
}

func (m mortalFiles) Release(ctx context.Context, r file.Reservation) error {
	if m.process.dead.Load() {
		return nil
	}
	return m.Store.Release(ctx, r)
}

type mortalJobs struct {
	job.Store
	process *process
}

func (m mortalJobs) Accept(ctx context.Context, j job.Job, limit int, claims ...budget.Claim) error {
	return m.process.do(func() error { return m.Store.Accept(ctx, j, limit, claims...) })
}

func (m mortalJobs) Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error {
	return m.process.do(func() error { return m.Store.Fail(ctx, id, nonce, failure, now) })
}

func (m mortalJobs) Forget(ctx context.Context, id string) error {
	return m.process.do(func() error { return m.Store.Forget(ctx, id) })
}

type mortalQueue struct {
	worker.Queue
	process *process
}

func (m mortalQueue) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	delivery, err := m.Queue.Receive(ctx, lane, lease)
	return mortalDelivery{delivery, m.process}, err
}

type mortalDelivery struct {
	worker.Delivery
	process *process
}

func (m mortalDelivery) Complete(ctx context.Context, nonce string, result job.Result) error {
	if m.process.write() != nil {
		return nil
	}
	return m.Delivery.Complete(ctx, nonce, result)
}

func (m mortalDelivery) Fail(ctx context.Context, nonce string, failure job.Failure) error {
	if m.process.write() != nil {
		return nil
	}
	return m.Delivery.Fail(ctx, nonce, failure)
}

func (m mortalDelivery) Nack(ctx context.Context, delay time.Duration) error {
	if m.process.dead.Load() {
		return nil
	}
	return m.Delivery.Nack(ctx, delay)
}

type mortalRuns struct {
	worker.Runs
	process *process
}

func (m mortalRuns) Start(ctx context.Context, id, nonce string, now time.Time) (job.Job, error) {
	if m.process.dead.Load() {
		return job.Job{}, job.ErrEnded
	}
	return m.Runs.Start(ctx, id, nonce, now)
}

func (m mortalRuns) Release(ctx context.Context, id, nonce string) error {
	if m.process.dead.Load() {
		return nil
	}
	return m.Runs.Release(ctx, id, nonce)
}

type diskWorld struct {
	*world
	process *process
	random  *mathrand.Rand
	jobs    *job.Sweeper
	scratch string
	stop    func()
	clip    string
	picture string
	jpeg    []byte

	swept time.Time
	cut   int
	slow  []slowUpload
	ids   map[string][]string // file ids by account key
	made  map[string][]string // job ids by account key
	urls  []pendingURL
}

type slowUpload struct {
	writer *io.PipeWriter
	rest   string
	done   chan struct{}
}

type pendingURL struct{ url, bytes string }

// Whatever calls are made and whenever the process dies, every byte in the blob folder counts toward an account
// or a limited class. In the end, no bytes remain: see docs/contract/limits.md#bytes-on-the-disk.
func TestAllBytesOnDiskAreCounted(t *testing.T) {
	for n := range uint64(*diskSeeds) {
		t.Run(fmt.Sprint("seed ", *diskSeed+n), func(t *testing.T) {
			w := newDiskWorld(t, *diskSeed+n)
			for step := range 40 {
				did := w.step()
				if w.process.dead.Load() || w.random.IntN(12) == 0 {
					w.restart()
					did += ", and a restart"
				}
				w.holds(fmt.Sprintf("step %d, %s", step, did))
			}
			w.end()
		})
	}
}

func newDiskWorld(t *testing.T, seed uint64) *diskWorld {
	t.Helper()
	w := &diskWorld{
		process: &process{}, random: mathrand.New(mathrand.NewPCG(seed, 0)), scratch: t.TempDir(),
		ids: map[string][]string{}, made: map[string][]string{},
		clip: clip(t), picture: picture(t),
	}
	var encoded bytes.Buffer
	if err := jpeg.Encode(&encoded, image.NewGray(image.Rect(0, 0, 64, 8)), nil); err != nil {
		t.Fatal(err)
	}
	w.jpeg = encoded.Bytes()
	w.world = newWorld(t, setup{
		stored: diskQuota, pending: diskPending, maxUpload: diskUpload, uploads: 6, posters: posters{w},
		blobs: func(s blob.Store) blob.Store { return mortalBlobs{s.(*diskblob.Store), w.process} },
		store: func(s job.Store) job.Store { return mortalJobs{s, w.process} },
		shelf: func(s file.Store) file.Store { return mortalFiles{s, w.process} },
	})
	resultAge, recordAge := w.world.jobs.Ages()
	w.jobs = &job.Sweeper{
		Store: w.records, Blobs: w.blobs, Now: w.now, Logger: slog.New(slog.DiscardHandler),
		ResultAge: resultAge, RecordAge: recordAge,
	}
	w.swept = w.now()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.log.String())
		}
	})
	w.work()
	return w
}

type posters struct{ *diskWorld }

func (p posters) Posters(_ context.Context, _ string, of []engine.Depicted) (pictures [][]byte, _ error) {
	for _, one := range of {
		size := file.MaxThumbnail
		if one.Poster {
			size = engine.MaxPoster
		}
		pictures = append(pictures, append(bytes.Clone(p.jpeg), make([]byte, size-len(p.jpeg))...))
	}
	return pictures, nil
}

// editing shows previews and then writes a result or fails, depending on the prompt.
type editing struct{ *diskWorld }

func (e editing) Run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) (engine.Outcome, error) {
	for range 1 + spec.Seed%4 {
		progress(engine.Progress{Fraction: 0.5, Preview: e.jpeg})
		select {
		case <-ctx.Done():
			return engine.Outcome{}, ctx.Err()
		case <-time.After(time.Duration(spec.Seed%7) * time.Millisecond):
		}
	}
	switch spec.Seed % 9 {
	case 0:
		return engine.Outcome{}, &engine.Error{Code: job.EngineError, Message: "no"}
	case 1:
		return engine.Outcome{}, &engine.Error{Code: job.EngineError, Message: "again", Retryable: true}
	case 2:
		<-ctx.Done()
		return engine.Outcome{}, ctx.Err()
	}
	return engine.Outcome{Engine: "stub"}, os.WriteFile(spec.Output, make([]byte, 1+spec.Seed%200_000), 0o600)
}

func (w *diskWorld) work() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	running := worker.New(worker.Config{
		Queue: mortalQueue{w.queue, w.process}, Runs: mortalRuns{w.records, w.process},
		Blobs: mortalBlobs{w.blobs, w.process}, Engine: editing{w}, Catalog: w.catalog, Folder: w.scratch,
		Slots: map[job.Lane]int{job.VideoLane: 2}, Now: w.now, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Tools:  worker.Tools{Prober: blind{}, Posters: posters{w}},
		Pace: worker.Pace{
			Lease: time.Hour, PreviewEvery: time.Millisecond, ProgressEvery: 10 * time.Millisecond,
			CheckEvery: 20 * time.Millisecond,
		},
	})
	go func() {
		defer close(done)
		running.Run(ctx)
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(w.stop)
}

func (w *diskWorld) restart() {
	w.t.Helper()
	w.process.dead.Store(true)
	w.cut += 3 + len(w.slow)
	w.finishSlow(len(w.slow))
	w.stop()
	w.process.dead.Store(false)
	w.process.writes.Store(0)
	ctx := w.t.Context()
	_, opened := diskblob.Open(w.root)
	_, files := w.sweeper.SweepUnknown(ctx)
	_, jobs := w.jobs.SweepUnknown(ctx)
	err := errors.Join(opened, files, jobs,
		w.queue.RecoverLeases(ctx), w.claims.Abandon(ctx, w.now()), w.shelf.ReleaseAll(ctx))
	if err != nil {
		w.t.Fatal(err)
	}
	w.work()
}

func (w *diskWorld) sweep() {
	w.t.Helper()
	ctx, began := w.t.Context(), w.now()
	err := errors.Join(w.jobs.Expire(ctx), w.jobs.Sweep(ctx), w.sweeper.Sweep(ctx))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.blobs.DropAsideBefore(ctx, began.Add(-keptUnknown)); err != nil {
		w.t.Fatal(err)
	}
	w.swept = began
}

func (w *diskWorld) content(of string) string {
	size := w.random.IntN(64 << 10)
	if w.random.IntN(4) == 0 {
		size = w.random.IntN(diskUpload * 9 / 10)
	}
	padding := make([]byte, 16+size)
	binary.BigEndian.PutUint32(padding, uint32(len(padding)))
	copy(padding[4:], "free")
	binary.BigEndian.PutUint64(padding[8:], w.random.Uint64())
	return of + string(padding)
}

func (w *diskWorld) step() string {
	w.t.Helper()
	key := []string{studio, rival}[w.random.IntN(2)]
	one := func(ids []string) string {
		if len(ids) == 0 {
			return "none"
		}
		return ids[w.random.IntN(len(ids))]
	}
	if w.random.IntN(8) == 0 {
		w.process.writes.Store(1 + w.random.Int64N(12))
	}
	switch w.random.IntN(16) {
	case 0, 1:
		return "an upload: " + w.upload(key)
	case 2:
		return "an announcement: " + w.announceSome(key)
	case 3, 4:
		return "a signed upload: " + w.putSome()
	case 5:
		return "a slow upload: " + w.beginSlow(key)
	case 6:
		w.finishSlow(1)
		return "the end of a slow upload"
	case 7, 8:
		a := w.post("gen-2.5", key, upload("data", w.content(w.clip)), text("prompt", "x"), w.seed())
		return "a job of a form: " + w.jobOf(key, a)
	case 9, 10:
		picture := upload("reference_image", w.content(w.picture))
		a := w.post("gen-restyle-2", key, text("data", one(w.ids[key])), picture, w.seed())
		return "a job of a reference: " + w.jobOf(key, a)
	case 11:
		return w.answered("DELETE", "/v1/files/"+one(w.ids[key]), key)
	case 12:
		return w.answered("GET", "/v1/uploads/"+one(w.ids[key])+"/thumbnail", key)
	case 13:
		return w.answered("DELETE", "/v1/jobs/"+one(w.made[key]), key)
	case 14:
		return w.answered("DELETE", "/v1/jobs/"+one(w.made[key])+"?purge=true", key)
	}
	ages := []time.Duration{time.Second, time.Minute, 11 * time.Minute, time.Hour, 25 * time.Hour, 8 * 24 * time.Hour}
	age := ages[w.random.IntN(len(ages))]
	w.pass(age)
	w.sweep()
	return "sweeps after " + age.String()
}

// answered sends a request and returns its status. Only a call during which the process dies may return 500.
func (w *diskWorld) answered(method, path, key string) string {
	w.t.Helper()
	return fmt.Sprint(method, " ", path, ": ", w.checked(w.request(method, path, key, nil)).status)
}

func (w *diskWorld) checked(a answer) answer {
	w.t.Helper()
	if a.status >= 500 && !w.process.dead.Load() {
		w.t.Errorf("%d %s", a.status, a.body)
	}
	return a
}

func (w *diskWorld) seed() part { return text("seed", fmt.Sprint(w.random.Uint32()>>1)) }

func (w *diskWorld) upload(key string) string {
	w.t.Helper()
	of := []string{w.clip, w.clip, w.picture, "text"}[w.random.IntN(4)]
	life := []string{"60", "3600", "persistent", "x"}[w.random.IntN(4)]
	a := w.checked(w.send(key, upload("file", w.content(of)), text("ttl_seconds", life)))
	if a.status == http.StatusOK {
		w.ids[key] = append(w.ids[key], w.stored(a).ID)
	}
	return fmt.Sprint(a.status)
}

func (w *diskWorld) announceSome(key string) string {
	w.t.Helper()
	content := w.content(w.clip)
	a := w.checked(w.announce(key, fmt.Sprintf(`{"filename":"film.mp4","mime_type":"video/mp4","size_bytes":%d,`+
		`"ttl_seconds":3600,"md5":%q}`, len(content), hexMD5(content))))
	if a.status == http.StatusOK {
		signed := w.announced(a)
		w.ids[key] = append(w.ids[key], signed.ID)
		w.urls = append(w.urls, pendingURL{signed.Upload.URL, content})
	}
	return fmt.Sprint(a.status)
}

func (w *diskWorld) putSome() string {
	w.t.Helper()
	if len(w.urls) == 0 {
		return "none"
	}
	to := w.urls[w.random.IntN(len(w.urls))]
	switch w.random.IntN(5) {
	case 0:
		to.bytes = to.bytes[1:] + "x"
	case 1:
		to.bytes = to.bytes[:len(to.bytes)/2]
	}
	return fmt.Sprint(w.checked(w.put(to.url, strings.NewReader(to.bytes))).status)
}

func (w *diskWorld) beginSlow(key string) string {
	w.t.Helper()
	body, contentType := multiform(upload("file", w.content(w.clip)))
	method, url := http.MethodPost, w.url+"/v1/files"
	switch w.random.IntN(3) {
	case 0:
		body, contentType = multiform(text("prompt", "x"), w.seed(), upload("data", w.content(w.clip)))
		url = w.url + "/v1/jobs/gen-2.5"
	case 1:
		if len(w.urls) == 0 {
			return "none"
		}
		to := w.urls[w.random.IntN(len(w.urls))]
		method, url, body = http.MethodPut, to.url, to.bytes
	}
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(w.t.Context(), method, url, reader)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if method == http.MethodPost {
		request.Header.Set("x-api-key", key)
	}
	begun := slowUpload{writer, body[len(body)/2:], make(chan struct{})}
	go func() {
		defer close(begun.done)
		if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		reader.Close()
	}()
	io.WriteString(writer, body[:len(body)/2]) // fails if the upload is rejected
	w.slow = append(w.slow, begun)
	return method + " " + url
}

func (w *diskWorld) finishSlow(n int) {
	w.t.Helper()
	for ; n > 0 && len(w.slow) > 0; n-- {
		begun := w.slow[0]
		w.slow = w.slow[1:]
		if w.random.IntN(3) == 0 {
			begun.writer.CloseWithError(errors.New("the client left"))
		} else {
			io.WriteString(begun.writer, begun.rest)
			begun.writer.Close()
		}
		await.Receive(w.t, "the end of a slow upload", begun.done)
	}
}

func (w *diskWorld) jobOf(key string, a answer) string {
	w.t.Helper()
	if w.checked(a).status == http.StatusOK {
		w.made[key] = append(w.made[key], w.accepted(a))
	}
	return fmt.Sprint(a.status)
}

func (w *diskWorld) holds(when string) {
	w.t.Helper()
	if w.process.dead.Load() {
		return // the caller restarts the process
	}
	wrong, again := "", time.Now().Add(200*time.Millisecond)
	for end := time.Now().Add(maxCleanup); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// Check again, because a worker may be about to delete a blob, or may have stored one after the sweep.
		if wrong = w.uncounted(); wrong == "" || w.process.dead.Load() {
			return
		}
		if time.Now().After(again) {
			w.sweep()
			again = again.Add(maxCleanup / 8)
		}
	}
	w.t.Fatalf("%s: %s", when, wrong)
}

type folderOfJob struct{ inputs, results, previews, thumbnails int64 }

// uncounted describes bytes in the blob folder that no class covers. It returns "" if it finds none.
func (w *diskWorld) uncounted() (wrong string) {
	w.t.Helper()
	var stored, left int64
	seen, jobs := map[uint64]bool{}, map[string]*folderOfJob{}
	found := func(format string, a ...any) { wrong += fmt.Sprintf(format, a...) + "; " }
	for name, info := range w.sizes() {
		size, node := info.Size(), info.Sys().(*syscall.Stat_t).Ino
		kind, rest, _ := strings.Cut(name, "/")
		id, part, _ := strings.Cut(rest, "/")
		switch kind {
		case ".tmp", "files":
			if seen[node] {
				continue
			}
			seen[node] = true
			id := strings.TrimSuffix(rest, file.SignedSuffix)
			if f, err := w.shelf.PendingUpload(w.t.Context(), id); err == nil && f.Pending {
				left += size // the process died before it wrote the record
			} else {
				stored += size
			}
		case ".unknown":
			left += size
		case "thumbnails":
			if _, err := w.blobs.Head(w.t.Context(), "files/"+rest); err != nil || size > file.MaxThumbnail {
				found("%s has %d bytes (%v)", name, size, err)
			}
		case "jobs":
			if jobs[id] == nil {
				jobs[id] = &folderOfJob{}
			}
			jobs[id].add(part, size)
		default:
			found("%s belongs to no class", name)
		}
	}
	arriving, beyond := w.foldersOfJobs(jobs)
	stored, wrong = stored+arriving, wrong+beyond
	counted, err := w.shelf.StoredBytes(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if stored > counted {
		found("%d bytes are stored, but %d are counted", stored, counted)
	}
	if most := int64(w.cut) * 2 * diskUpload; left > most {
		found("deaths have left %d bytes, want at most %d", left, most)
	}
	return wrong
}

// foldersOfJobs counts the bytes in job folders and describes blobs that no class covers.
func (w *diskWorld) foldersOfJobs(folders map[string]*folderOfJob) (arriving int64, wrong string) {
	w.t.Helper()
	open := map[string]int{}
	for id, has := range folders {
		j, err := w.records.Get(w.t.Context(), id)
		if fault.Is(err, fault.NotFound) {
			arriving += has.inputs
			has.inputs = 0
			if *has != (folderOfJob{}) {
				wrong += fmt.Sprintf("job %s has no record, and %+v; ", id, *has)
			}
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if !j.Status.Terminal() {
			open[j.Account]++
		} else if has.results > 0 && j.Result != nil {
			arriving += j.Result.Size
		}
		if why := w.beyond(j, *has); why != "" {
			wrong += fmt.Sprintf("job %s, %s, %d runs, has %+v: %s; ", id, j.Status, j.Runs, *has, why)
		}
	}
	for account, n := range open {
		if n > diskPending {
			wrong += fmt.Sprintf("%s has %d open jobs; ", account, n)
		}
	}
	return arriving, wrong
}

// Files that are deleted while the method runs may be missing.
func (w *diskWorld) sizes() map[string]fs.FileInfo {
	w.t.Helper()
	all := map[string]fs.FileInfo{}
	err := filepath.WalkDir(w.root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(w.root, path)
			all[name], err = entry.Info()
			if err != nil {
				delete(all, name)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (f *folderOfJob) add(part string, size int64) {
	kind, _, _ := strings.Cut(part, "-")
	switch kind {
	case "result":
		f.results++
	case "preview":
		f.previews += size
	case "thumbnails":
		f.thumbnails += size
	default:
		f.inputs += size
	}
}

// beyond describes the limit that a job's folder exceeds, or returns "".
func (w *diskWorld) beyond(j job.Job, has folderOfJob) string {
	inputs := int64(0)
	for _, input := range j.Request.Inputs {
		inputs += input.Size
	}
	swept := j.Status.Terminal() && j.CompletedAt.Before(w.swept)
	resultAge, _ := w.world.jobs.Ages()
	switch {
	case has.inputs > inputs:
		return "more than its inputs"
	case swept && has.inputs > 0:
		return "inputs of an ended job"
	case has.results > job.MaxRuns || has.previews > job.MaxRuns*engine.MaxPreview:
		return "more than its runs make"
	case swept && (has.results > 1 || has.previews > 0):
		return "more than one result, or previews"
	case has.thumbnails > job.MaxThumbnails:
		return "too large thumbnails"
	case swept && j.Status == job.Failed && has != folderOfJob{}:
		return "blobs of a failed job"
	case swept && !w.swept.Before(j.CompletedAt.Add(resultAge)) && has != folderOfJob{}:
		return "blobs that have expired"
	}
	return ""
}

// end lets everything expire and checks that nothing remains.
func (w *diskWorld) end() {
	w.t.Helper()
	w.finishSlow(len(w.slow))
	if w.process.dead.Load() {
		w.restart()
	}
	w.process.writes.Store(0)
	for _, key := range []string{studio, rival} {
		for _, id := range w.list(key, "?limit=1000").ids() { // some never expire
			w.answered("DELETE", "/v1/files/"+id, key)
		}
	}
	w.pass(time.Hour)
	w.sweep()
	w.stop()
	for range 3 {
		w.pass(keptUnknown + 48*time.Hour)
		w.sweep()
	}
	if left := w.files(); len(left) > 0 {
		w.t.Errorf("remaining files: %q", left)
	}
	if counted, err := w.shelf.StoredBytes(w.t.Context()); err != nil || counted != 0 {
		w.t.Errorf("%d bytes are still counted (%v)", counted, err)
	}
	if left, err := os.ReadDir(w.scratch); err != nil || len(left) > 0 {
		w.t.Errorf("the scratch folder contains %v, %v", left, err)
	}
}

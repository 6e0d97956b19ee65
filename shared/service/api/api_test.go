package api_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/api"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/sqlitetest"
)

const (
	studio = "ck_studio_key"
	rival  = "ck_rival_key1"
)

const accountStreams, keyStreams = 40, 30

type setup struct {
	catalog              []byte
	maxUpload            int64
	fetch                func(ctx context.Context, url string) (io.ReadCloser, error)
	stall                time.Duration
	pending              int
	rate                 ratelimit.Rate
	origins              httpserver.Origins
	stopping, draining   context.Context
	imageWait, videoWait time.Duration
	afterWait            func(time.Duration, func()) func() bool
	workers              int
	ready                func(context.Context) error
	sessions             int
	// stored is how many bytes an account may store. 0 means no limit.
	stored int64
	// uploads and allUploads are the maximum numbers of uploads in progress, per account and in
	// total. free returns the free disk space.
	uploads, allUploads int
	free                func() (int64, error)
	blobs               func(blob.Store) blob.Store
	store               func(job.Store) job.Store
	shelf               func(file.Store) file.Store
	groups              []api.Group
	eventsOnce          bool
	warm                func(context.Context, job.Lane) (bool, error)
	signs               api.DownloadSigner
	posters             api.Posters
	verifier            api.Verifier
	maxVerified         int64
	verifyTime          time.Duration
	above               int64
}

type world struct {
	t         *testing.T
	address   string
	url       string
	root      string // root folder of the blobs
	database  string
	blobs     *diskblob.Store
	records   *sqlite.Jobs
	budgets   *sqlite.Budgets
	usage     *sqlite.Usage
	keys      *sqlite.Keys
	queue     *sqlite.Queue
	hooks     *sqlite.Webhooks
	claims    *sqlite.IdempotencyKeys
	jobs      *job.Service
	shelf     *sqlite.Files // file records
	estimates sqlite.Estimates
	live      *sqlite.Sessions
	sweeper   *file.Sweeper
	catalog   *catalog.Catalog
	later     atomic.Int64 // how far the clock is ahead, in nanoseconds
	stopped   atomic.Pointer[time.Time]
	log       *programtest.Output
}

func (w *world) now() time.Time {
	now := time.Now()
	if at := w.stopped.Load(); at != nil {
		now = *at
	}
	return now.Add(time.Duration(w.later.Load()))
}

// stopClock stops the clock, because on a slow machine a request may cross a second or minute boundary.
func (w *world) stopClock() {
	now := time.Now()
	w.stopped.Store(&now)
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, log: &programtest.Output{}, root: filepath.Join(t.TempDir(), "blobs")}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.catalog, err = catalog.Default("gen")
	if s.catalog != nil {
		w.catalog, err = catalog.Parse(s.catalog, "gen")
	}
	must(err)
	w.database = filepath.Join(t.TempDir(), "cutroom.db")
	db := sqlitetest.Open(t, w.database, sqlite.Options{Now: w.now, Free: s.free})
	w.records, w.keys, w.queue, w.hooks = db.Jobs(), db.Keys(), db.Queue(), db.Webhooks()
	w.claims, w.estimates, w.usage = db.IdempotencyKeys(), db.Estimates(), db.Usage()
	w.blobs, err = diskblob.Open(w.root)
	must(err)
	tiers := credential.Tiers{credential.DefaultTier: {
		EventStreams: accountStreams, EventStreamsPerKey: keyStreams,
		RequestsPerSecond: s.rate.PerSecond, Burst: s.rate.Burst, PendingJobs: s.pending, StoredBytes: s.stored,
		RealtimeSessions: s.sessions, Uploads: s.uploads}}
	for account, secret := range map[string]string{"studio": studio, "rival": rival} {
		w.createKey(account, secret)
	}
	var store job.Store = w.records
	if s.store != nil {
		store = s.store(store)
	}
	secret := []byte("the secret of this test")
	var blobs blob.Store = w.blobs
	if s.blobs != nil {
		blobs = s.blobs(blobs)
	}
	if s.workers == 0 {
		s.workers = 100
	}
	clock, err := boottime.Open()
	must(err)
	w.budgets = db.Budgets(clock)
	w.records.HoldIn(w.budgets)
	manager := budget.NewManager(budget.ManagerConfig{
		Store: w.budgets, Machine: clock, Now: w.now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	w.jobs = job.NewService(job.Config{
		Store: store, Now: w.now, Random: rand.Reader, Watcher: w.records, Cursors: job.NewCursors(secret),
		Workers:   map[job.Lane]int{job.VideoLane: s.workers, job.ImageLane: s.workers},
		Estimates: w.estimates, Queues: w.records, MaxLength: 5 * time.Minute,
		Budgets: manager,
	})
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	w.shelf = db.Files()
	w.live = db.Sessions(clock)
	w.sweeper = &file.Sweeper{Store: w.shelf, Blobs: w.blobs, Now: w.now, Logger: logger}
	if s.groups == nil {
		s.groups = api.AllGroups()
	}
	var shelf file.Store = w.shelf
	if s.shelf != nil {
		shelf = s.shelf(shelf)
	}
	urls := api.NewUploadURLs(secret, w.now)
	server := httpserver.New(httpserver.Config{
		Logger: logger, OnPanic: api.InternalError(s.origins), Stall: s.stall,
		Handler: api.New(api.Config{
			Catalog: w.catalog, Authenticator: credential.NewAuthenticator(db.Keys(), tiers, w.now),
			Idempotency: &idempotency.Service{Store: w.claims, Now: w.now},
			Limiter:     ratelimit.New(w.now),
			Origins:     s.origins, Stopping: s.stopping, Draining: s.draining,
			Blobs: blobs, Scratch: t.TempDir(), MaxUpload: s.maxUpload, Ready: s.ready, Logger: logger,
			JobRoutes: api.JobRoutes{
				Jobs: w.jobs, Shares: job.NewShares(secret, w.now),
				ImageWait: cmp.Or(s.imageWait, await.Max), VideoWait: s.videoWait, AfterWait: s.afterWait,
				Warm: s.warm, Downloads: s.signs, RedirectAbove: s.above, EventsOnce: s.eventsOnce, Fetch: s.fetch,
			},
			FileRoutes: api.FileRoutes{
				Files: file.NewService(file.Config{
					Store: shelf, Blobs: blobs, IDs: file.NewIDs(w.now, rand.Reader), Cursors: file.NewCursors(secret), Now: w.now,
					Extender: w.shelf,
				}),
				Intake:  &file.Intake{Reservations: shelf, Free: s.free, Most: s.allUploads, NewID: rand.Text, Now: w.now},
				Posters: s.posters, Signer: urls, UploadURLs: urls,
			},
			C2PARoutes: api.C2PARoutes{Verifier: s.verifier, MaxVerified: s.maxVerified, VerifyTime: s.verifyTime},
			AccountRoutes: api.AccountRoutes{
				Minter:  w.minter(),
				Keys:    &credential.KeyService{Store: db.Keys(), Random: rand.Reader, Now: w.now},
				Budgets: manager, AuditLog: db.Audit(),
			},
			SessionRoutes: api.SessionRoutes{Sessions: w.live},
			WebhookRoutes: api.WebhookRoutes{WebhookLog: db.Webhooks(), WebhookSecrets: webhook.NewSecrets(secret)},
		}, s.groups...),
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	w.address = listener.Addr().String()
	w.url = "http://" + w.address
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), await.Max)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := await.Receive(t, "served", served); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return w
}

func (w *world) createKey(account, secret string) {
	w.t.Helper()
	key, err := credential.NewKey(secret, account, credential.DefaultTier, "", w.now())
	if err == nil {
		err = w.keys.CreateKey(w.t.Context(), audit.Operator(key.CreatedAt), key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) detail() string {
	var body struct{ Detail any }
	if a.header.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(a.body), &body) != nil {
		return ""
	}
	text, _ := body.Detail.(string)
	return text
}

// Header fields have the format "name: value".
func (w *world) request(method, path, key string, body io.Reader, header ...string) answer {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("x-api-key", key)
	}
	for _, field := range header {
		name, value, _ := strings.Cut(field, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (w *world) get(path, key string, header ...string) answer {
	w.t.Helper()
	return w.request(http.MethodGet, path, key, nil, header...)
}

type part struct{ name, fileName, content string }

func text(name, value string) part     { return part{name: name, content: value} }
func upload(name, content string) part { return part{name, "upload", content} }

// noName stands for an empty file name.
const noName = "(none)"

// unchosen returns the part that an HTML form sends if no file was chosen.
func unchosen(name string) part { return part{name, noName, ""} }

func multiform(parts ...part) (body, contentType string) {
	var buffer strings.Builder
	writer := multipart.NewWriter(&buffer)
	for _, p := range parts {
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + p.name + `"`}}
		if p.fileName != "" {
			header = textproto.MIMEHeader{
				"Content-Disposition": {`form-data; name="` + p.name + `"; filename="` + strings.TrimSuffix(p.fileName,
					noName) + `"`},
				"Content-Type": {"application/octet-stream"},
			}
		}
		w, _ := writer.CreatePart(header) // a strings.Builder never fails
		io.WriteString(w, p.content)
	}
	writer.Close()
	return buffer.String(), writer.FormDataContentType()
}

func (w *world) post(model, key string, parts ...part) answer {
	w.t.Helper()
	body, contentType := multiform(parts...)
	return w.request(http.MethodPost, "/v1/jobs/"+model, key, strings.NewReader(body), "Content-Type: "+contentType)
}

func (w *world) accepted(a answer) string {
	w.t.Helper()
	var body map[string]string
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != http.StatusOK ||
		body["status"] != "pending" || len(body) != 2 {
		w.t.Fatalf("not accepted: %d %s", a.status, a.body)
	}
	return body["job_id"]
}

func (w *world) record(id string) job.Job {
	w.t.Helper()
	j, err := w.records.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// files lists the stored files, including files that are still arriving.
func (w *world) files() (paths []string) {
	w.t.Helper()
	err := filepath.WalkDir(w.root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(w.root, path)
			paths = append(paths, relative)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return paths
}

func (w *world) nothingStays() {
	w.t.Helper()
	eventually(w.t, "the blobs are deleted", func() bool { return len(w.files()) == 0 })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	await.Until(t, what, is)
}

func clip(t *testing.T) string { return content(t, mediatest.Video{}.Make(t)) }

func picture(t *testing.T) string { return content(t, mediatest.PNGHeader(t, 40, 30)) }

func content(t *testing.T, path string) string {
	t.Helper()
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes)
}

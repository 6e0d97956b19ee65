package realtime_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"hash/fnv"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/realtime"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/sqlitetest"
)

const (
	studio = "ck_studio_key"
	rival  = "ck_rival_key1"
)

type setup struct {
	pictures   realtime.Pictures // ffmpeg by default
	textMemory int64             // limit for an account's long messages, in bytes
	price      int64             // per second, in millionths of the currency
	limit      int               // sessions per account; 0 means no limit
	perKey     int               // sessions per key; 0 means no limit
	queue      int
	webrtc     bool
	maxRooms   int
	times      realtime.Times
	engine     engine.LiveEngine
	enhancer   realtime.Enhancer
	origins    []string
	// failing holds the error that the store returns when a slot is taken. It may be nil.
	failing *atomic.Pointer[error]
	network func(net.PacketConn) net.PacketConn // wraps the UDP port of rooms; may be nil
	// sent, if not nil, is called after every write to a connection, before the write returns.
	sent func(size int)
}

// world is a realtime server with real stores on a real port.
type world struct {
	t       *testing.T
	address string
	keys    *sqlite.Keys
	usage   *sqlite.Usage
	budgets *sqlite.Budgets
	records *sqlite.Sessions
	files   *file.Service
	blobs   *diskblob.Store
	engine  *painter
	log     *programtest.Output
	asleep  atomic.Int64 // how long the process was suspended, in nanoseconds
	// clock is the server's clock. It stops while the machine stalls, so that sessions do not seem
	// idle. later is added to it, in nanoseconds.
	clock *await.Clock
	later atomic.Int64
	stop  func() // stops the server as if the program ended
}

// machine measures uptime excluding stalls, which would otherwise end sessions.
type machine struct {
	clock  *await.Clock
	booted time.Time
}

func (m machine) Now() time.Duration { return m.clock.Now().Sub(m.booted) }

func (m machine) Boot() string { return m.booted.String() }

func (w *world) now() time.Time { return w.clock.Now().Add(time.Duration(w.later.Load())) }

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, engine: &painter{}, log: &programtest.Output{}, clock: await.NewClock(t)}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	known, err := catalog.Default("gen")
	must(err)
	for _, m := range known.Models() {
		m.SessionPrice = s.price
	}
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	clock, err := boottime.Open()
	must(err)
	uptime := machine{w.clock, w.clock.Now()}
	w.keys, w.usage, w.records = db.Keys(), db.Usage(), db.Sessions(uptime)
	w.blobs, err = diskblob.Open(filepath.Join(t.TempDir(), "blobs"))
	must(err)
	w.files = file.NewService(file.Config{
		Store: db.Files(), Blobs: w.blobs, IDs: file.NewIDs(time.Now, rand.Reader),
		Cursors: file.NewCursors([]byte("secret")), Now: time.Now,
	})
	for account, secret := range map[string]string{"studio": studio, "rival": rival} {
		key, err := credential.NewKey(secret, account, credential.DefaultTier, "", time.Now())
		must(err)
		must(w.keys.CreateKey(ctx, audit.Operator(key.CreatedAt), key))
	}
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	writer := usage.NewWriter(usage.WriterConfig{Store: w.usage, NewID: rand.Text, Logger: logger})
	w.budgets = db.Budgets(clock)
	manager := budget.NewManager(budget.ManagerConfig{
		Store: w.budgets, Machine: clock, Now: w.now, NewID: rand.Text, Logger: logger,
	})
	if s.engine == nil {
		s.engine = w.engine
	}
	if s.pictures == nil {
		s.pictures = pictures(t)
	}
	// On a busy machine, starting a decoder and sending may take long.
	s.times.Image, s.times.Decode, s.times.Write = await.Max, await.Max, cmp.Or(s.times.Write, await.Max)
	s.times.Message = cmp.Or(s.times.Message, await.Max)
	if s.times.Ping == 0 {
		// The tests' clients answer pings only while they read.
		s.times.Ping = time.Hour
		// Some tests set the clock ahead by a day.
		s.times.Idle = cmp.Or(s.times.Idle, 48*time.Hour)
	}
	if s.failing == nil {
		s.failing = &atomic.Pointer[error]{}
	}
	origins := httpserver.Origins(s.origins)
	var video *realtime.WebRTC
	if s.webrtc {
		video = liveVideo(t, s.network, logger)
		video.MaxRooms = s.maxRooms
	}
	server := realtime.New(realtime.Config{
		WebRTC:  video,
		Catalog: known,
		Authenticator: credential.NewAuthenticator(
			w.keys, credential.Tiers{credential.DefaultTier: {RealtimeSessions: s.limit, RealtimeSessionsPerKey: s.perKey,
				RealtimeQueue: s.queue}},
			w.now,
		),
		Keys: w.keys,
		Sessions: session.NewInstance(session.Config{
			Store: unsteady{w.records, s.failing}, NewID: rand.Text, Logger: logger,
			Uptime: func() time.Duration { return uptime.Now() + time.Duration(w.asleep.Load()) },
		}),
		Files: w.files, Blobs: w.blobs, Usage: writer, Budgets: manager, Engine: s.engine, Pictures: s.pictures, TextMemory: s.textMemory,
		Enhancer: s.enhancer,
		Origins:  origins, Times: s.times, Now: w.now,
		Logger: logger,
	})
	mux := http.NewServeMux()
	for _, path := range realtime.Paths() {
		mux.Handle(path, server)
	}
	surface := httpserver.New(httpserver.Config{Logger: logger, Handler: mux})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	if s.sent != nil {
		listener = watchedListener{listener, s.sent}
	}
	w.address = listener.Addr().String()

	running, end := context.WithCancel(context.Background())
	writing, endWriting := context.WithCancel(context.Background())
	var sessions, rest sync.WaitGroup
	sessions.Go(func() { server.Run(running) })
	rest.Go(func() { writer.Run(writing) })
	rest.Go(func() { manager.Run(writing) })
	rest.Go(func() {
		if err := surface.Serve(listener); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	w.stop = sync.OnceFunc(func() {
		end()
		sessions.Wait()
		shutdown, cancel := context.WithTimeout(context.Background(), await.Max)
		defer cancel()
		if err := surface.Shutdown(shutdown); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		endWriting()
		rest.Wait()
	})
	t.Cleanup(w.stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", w.log)
		}
	})
	w.ready()
	return w
}

var tools = sync.OnceValues(func() (*ffmpeg.Tools, error) {
	known, err := catalog.Default("gen")
	if err != nil {
		return nil, err
	}
	return ffmpeg.Find(context.Background(), known.Limits)
})

func pictures(t *testing.T) *ffmpeg.Tools {
	t.Helper()
	found, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// watchedListener accepts connections and calls the function sent after each write to them.
type watchedListener struct {
	net.Listener
	sent func(size int)
}

func (l watchedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return watchedConn{conn, l.sent}, err
}

type watchedConn struct {
	net.Conn
	sent func(size int)
}

func (c watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent(n)
	return n, err
}

// unsteady is a store that fails to take slots while its field failing is set.
type unsteady struct {
	session.Store
	failing *atomic.Pointer[error]
}

func (u unsteady) Take(ctx context.Context, slot session.Slot, limit int) error {
	if err := u.failing.Load(); err != nil {
		return *err
	}
	return u.Store.Take(ctx, slot, limit)
}

// ready waits until the instance has its first lease.
func (w *world) ready() {
	w.t.Helper()
	await.Until(w.t, "sessions can be opened", func() bool {
		c := w.dial("gen-2.5", rival)
		defer c.drop()
		return c.next().Type == "session_started"
	})
	w.active("rival", 0)
}

func (w *world) active(account string, want int) {
	w.t.Helper()
	await.Until(w.t, "the number of sessions", func() bool {
		n, err := w.records.Active(w.t.Context(), account)
		if err != nil {
			w.t.Fatal(err)
		}
		return n == want
	})
}

// newKey creates a key of account studio with some changes, and returns its secret.
func (w *world) newKey(secret string, changes ...func(*credential.Key)) string {
	w.t.Helper()
	key, err := credential.NewKey(secret, "studio", credential.DefaultTier, "", time.Now())
	if err == nil {
		for _, change := range changes {
			change(&key)
		}
		err = w.keys.CreateKey(w.t.Context(), audit.Operator(key.CreatedAt), key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *world) revoke(secret string) {
	w.t.Helper()
	key, err := w.keys.FindKey(w.t.Context(), credential.HashOf(secret))
	if err == nil {
		_, err = w.keys.RevokeKey(w.t.Context(), audit.Operator(time.Now()), key.ID)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mint(key string, scope credential.Scope, lifetime time.Duration) string {
	return w.issue(key, scope, lifetime).Secret
}

// issue issues a client token for a key and returns both forms of the token.
func (w *world) issue(key string, scope credential.Scope, lifetime time.Duration) credential.Issued {
	w.t.Helper()
	found, err := w.keys.FindKey(w.t.Context(), credential.HashOf(key))
	if err != nil {
		w.t.Fatal(err)
	}
	minter := credential.Minter{Store: w.keys, Random: rand.Reader, Now: time.Now, Secret: func(context.Context) ([]byte, error) {
		return []byte("the secret of the signing keys"), nil
	}}
	issued, _, err := minter.Mint(w.t.Context(), found, credential.TokenRequest{Scope: scope, Lifetime: lifetime})
	if err != nil {
		w.t.Fatal(err)
	}
	return issued
}

func (w *world) store(account string, content []byte) string {
	w.t.Helper()
	name, err := w.files.NewBlob()
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.blobs.Put(w.t.Context(), name, bytes.NewReader(content)); err != nil {
		w.t.Fatal(err)
	}
	f, err := w.files.Create(w.t.Context(), file.File{
		Account: account, Key: "key_0123456789ab", Filename: "a", MIME: "application/octet-stream",
		Size: int64(len(content)), MD5: "d41d8cd98f00b204e9800998ecf8427e", Blob: name,
	}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return f.ID
}

// painter is an engine whose frames have the color of the reference image or, if there is none, of the prompt.
type painter struct {
	before atomic.Pointer[func(ctx context.Context)] // called before each edit; may be nil
}

func (p *painter) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &canvas{painter: p, color: colorOf("")}, nil
}

type canvas struct {
	painter *painter
	mu      sync.Mutex
	color   color.RGBA
	image   *color.RGBA
}

func colorOf(prompt string) color.RGBA {
	h := fnv.New32a()
	h.Write([]byte(prompt))
	v := h.Sum32()
	return color.RGBA{uint8(v) | 1, uint8(v >> 8), uint8(v >> 16), 255}
}

func (c *canvas) SetPrompt(_ context.Context, prompt string) (engine.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.color = colorOf(prompt)
	return engine.Outcome{Engine: "canvas", Understood: []string{}, Notice: prompt}, nil
}

func (c *canvas) SetImage(_ context.Context, sent *engine.ReferenceImage) (engine.Outcome, error) {
	outcome := engine.Outcome{Engine: "canvas", Understood: []string{"image"}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.image = nil
	if sent != nil {
		middle := sent.Pixels[4*(sent.Size.Height/2*sent.Size.Width+sent.Size.Width/2):]
		c.image = &color.RGBA{middle[0], middle[1], middle[2], 255}
	}
	return outcome, nil
}

func (c *canvas) Edit(ctx context.Context, picture *engine.Picture) (*engine.Picture, error) {
	if before := c.painter.before.Load(); before != nil {
		(*before)(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	fill := c.color
	if c.image != nil {
		fill = *c.image
	}
	c.mu.Unlock()
	painted := filled(picture.Rect, fill)
	painted.Narrow = picture.Narrow
	return painted, nil
}

func filled(bounds image.Rectangle, fill color.RGBA) *engine.Picture {
	picture := &engine.Picture{YCbCr: *image.NewYCbCr(bounds, image.YCbCrSubsampleRatio420)}
	luma, cb, cr := color.RGBToYCbCr(fill.R, fill.G, fill.B)
	for i := range picture.Y {
		picture.Y[i] = luma
	}
	for i := range picture.Cb {
		picture.Cb[i], picture.Cr[i] = cb, cr
	}
	return picture
}

func (c *canvas) Close() {}

func plain(width, height int, fill color.Color) []byte {
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(fill), image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: 95}); err != nil {
		panic(err) // writing to a buffer does not fail
	}
	return out.Bytes()
}

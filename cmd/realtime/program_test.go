package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/session"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

var program string

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait for leases to expire, so it makes sense to run more of them than there are processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) // package testing defines this flag
	}
	os.Exit(programtest.Main(m, "cutroom/cmd/realtime", &program))
}

const (
	key     = "ck_realtime_key"
	account = "studio"
)

// fleet is a session store that several instances share.
type fleet struct {
	t        *testing.T
	settings []string
	sessions session.Store
}

// newFleet makes a data folder that contains an account with the given session limit.
func newFleet(t *testing.T, limit int) *fleet {
	t.Helper()
	data := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	clock, err := boottime.Open()
	if err != nil {
		t.Fatal(err)
	}
	makeKey(t, db.Keys())
	return &fleet{t, []string{"CUTROOM_DATA=" + data, tiersOf(t, limit)}, db.Sessions(clock)}
}

// tiersOf returns the setting that sets an account's session limit.
func tiersOf(t *testing.T, limit int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiers.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "default: {realtime_sessions: %d, realtime_line: 200}\n", limit), 0o600); err != nil {
		t.Fatal(err)
	}
	return "CUTROOM_TIERS=" + path
}

func makeKey(t *testing.T, keys credential.Store) credential.Key {
	t.Helper()
	record, err := credential.NewKey(key, account, credential.DefaultTier, "", time.Now())
	if err == nil {
		err = keys.CreateKey(t.Context(), audit.Operator(record.CreatedAt), record)
	}
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func (f *fleet) active() int {
	f.t.Helper()
	n, err := f.sessions.Active(context.Background(), account)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// becomes waits until the quota shows the wanted number of sessions in use.
func (f *fleet) becomes(want int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%d sessions are counted", want), func() bool { return f.active() == want })
}

type instance struct {
	cmd     *exec.Cmd
	address string
	ended   chan error
}

// start starts an instance until the test ends, and waits until it serves requests.
func (f *fleet) start() *instance {
	f.t.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(append(os.Environ(), "CUTROOM_ADDR=127.0.0.1:0"), f.settings...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	i := &instance{cmd: cmd, ended: make(chan error, 1)}
	lines := bufio.NewScanner(out)
	for i.address == "" && lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			i.address = line.Address
		}
	}
	// trouble collects errors, which are logged if the test fails.
	var trouble strings.Builder
	go func() {
		for lines.Scan() {
			if !strings.Contains(lines.Text(), `"level":"INFO"`) {
				trouble.WriteString(lines.Text() + "\n")
			}
		}
		i.ended <- cmd.Wait()
		close(i.ended)
	}()
	f.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		i.kill()
		if f.t.Failed() {
			f.t.Logf("the log of %s:\n%s%s", i.address, &trouble, &stderr)
		}
	})
	if i.address == "" {
		f.t.Fatalf("the instance did not start: %s", &stderr)
	}
	eventually(f.t, "the instance is ready", func() bool {
		response, err := http.Get("http://" + i.address + "/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return i
}

func (f *fleet) failsToStart(more ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), await.Max)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = slices.Concat(os.Environ(), []string{"CUTROOM_ADDR=127.0.0.1:0"}, f.settings, more)
	text, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		f.t.Errorf("it starts: %v", err)
	}
	return string(text)
}

func (i *instance) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := i.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if signal == syscall.SIGSTOP {
		eventually(t, "the instance has stopped", i.hasStopped)
	}
}

// hasStopped reports whether all of the program's threads have stopped after a SIGSTOP, which reaches them one by
// one. If the system does not report their state, it waits for a second instead.
func (i *instance) hasStopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", i.cmd.Process.Pid))
	if len(threads) == 0 {
		time.Sleep(time.Second)
	}
	for _, thread := range threads {
		// The state follows the name in parentheses.
		state, err := os.ReadFile(thread)
		if err == nil && !bytes.Contains(state, []byte(") T ")) {
			return false
		}
	}
	return true
}

func (i *instance) kill() {
	_ = i.cmd.Process.Kill() // fails if it has ended already
	<-i.ended
}

// client is a session that reads continuously, and thus answers pings.
type client struct {
	*websocket.Conn
	frames chan struct{}
	// gone is closed when the connection has ended. err is the reason.
	gone chan struct{}
	err  error

	mu   sync.Mutex
	said strings.Builder
}

func (c *client) texts() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

func newClient(conn *websocket.Conn) *client {
	c := &client{Conn: conn, frames: make(chan struct{}, 100), gone: make(chan struct{})}
	go func() {
		defer close(c.gone)
		for {
			kind, message, err := conn.Read(context.Background())
			if err != nil {
				c.err = err
				return
			}
			if kind == websocket.MessageBinary {
				c.frames <- struct{}{}
				continue
			}
			c.mu.Lock()
			c.said.Write(message)
			c.mu.Unlock()
		}
	}()
	return c
}

var errFull = errors.New("Concurrent session limit reached.")

// errNotNow means that the store stalled for longer than an instance waits.
var errNotNow = errors.New("No session can be opened now. Try again.")

// connect opens a session on the instance. It retries if the response asks it to. If the session
// limit is reached, it returns errFull.
func connect(ctx context.Context, i *instance) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	c, err := connectOnce(ctx, i)
	for errors.Is(err, errNotNow) && ctx.Err() == nil {
		c, err = connectOnce(ctx, i)
	}
	return c, err
}

// headerTime is how long an instance waits for a request's header. An instance that stalls for this
// long closes the connection without responding.
const headerTime = 10 * time.Second

// dial opens a connection. It retries if the instance or its store stalled.
func dial(ctx context.Context, i *instance, query string) (*websocket.Conn, error) {
	for {
		begun := time.Now()
		conn, answer, err := websocket.Dial(ctx, "ws://"+i.address+"/v1/stream?model=gen-2.5&api_key="+key+query, nil)
		isBusy := answer != nil && answer.StatusCode == http.StatusServiceUnavailable
		hasHungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
		if err == nil || !isBusy && !(hasHungUp && time.Since(begun) >= headerTime) {
			return conn, err
		}
		if !clock.Wait(ctx, 50*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

func connectOnce(ctx context.Context, i *instance) (*client, error) {
	conn, err := dial(ctx, i, "")
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1)
	_, first, err := conn.Read(ctx)
	if err == nil && strings.Contains(string(first), `"session_started"`) {
		return newClient(conn), nil
	}
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	for _, reason := range []error{errFull, errNotNow} {
		if closedFor(err, reason) {
			return nil, reason
		}
	}
	return nil, fmt.Errorf("no session: %s: %w", first, err)
}

func closedFor(err, reason error) bool {
	var closed websocket.CloseError
	return errors.As(err, &closed) && closed.Code == websocket.StatusTryAgainLater && closed.Reason == reason.Error()
}

func (f *fleet) open(i *instance) *client {
	f.t.Helper()
	c, err := connect(f.t.Context(), i)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.CloseNow() })
	return c
}

func (f *fleet) isFull(i *instance) {
	f.t.Helper()
	if c, err := connect(f.t.Context(), i); !errors.Is(err, errFull) {
		if c != nil {
			c.CloseNow()
		}
		f.t.Errorf("a session over the limit: %v", err)
	}
}

func (c *client) leave() { _ = c.Close(websocket.StatusNormalClosure, "") }

var picture = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, 64, 32)), nil); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return out.Bytes()
})

func (c *client) show(ctx context.Context) error {
	return c.Write(ctx, websocket.MessageBinary, picture())
}

func (c *client) await(ctx context.Context) error {
	select {
	case <-c.frames:
		return nil
	case <-c.gone:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *client) edit(t *testing.T) {
	t.Helper()
	ctx := await.Context(t)
	if err := errors.Join(c.show(ctx), c.await(ctx)); err != nil {
		t.Errorf("the frame was not edited: %v", err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	await.Until(t, what, condition)
}

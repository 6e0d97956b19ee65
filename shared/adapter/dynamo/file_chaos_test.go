package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/fakeaws"
)

// storageChaos runs concurrent uploads and deletes in one account. Each request waits until it is
// selected. Then it arrives, gets lost, loses its response, arrives twice, or runs into a conflict.
type storageChaos struct {
	*testing.T
	courier
	cloud  *fakeaws.Cloud
	passed atomic.Int64
	failed bool

	plain  *dynamodb.Client
	files  *dynamo.Files
	calls  []*storageCall
	stored []file.File
	// The reservations in held may no longer exist. The files in promised may be pending, stored or deleted.
	held     []file.Reservation
	promised []file.File
	number   int
	counts   map[string]int
}

type storageCall struct {
	what         string
	bytes, limit int64
	// ended lists entries that had ended when the call started. They cannot block it.
	ended map[string]bool
	// promise reports whether the call adds a pending file.
	promise bool
	// may means that the call may be rejected, because too little storage was left at some time while it ran.
	may bool
}

const mostPromises = 2

func (c *storageCall) String() string { return c.what }

var chaosBegins = time.Unix(1_800_000_000, 0).UTC()

func (c *storageChaos) Now() time.Time            { return chaosBegins.Add(time.Duration(c.passed.Load())) }
func (*storageChaos) Turn() int64                 { return 0 }
func (*storageChaos) After(time.Duration, func()) {}

// arrive performs the request and checks that it did not exceed the limits of its call.
func (c *storageChaos) arrive(ctx context.Context, request func()) {
	call, _ := ctx.Value(callKey{}).(*storageCall)
	c.mu.Lock()
	defer c.mu.Unlock()
	before, _ := c.state()
	request()
	bytes, promises := c.state()
	if call != nil && bytes > before && call.limit > 0 && bytes > call.limit || promises > mostPromises {
		c.fail("%v made it %d bytes and %d promises", call, bytes, promises)
	}
	c.allow(bytes, promises)
}

// state returns the stored bytes and the pending files. It also checks the recorded sums.
func (c *storageChaos) state() (bytes, promises int64) {
	var sums map[string]types.AttributeValue
	for _, i := range c.cloud.DynamoDB.Items("files", "acme") {
		switch id := textIn(i, "id"); {
		case id == "storage":
			sums = i
		case strings.HasPrefix(id, "promise/"):
			bytes, promises = bytes+num(i, "promise_bytes"), promises+1
		case !strings.HasPrefix(id, "file_"):
			bytes += num(i, "size_bytes")
		}
	}
	if num(sums, "stored_bytes") != bytes || num(sums, "promises") != promises {
		c.fail("%d bytes and %d promises are stored, the sums are %s", bytes, promises, show(sums))
	}
	return bytes, promises
}

func (c *storageChaos) allow(bytes, promises int64) {
	for _, call := range c.calls {
		ended, broken := c.counted(call.ended)
		full := call.limit > 0 && bytes-ended+call.bytes > call.limit
		call.may = call.may || full || call.promise && promises-broken >= mostPromises
	}
}

func (c *storageChaos) fail(format string, args ...any) {
	if !c.failed {
		c.Errorf("%s\n%s", fmt.Sprintf(format, args...), c.recent())
	}
	c.failed = true
}

// do runs a call concurrently with other calls.
func (c *storageChaos) do(call *storageCall, run func(context.Context, *dynamo.Files) error, done func(err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.ended = c.ended()
	c.calls = append(c.calls, call)
	c.allow(c.state())
	go func() {
		err := run(context.WithValue(c.Context(), callKey{}, call), c.files)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = slices.DeleteFunc(c.calls, func(other *storageCall) bool { return other == call })
		outcome := string(fault.CodeOf(err))
		switch {
		case err == nil:
			outcome = "done"
		case errors.Is(err, errGone):
			outcome = "lost"
		case isLimited(err) && !call.may:
			c.fail("%s was rejected, but nothing blocked it", call.what)
		case !isLimited(err) && !fault.Is(err, fault.NotFound):
			c.fail("%s: %v", call.what, err)
		}
		done(err)
		c.counts[strings.Fields(call.what)[0]+" "+outcome]++
		c.history = append(c.history, fmt.Sprintf("-> %s: %v", call.what, err))
	}()
}

func isLimited(err error) bool { return fault.Is(err, fault.Limited) }

func (c *storageChaos) choose() {
	limits := []int64{100, 100, 100, 160, 60, 0}
	limit, size, now := limits[c.random.IntN(len(limits))], 1+c.random.Int64N(25), c.Now()
	later := func() time.Time { return now.Add(time.Minute + time.Duration(c.random.Int64N(int64(50*time.Minute)))) }
	c.number++
	f := file.File{ID: fmt.Sprintf("file_%05d", c.number), Account: "acme", MD5: fmt.Sprintf("%032x", c.number%5), Size: size,
		Blob: "a", CreatedAt: now}
	if c.random.IntN(3) > 0 {
		f.ExpiresAt = later()
	}
	call := &storageCall{what: fmt.Sprintf("create %s of %d under %d", f.ID, size, limit), bytes: size, limit: limit}
	create := func(ctx context.Context, s *dynamo.Files) error { return s.Create(ctx, f, limit) }
	switch draw := c.random.IntN(11); {
	case draw == 10:
		c.result()
	case draw < 2:
		if c.random.IntN(20) == 0 {
			f.Size, call.bytes = 0, 0 // uses no storage, but otherwise ends like the others
		}
		c.do(call, create, func(err error) {
			if !isLimited(err) {
				c.stored = append(c.stored, f)
			}
		})
	case draw < 4:
		call.what = strings.Replace(call.what, "create", "reserve", 1)
		r := file.Reservation{Account: "acme", ID: f.ID, Until: later()}
		c.do(call, func(ctx context.Context, s *dynamo.Files) (err error) {
			r, err = s.Reserve(ctx, r, size, size, limit, now)
			return err
		}, func(error) { c.held = append(c.held, r) })
	case draw == 4 && len(c.held) > 0 && c.held[0].Bytes > 0:
		f.Reserved, c.held = c.held[0], c.held[1:]
		call.what, call.bytes = fmt.Sprintf("replace %v by %s", f.Reserved, call.what), size // f.Reserved may be gone
		c.do(call, create, func(err error) {
			if !isLimited(err) {
				c.stored, f.Reserved.Bytes = append(c.stored, f), 0 // the file may have replaced the reservation
			}
			if err != nil {
				c.held = append(c.held, f.Reserved)
			}
		})
	case draw < 6 && len(c.held) > 0:
		r := c.held[0]
		c.held = c.held[1:]
		c.do(&storageCall{what: "release " + r.ID}, func(ctx context.Context, s *dynamo.Files) error {
			return s.Release(ctx, r)
		}, func(err error) {
			if r.Bytes = 0; err != nil {
				c.held = append(c.held, r)
			}
		})
	case draw == 6 && len(c.stored) > 0:
		c.delete(c.stored[0])
		c.stored = c.stored[1:]
	case draw == 7 && len(c.promised) > 0 && c.random.IntN(2) == 0:
		c.delete(c.promised[0])
		c.promised = c.promised[1:]
	case draw == 8:
		c.expire()
	case draw == 9 && len(c.held) > 0:
		r := c.held[0]
		c.held = c.held[1:]
		r.Until = later()
		least := max(1, r.Bytes+c.random.Int64N(20)-5)
		most := least + c.random.Int64N(5)
		call.what = fmt.Sprintf("renew %v with %d to %d under %d", r, least, most, limit)
		call.bytes = least // the reservation may have ended
		c.do(call, func(ctx context.Context, s *dynamo.Files) (err error) {
			r, err = s.Reserve(ctx, r, least, most, limit, now)
			return err
		}, func(error) { c.held = append(c.held, r) })
	case draw == 7:
		f.Pending, f.UploadUntil, f.Size = true, later(), f.Size+2
		f.Upload = file.PendingUpload{Bytes: 2, Limit: limit, Most: mostPromises}
		call.what, call.bytes, call.promise = strings.Replace(call.what, "create", "announce", 1), 2, true
		c.do(call, func(ctx context.Context, s *dynamo.Files) error {
			if err := s.Create(ctx, f, limit); err != nil {
				return err
			}
			c.mu.Lock()
			call.bytes, call.promise, call.may = f.Size-2, false, false
			c.allow(c.state())
			c.mu.Unlock()
			stored := f
			stored.Pending = false
			return s.Finalize(ctx, stored, now)
		}, func(error) { c.promised = append(c.promised, f) })
	}
}

// The file may be stored, pending or missing.
func (c *storageChaos) delete(f file.File) {
	c.do(&storageCall{what: "delete " + f.ID}, func(ctx context.Context, s *dynamo.Files) error {
		if err := s.Abandon(ctx, f.ID); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		_, err := s.Delete(ctx, "acme", f.ID, c.Now())
		return err
	}, func(err error) {
		if err != nil && !fault.Is(err, fault.NotFound) {
			c.promised = append(c.promised, f)
		}
	})
}

func (c *storageChaos) step() {
	synctest.Wait()
	c.mu.Lock()
	n, active := len(c.paused), len(c.calls)
	c.mu.Unlock()
	switch draw := c.random.IntN(100); {
	case n == 0 && active > 0:
		time.Sleep(time.Millisecond) // the calls are waiting to retry
	case n == 0 || draw < 20 && active < 8:
		c.choose()
	case draw < 23 && c.again == 0:
		c.passed.Add(c.random.Int64N(int64(8 * time.Minute)))
	default:
		at, end := c.random.IntN(n), arrives
		if c.random.IntN(15) == 0 {
			end = []fate{isLost, losesAnswer, arrivesTwice, conflicts}[c.random.IntN(4)]
		}
		slices.SortFunc(c.paused, func(a, b *pausedCall) int { return strings.Compare(a.what, b.what) })
		c.deliver(at, end)
	}
}

// end delivers all requests, and checks that exactly the remaining bytes can be stored.
func (c *storageChaos) end() {
	c.mu.Lock()
	c.quiet = true
	for _, call := range c.paused {
		go func() { call.fate <- arrives }()
	}
	c.mu.Unlock()
	time.Sleep(time.Hour)
	synctest.Wait()
	bytes, _ := c.state()
	c.lists()
	limit := bytes + 50
	f := file.File{ID: "file_last", Account: "acme", MD5: "last", Size: 51, Blob: "a", CreatedAt: chaosBegins}
	if err := c.files.Create(c.Context(), f, limit); !fault.Is(err, fault.Limited) {
		c.Errorf("one byte more than remains: %v", err)
	}
	f.Size = 50
	if err := c.files.Create(c.Context(), f, limit); err != nil {
		c.Errorf("as much as remains: %v", err)
	}
}

// Everything that fits into the limit is accepted.
func TestStorageLimitsHoldInChaos(t *testing.T) {
	const seeds, steps = 30, 1200
	counts := map[string]int{}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			c := &storageChaos{T: t, counts: counts}
			c.random, c.around = rand.New(rand.NewPCG(seed, 11)), c.arrive
			c.cloud = fakeaws.New(c, c.random, dynamo.Tables())
			c.plain, c.files = dynamo.NewClient(c.cloud.Config()), dynamo.NewFiles(c.open(c.cloud), "files")
			for range steps {
				if c.step(); c.failed {
					break
				}
			}
			c.end()
		})
		if t.Failed() {
			t.Fatalf("with the seed %d", seed)
		}
	}
	for what, n := range counts {
		t.Logf("%7d %s", n, what)
	}
}

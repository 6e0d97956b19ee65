package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// DefaultUploads is how many uploads a server takes at once when nothing else
	// is set.
	DefaultUploads = 256
	// leastStep and mostStep bound how much is reserved at once, in bytes: a
	// quarter of what has arrived, so that a large upload is few writes and a small
	// one keeps no room from others.
	leastStep = 1 << 20
	mostStep  = 32 << 20
	// unwritten is how many of the bytes that have arrived of an upload may not be
	// on the disk yet, and so not be counted by it.
	unwritten = 2 << 20
	// releaseTime is how long it may take to give room back. It begins after the
	// request, whose own time may be over.
	releaseTime = 10 * time.Second
)

// Intake lets the bytes of uploads in, as far as there is room: for uploads at
// once, in the account's storage, and on the disk. One that is nil lets in
// everything.
type Intake struct {
	// Reservations keep room in accounts' storage.
	Reservations Reservations
	// Free gives how many bytes uploads may still put on the disk; nil where they
	// go elsewhere.
	Free func() (int64, error)
	// Most is how many uploads may be under way; 0 is DefaultUploads.
	Most int
	// NewID draws the id of a reservation, unique for ever.
	NewID func() string
	Now   func() time.Time

	mu      sync.Mutex
	uploads int
	// byAccount counts the uploads of accounts that have any.
	byAccount map[string]int
	// bringing holds the promised files for which an upload has the bytes that are
	// counted already: of several at once one has.
	bringing map[string]bool
	// granted is how many bytes of the disk are granted that it may not count as
	// taken yet.
	granted int64
}

// Allowance is what an account may do.
type Allowance struct {
	// Uploads is how many uploads may be under way, Bytes how many bytes the account
	// may store. 0 is any number.
	Uploads int
	Bytes   int64
}

// busyRetry is when to come back to a server that has too many uploads under way.
const busyRetry = 5 * time.Second

// Begin lets an upload of an account begin. Its caller calls Arrived when it has
// read all bytes, if it has, and End in the end.
//
// Errors: fault.Limited when too many are under way.
func (i *Intake) Begin(account string, allowed Allowance) (*Upload, error) {
	if i == nil {
		return nil, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	most := i.Most
	if most == 0 {
		most = DefaultUploads
	}
	var refused *fault.Error
	switch {
	case allowed.Uploads > 0 && i.byAccount[account] >= allowed.Uploads:
		refused = fault.New(fault.Limited, "The account has %d uploads under way, which is its limit.", allowed.Uploads)
	case i.uploads >= most:
		refused = fault.New(fault.Limited, "The server has as many uploads under way as it takes.")
	default:
		if i.byAccount == nil {
			i.byAccount = map[string]int{}
		}
		i.uploads++
		i.byAccount[account]++
		return &Upload{
			intake: i, limit: allowed.Bytes, underWay: true,
			room: Reservation{Account: account, ID: i.NewID()}, renewed: i.Now(),
		}, nil
	}
	refused.RetryAfter = busyRetry
	return nil, refused
}

// Keep says that the upload brings the bytes of a promised file, which counts some
// of them already. While they arrive, keep is called every KeepEvery, to put off
// the promise's end; its error ends the upload.
func (u *Upload) Keep(f File, keep func(context.Context, File) error) {
	if u == nil {
		return
	}
	u.promise, u.keep = f, keep
	i := u.intake
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bringing == nil {
		i.bringing = map[string]bool{}
	}
	if !i.bringing[f.ID] {
		i.bringing[f.ID] = true
		u.counted = f.Counts()
	}
}

// Upload is an upload under way. It is for one goroutine. One that is nil is
// bound by nothing.
type Upload struct {
	intake *Intake
	limit  int64
	// promise is the promised file that the upload brings, if it does, and keep puts
	// off the promise's end.
	promise File
	keep    func(ctx context.Context, f File) error
	// counted is how many of the bytes are counted already, as those of a promised
	// file are.
	counted int64
	// arrived is how many bytes have, granted how many of the disk are for them, and
	// pending how many of those the intake counts.
	arrived, granted, pending int64
	room                      Reservation
	// short says that the account has no room to reserve ahead.
	short   bool
	renewed time.Time
	// underWay says that the upload counts among those that are.
	underWay bool
}

// Reader gives what there is room for of the source's bytes.
//
// Errors: those of the source; fault.Limited when the account's storage is full;
// fault.StorageFull when the disk is.
func (u *Upload) Reader(ctx context.Context, source io.Reader) io.Reader {
	if u == nil {
		return source
	}
	return &intakeReader{u, ctx, source}
}

type intakeReader struct {
	upload *Upload
	ctx    context.Context
	source io.Reader
}

// Read gives bytes that there is room for.
func (r *intakeReader) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if refused := r.upload.take(r.ctx, int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

// take makes room for bytes that have arrived.
func (u *Upload) take(ctx context.Context, bytes int64) error {
	if err := u.onDisk(bytes); err != nil {
		return err
	}
	u.arrived += bytes
	now := u.intake.Now()
	due := now.Sub(u.renewed) >= KeepEvery || now.Before(u.renewed)
	if due && u.keep != nil {
		if err := u.keep(ctx, u.promise); err != nil {
			return err
		}
	}
	need := u.arrived - u.counted
	if u.limit == 0 || need <= 0 || need <= u.room.Bytes && !due {
		if due {
			u.renewed = now
		}
		return nil
	}
	renewed := u.room
	renewed.Until = now.UTC().Truncate(time.Millisecond).Add(kept)
	least, ahead := max(need, u.room.Bytes), int64(0)
	if !u.short {
		ahead = step(u.arrived)
	}
	renewed, err := u.intake.Reservations.Reserve(ctx, renewed, least, least+ahead, u.limit, now)
	switch {
	case fault.Is(err, fault.Limited):
		return StorageFull(u.limit)
	case err != nil:
		return fmt.Errorf("file: reserve storage: %w", err)
	}
	u.short = renewed.Bytes == least
	u.room, u.renewed = renewed, now
	return nil
}

// step gives how much is reserved ahead for an upload of which so much has
// arrived.
func step(arrived int64) int64 { return min(max(leastStep, arrived/4), mostStep) }

// onDisk makes room on the disk for bytes beyond those that have arrived.
//
// Errors: fault.StorageFull.
func (u *Upload) onDisk(bytes int64) error {
	i := u.intake
	need := u.arrived + bytes
	if i.Free == nil || need <= u.granted {
		return nil
	}
	free, err := i.Free()
	if err != nil {
		return fmt.Errorf("file: ask for the disk's free space: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, granted := range []int64{need + step(u.arrived), need} {
		pending := granted - max(0, need-unwritten)
		if i.granted-u.pending+pending <= free {
			i.granted += pending - u.pending
			u.granted, u.pending = granted, pending
			return nil
		}
	}
	full := fault.New(fault.StorageFull, "There is no room left for uploads on the server's disk.")
	full.RetryAfter = time.Minute
	return full
}

// Arrived says that all bytes have: the upload is no longer under way. Its room is
// its own still.
func (u *Upload) Arrived() {
	if u == nil || !u.underWay {
		return
	}
	u.underWay = false
	i := u.intake
	i.mu.Lock()
	defer i.mu.Unlock()
	i.uploads--
	if i.byAccount[u.room.Account]--; i.byAccount[u.room.Account] == 0 {
		delete(i.byAccount, u.room.Account)
	}
	i.granted -= u.pending
	u.granted, u.pending = 0, 0
}

// brought ends what an upload has of its promised file.
func (i *Intake) brought(u *Upload) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if u.counted > 0 {
		delete(i.bringing, u.promise.ID)
		u.counted = 0
	}
}

// Room gives what is reserved in the account's storage, for the record of the file
// that takes its place.
func (u *Upload) Room() Reservation {
	if u == nil || u.room.Bytes == 0 {
		return Reservation{}
	}
	return u.room
}

// Settled says that a record has taken the place of the reservation.
func (u *Upload) Settled() {
	if u != nil {
		u.room.Bytes = 0
	}
}

// End ends the upload and gives its room back, unless a record has taken its
// place.
//
// Errors: those of the store; the room is then given back when the reservation
// runs out.
func (u *Upload) End(ctx context.Context) error {
	if u == nil {
		return nil
	}
	u.Arrived()
	u.intake.brought(u)
	if u.room.Bytes == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := u.intake.Reservations.Release(ctx, u.room); err != nil {
		return errors.Join(errors.New("file: release storage"), err)
	}
	u.room.Bytes = 0
	return nil
}

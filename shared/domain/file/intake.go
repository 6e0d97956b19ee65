package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// DefaultUploads is the default limit of concurrent uploads.
	DefaultUploads = 256
	// An upload reserves a quarter of its arrived bytes ahead, between leastStep and mostStep
	// bytes, so that a large upload needs few writes and a small one takes no storage from others.
	leastStep = 1 << 20
	mostStep  = 32 << 20
	// unwritten is how many bytes of an upload may have arrived but not be on the disk yet. The
	// disk's free space does not show them.
	unwritten = 2 << 20
	// releaseTime is the time limit for releasing a reservation. It does not depend on the
	// request's context, which may have ended.
	releaseTime = 10 * time.Second
)

// Intake admits uploads while there is capacity: for concurrent uploads, in the account's storage,
// and on the disk. A nil Intake admits everything.
type Intake struct {
	Reservations Reservations
	// Free returns how many more bytes of the disk uploads may use; nil if they are stored elsewhere.
	Free func() (int64, error)
	// Most limits uploads in progress; 0 means DefaultUploads.
	Most int
	// NewID returns a unique id for a reservation.
	NewID func() string
	Now   func() time.Time

	mu sync.Mutex
	// places counts the uploads in progress with a place. byAccount has all uploads in progress, by
	// account.
	places    int
	byAccount map[string][]*Upload
	// uploading has the ids of pending files that are being uploaded. If several uploads bring the
	// same file, only the first may use the storage of the pending file.
	uploading map[string]bool
	// granted is how many bytes of the disk are granted to uploads but may not show in the free space yet.
	granted int64
}

type Allowance struct {
	// Uploads limits uploads in progress, Bytes the stored bytes. 0 means no limit.
	Uploads int
	Bytes   int64
}

// busyRetryAfter is the Retry-After for too many uploads in progress.
const busyRetryAfter = 5 * time.Second

// Begin admits an upload of an account. If all places are taken, it takes one from the account with
// the most uploads, unless that account would then have fewer than this one: its slowest upload
// fails. The caller must call Arrived once it has read all bytes, and End in every case.
//
// Errors: fault.Limited if too many uploads are in progress.
func (i *Intake) Begin(account string, allowed Allowance) (*Upload, error) {
	if i == nil {
		return nil, nil
	}
	now := i.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	most := i.Most
	if most == 0 {
		most = DefaultUploads
	}
	var refused *fault.Error
	switch {
	case allowed.Uploads > 0 && len(i.byAccount[account]) >= allowed.Uploads:
		refused = fault.New(fault.Limited, "The account has %d uploads under way, which is its limit.", allowed.Uploads)
	case i.places >= most && !i.freePlace(account, now):
		refused = fault.New(fault.Limited, "The server has no free place for another upload.")
	default:
		if i.byAccount == nil {
			i.byAccount = map[string][]*Upload{}
		}
		u := &Upload{
			intake: i, limit: allowed.Bytes, inProgress: true, begun: now,
			room: Reservation{Account: account, ID: i.NewID()}, renewed: now,
		}
		i.places++
		i.byAccount[account] = append(i.byAccount[account], u)
		return u, nil
	}
	refused.RetryAfter = busyRetryAfter
	return nil, refused
}

// freePlace takes a place from the account with the most uploads, if that has at least two
// more than the named account.
func (i *Intake) freePlace(account string, now time.Time) bool {
	var most []*Upload
	for _, uploads := range i.byAccount {
		if kept := withPlace(uploads); len(kept) > len(most) {
			most = kept
		}
	}
	if len(most) < len(withPlace(i.byAccount[account]))+2 {
		return false
	}
	slowest := slices.MinFunc(most, func(a, b *Upload) int { return cmp.Compare(a.speed(now), b.speed(now)) })
	slowest.displaced.Store(true)
	i.places--
	return true
}

func withPlace(uploads []*Upload) (kept []*Upload) {
	for _, u := range uploads {
		if !u.displaced.Load() {
			kept = append(kept, u)
		}
	}
	return kept
}

// speed returns bytes per second. The first second counts fully.
func (u *Upload) speed(now time.Time) float64 {
	return float64(u.arrived.Load()) / max(1, now.Sub(u.begun).Seconds())
}

// SetPending makes the upload use the storage of a pending file. While bytes arrive, extend is
// called every RenewEvery; its error ends the upload.
func (u *Upload) SetPending(f File, extend func(context.Context, File) error) {
	if u == nil {
		return
	}
	u.file, u.extend = f, extend
	i := u.intake
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.uploading == nil {
		i.uploading = map[string]bool{}
	}
	if !i.uploading[f.ID] {
		i.uploading[f.ID] = true
		u.counted = f.Counts()
	}
}

// Upload is an upload in progress. Only one goroutine may use it. A nil Upload has no limits.
type Upload struct {
	intake *Intake
	limit  int64
	// file is the pending file of the upload, if any. extend extends it.
	file   File
	extend func(ctx context.Context, f File) error
	// counted is how many of the bytes the pending file already counts.
	counted int64
	begun   time.Time
	// displaced means that the upload has lost its place.
	displaced atomic.Bool
	// arrived counts the arrived bytes. granted is how many bytes of the disk they may take.
	// pending is the part of granted that the intake counts.
	arrived          atomic.Int64
	granted, pending int64
	room             Reservation
	// short means that the account could not reserve ahead.
	short      bool
	renewed    time.Time
	inProgress bool
}

// Reader returns a reader of the source that reserves storage for the bytes it reads.
//
// Errors: errors of the source; fault.Limited if the account's storage is full, or another account
// has taken the upload's place; fault.StorageFull if the disk is full.
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

func (r *intakeReader) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if refused := r.upload.take(r.ctx, int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

// take reserves storage for arrived bytes.
func (u *Upload) take(ctx context.Context, bytes int64) error {
	if u.displaced.Load() {
		refused := fault.New(fault.Limited, "The server has no free place for another upload. It stopped this one, the "+
			"slowest of the account with the most uploads.")
		refused.RetryAfter = busyRetryAfter
		return refused
	}
	if err := u.reserveDisk(bytes); err != nil {
		return err
	}
	arrived := u.arrived.Add(bytes)
	now := u.intake.Now()
	due := now.Sub(u.renewed) >= RenewEvery || now.Before(u.renewed)
	if due && u.extend != nil {
		if err := u.extend(ctx, u.file); err != nil {
			return err
		}
	}
	need := arrived - u.counted
	if u.limit == 0 || need <= 0 || need <= u.room.Bytes && !due {
		if due {
			u.renewed = now
		}
		return nil
	}
	renewed := u.room
	renewed.Until = now.UTC().Truncate(time.Millisecond).Add(holdTime)
	least, ahead := max(need, u.room.Bytes), int64(0)
	if !u.short {
		ahead = step(arrived)
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

// step returns how much to reserve ahead after a number of arrived bytes.
func step(arrived int64) int64 { return min(max(leastStep, arrived/4), mostStep) }

// reserveDisk reserves disk space for bytes beyond the arrived ones.
//
// Errors: fault.StorageFull.
func (u *Upload) reserveDisk(bytes int64) error {
	i := u.intake
	arrived := u.arrived.Load()
	need := arrived + bytes
	if i.Free == nil || need <= u.granted {
		return nil
	}
	free, err := i.Free()
	if err != nil {
		return fmt.Errorf("file: ask for the disk's free space: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, granted := range []int64{need + step(arrived), need} {
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

// Arrived marks the upload as complete. It no longer counts as in progress, but keeps its reservation.
func (u *Upload) Arrived() {
	if u == nil || !u.inProgress {
		return
	}
	u.inProgress = false
	i := u.intake
	i.mu.Lock()
	defer i.mu.Unlock()
	if !u.displaced.Load() {
		i.places--
	}
	account := u.room.Account
	i.byAccount[account] = slices.DeleteFunc(i.byAccount[account], func(other *Upload) bool { return other == u })
	if len(i.byAccount[account]) == 0 {
		delete(i.byAccount, account)
	}
	i.granted -= u.pending
	u.granted, u.pending = 0, 0
}

// releaseBytes lets another upload use the storage of the pending file.
func (i *Intake) releaseBytes(u *Upload) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if u.counted > 0 {
		delete(i.uploading, u.file.ID)
		u.counted = 0
	}
}

// Room returns the reservation, for the file's record that replaces it.
func (u *Upload) Room() Reservation {
	if u == nil || u.room.Bytes == 0 {
		return Reservation{}
	}
	return u.room
}

// Recorded notes that a record has replaced the reservation.
func (u *Upload) Recorded() {
	if u != nil {
		u.room.Bytes = 0
	}
}

// End ends the upload and releases its reservation, unless a record has replaced it. After an error
// the reservation expires.
func (u *Upload) End(ctx context.Context) error {
	if u == nil {
		return nil
	}
	u.Arrived()
	u.intake.releaseBytes(u)
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

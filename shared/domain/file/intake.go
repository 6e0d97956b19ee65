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
	DefaultUploads = 256
	// An upload reserves in advance a quarter of the bytes that have arrived, but no less than leastStep and no more
	// than mostStep bytes. Large uploads thus need few writes, and small uploads reserve little.
	leastStep = 1 << 20
	mostStep  = 32 << 20
	// leastRead is the minimum size, in bytes, of every read except the last one.
	leastRead = 16 << 10
	// unwritten is the maximum number of an upload's bytes that have arrived but may not be on the disk yet.
	unwritten = 2 << 20
	// releaseTime limits the time for releasing a reservation. The request's context cannot be
	// used, because it may have ended.
	releaseTime = 10 * time.Second
)

// Intake admits uploads according to the number of concurrent uploads, the account's storage, and
// the free disk space. A nil Intake admits everything.
type Intake struct {
	Reservations Reservations
	// Free returns how many bytes uploads may use on the disk. It is nil if uploads are stored elsewhere.
	Free func() (int64, error)
	// Most limits concurrent uploads. 0 means DefaultUploads.
	Most  int
	NewID func() string
	Now   func() time.Time

	mu sync.Mutex
	// places is the number of uploads that occupy a slot. byAccount also lists uploads that lost their slot and are
	// still stopping.
	places    int
	byAccount map[string][]*Upload
	// uploading contains the ids of pending files with an upload in progress. If one file is
	// uploaded several times at once, only the first upload may use its storage.
	uploading map[string]bool
	// granted counts the bytes that uploads may use on the disk. It excludes bytes that are certainly on the disk,
	// because the free space no longer includes them.
	granted int64
}

type Allowance struct {
	// Uploads limits the account's concurrent uploads, and Bytes limits its stored bytes. 0 means no limit.
	Uploads int
	Bytes   int64
}

// busyRetryAfter is the Retry-After if there are too many concurrent uploads.
const busyRetryAfter = 5 * time.Second

// Begin admits an upload by an account. If all slots are taken, the upload replaces the slowest upload of the account
// with the most uploads, unless that account would then have fewer uploads than this account. The caller must call
// Arrived after it has read all bytes, and must call End in every case.
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
		refused = fault.New(fault.Limited, "The account has reached its limit of concurrent uploads (%d).", allowed.Uploads)
	case i.places >= most && !i.freePlace(account, now):
		refused = fault.New(fault.Limited, "The server has reached its limit of concurrent uploads. Try again later.")
	default:
		if i.byAccount == nil {
			i.byAccount = map[string][]*Upload{}
		}
		u := &Upload{
			intake: i, limit: allowed.Bytes, inProgress: true, started: now,
			reservation: Reservation{Account: account, ID: i.NewID()}, renewed: now,
		}
		i.places++
		i.byAccount[account] = append(i.byAccount[account], u)
		return u, nil
	}
	refused.RetryAfter = busyRetryAfter
	return nil, refused
}

// freePlace frees a slot of the account with the most uploads, if that account has at least two more than the given
// account.
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

// speed returns the upload's rate in bytes per second. A duration under a second counts as one second.
func (u *Upload) speed(now time.Time) float64 {
	return float64(u.arrived.Load()) / max(1, now.Sub(u.started).Seconds())
}

// SetPending makes the upload use the storage of a pending file. While bytes arrive, the upload calls the function
// `extend` at intervals of RenewEvery. If extend returns an error, the upload ends.
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

// Upload is an upload in progress. It may be used by only one goroutine. A nil Upload has no limits.
type Upload struct {
	intake *Intake
	limit  int64
	// file is the pending file, if any.
	file      File
	extend    func(ctx context.Context, f File) error
	counted   int64 // the bytes already counted for the pending file
	started   time.Time
	displaced atomic.Bool
	// granted is the number of bytes that this upload may use on the disk. pending is the part of
	// granted that is included in Intake.granted.
	arrived          atomic.Int64
	granted, pending int64
	reservation      Reservation
	// short means that the account had too little storage for an early reservation.
	short      bool
	renewed    time.Time
	inProgress bool
}

// Reader returns a reader that reserves storage for the bytes that it reads from source.
//
// Errors: errors of source; fault.Limited if the account's storage is full, or another account's upload has replaced
// this one; fault.StorageFull if the disk is full.
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

// Read waits until it has several kilobytes, because each reservation in an almost full account is a transaction.
func (r *intakeReader) Read(p []byte) (n int, err error) {
	for least := min(len(p), leastRead); n < least && err == nil && !r.upload.displaced.Load(); {
		var more int
		more, err = r.source.Read(p[n:])
		n += more
	}
	if refused := r.upload.take(r.ctx, int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

func (u *Upload) take(ctx context.Context, bytes int64) error {
	if u.displaced.Load() {
		refused := fault.New(fault.Limited, "The server has reached its limit of concurrent uploads. It stopped this "+
			"upload, the slowest of the account with the most uploads. Try again later.")
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
	if u.limit == 0 || need <= 0 || need <= u.reservation.Bytes && !due {
		if due {
			u.renewed = now
		}
		return nil
	}
	renewed := u.reservation
	renewed.Until = now.UTC().Truncate(time.Millisecond).Add(holdTime)
	least, ahead := max(need, u.reservation.Bytes), int64(0)
	if !u.short {
		ahead = step(arrived)
	}
	renewed, err := u.intake.Reservations.Reserve(ctx, renewed, least, least+ahead, u.limit, now)
	if err != nil {
		return fmt.Errorf("file: reserve storage: %w", err)
	}
	u.short = renewed.Bytes == least
	u.reservation, u.renewed = renewed, now
	return nil
}

func step(arrived int64) int64 { return min(max(leastStep, arrived/4), mostStep) }

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
		return fmt.Errorf("file: read the disk's free space: %w", err)
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
	full := fault.New(fault.StorageFull, "The server's disk is full.")
	full.RetryAfter = time.Minute
	return full
}

// CheckSpace checks that the account's storage is not full. It does nothing in AWS (where
// Intake.Free is nil), because job results do not count there.
//
// Errors: fault.Limited.
func (u *Upload) CheckSpace(ctx context.Context) error {
	if u == nil || u.intake.Free == nil || u.limit == 0 || u.reservation.Bytes > 0 {
		return nil
	}
	now, reservation := u.intake.Now(), u.reservation
	reservation.Until = now.UTC().Truncate(time.Millisecond).Add(holdTime)
	reservation, err := u.intake.Reservations.Reserve(ctx, reservation, 1, 1, u.limit, now)
	if err == nil {
		u.reservation = reservation
	}
	return err
}

// Arrived records that all bytes have been read. The upload keeps its reservation.
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
	account := u.reservation.Account
	i.byAccount[account] = slices.DeleteFunc(i.byAccount[account], func(other *Upload) bool { return other == u })
	if len(i.byAccount[account]) == 0 {
		delete(i.byAccount, account)
	}
	i.granted -= u.pending
	u.granted, u.pending = 0, 0
}

// releaseBytes lets another upload use the pending file's storage.
func (i *Intake) releaseBytes(u *Upload) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if u.counted > 0 {
		delete(i.uploading, u.file.ID)
		u.counted = 0
	}
}

func (u *Upload) Reservation() Reservation {
	if u == nil || u.reservation.Bytes == 0 {
		return Reservation{}
	}
	return u.reservation
}

func (u *Upload) Recorded() {
	if u != nil {
		u.reservation.Bytes = 0
	}
}

// End ends the upload. It releases the reservation unless a record has replaced it.
func (u *Upload) End(ctx context.Context) error {
	if u == nil {
		return nil
	}
	u.Arrived()
	u.intake.releaseBytes(u)
	if u.reservation.Bytes == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := u.intake.Reservations.Release(ctx, u.reservation); err != nil {
		return errors.Join(errors.New("file: release storage"), err)
	}
	u.reservation.Bytes = 0
	return nil
}

// Package move carries what one machine keeps to a deploy in AWS: keys, budgets, files,
// usage, and jobs, those that have not ended included.
//
// It goes in steps, and the deploy's ledger knows how far they are:
//
//   - everything that keys lead to is copied, and compared with the source;
//   - the ledger is opened. From then on the source must not be served any more;
//   - the keys are made, with which clients can call the deploy, and jobs that had not
//     ended are accepted there;
//   - the ledger is done.
//
// Each step can be broken off at any point and be done again: nothing is written over, and
// what is there already has to be the same.
package move

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"reflect"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/webhook"
)

// Records are the records of the source as of one moment, in any order.
type Records interface {
	// ID tells the source from others.
	ID(ctx context.Context) (string, error)
	Keys(ctx context.Context) iter.Seq2[credential.Key, error]
	Budgets(ctx context.Context) iter.Seq2[budget.Budget, error]
	Counters(ctx context.Context) iter.Seq2[Counter, error]
	// Files are those that are stored; pending ones are not moved.
	Files(ctx context.Context) iter.Seq2[file.File, error]
	Usage(ctx context.Context) iter.Seq2[Usage, error]
	Jobs(ctx context.Context) iter.Seq2[job.Job, error]
	Attempts(ctx context.Context, jobID string) ([]webhook.Attempt, error)
}

// Counter is what was used of one window of a budget. Warned is the highest percentage that
// a warning was due for.
type Counter struct {
	budget.Counter
	Used   int64
	Warned int64
}

// Usage is what an account has used of a model on a day.
type Usage struct {
	Account string
	usage.Total
}

// Blobs are the blobs of the source.
type Blobs interface {
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error]
}

// State is how far a move is.
type State string

// The states, in their order.
const (
	// None means that nothing was written.
	None State = ""
	// Begun means that records are being copied, which nobody can reach yet.
	Begun State = "begun"
	// Open means that keys and jobs are being made.
	Open State = "open"
	Done State = "done"
)

// Target is a deploy. Its methods that put something do nothing if the very same is there
// already, and fail with ErrDiffers if it differs.
type Target interface {
	// Ledger returns the state of the move from a source. SetLedger changes it.
	Ledger(ctx context.Context, source string) (State, error)
	SetLedger(ctx context.Context, source string, state State) error
	// Holds says what a deploy holds of an account, such as "files"; "" for nothing.
	Holds(ctx context.Context, account string) (string, error)
	PutFile(ctx context.Context, f file.File) error
	PutUsage(ctx context.Context, u Usage) error
	PutBudget(ctx context.Context, b budget.Budget) error
	PutCounter(ctx context.Context, c Counter) error
	// PutJob records a job that has ended, with the attempts of its webhook.
	PutJob(ctx context.Context, j job.Job, attempts []webhook.Attempt) error
	PutKey(ctx context.Context, key credential.Key) error
	// Accept accepts a job that has not ended, to be run from its beginning, once.
	Accept(ctx context.Context, j job.Job) error
	// HasFile, HasUsage and HasJob fail with ErrDiffers unless what was put is there.
	HasFile(ctx context.Context, f file.File) error
	HasUsage(ctx context.Context, u Usage) error
	HasJob(ctx context.Context, j job.Job) error
}

// ErrDiffers means that a deploy has something else under the same id, or lacks it.
var ErrDiffers = errors.New("the deploy has something else")

// ErrReopened means that a source that was moved is, or was, served again.
var ErrReopened = errors.New("it was moved before, and opened again since: what changed here is not moved, " +
	"as the deploy keeps what it has")

// Counts count what is moved.
type Counts struct {
	Accounts int   `json:"accounts"`
	Keys     int   `json:"keys"`
	Budgets  int   `json:"budgets"`
	Files    int   `json:"files"`
	Usage    int   `json:"usage"`
	Ended    int   `json:"ended_jobs"`
	Open     int   `json:"open_jobs"`
	Blobs    int   `json:"blobs"`
	Bytes    int64 `json:"bytes"`
	// Copied counts the blobs that were not there yet.
	Copied int `json:"copied_blobs"`
}

// Mover moves a source to a target.
type Mover struct {
	Records Records
	Blobs   Blobs
	Target  Target
	// Store keeps the target's blobs.
	Store blob.Store
	// Digests reads every blob of the target again, to compare it with the source's.
	Digests bool
	// Close makes sure that the source is not served any more. It is called before the
	// ledger is opened.
	Close func() error
	// Closed reports whether Close still holds. Nil means that it does.
	Closed func() (bool, error)
	// Now returns the time that jobs are accepted at.
	Now func() time.Time
}

// Count counts what would be moved, and fails if the target cannot take it.
func (m Mover) Count(ctx context.Context) (Counts, State, error) {
	source, err := m.Records.ID(ctx)
	if err != nil {
		return Counts{}, None, err
	}
	state, err := m.Target.Ledger(ctx, source)
	if err != nil {
		return Counts{}, None, err
	}
	if err := m.checkClosed(state); err != nil {
		return Counts{}, state, err
	}
	counts, accounts, err := m.count(ctx)
	if err != nil || state != None {
		return counts, state, err
	}
	for account := range accounts {
		held, err := m.Target.Holds(ctx, account)
		if err != nil {
			return counts, state, err
		}
		if held != "" {
			return counts, state, fmt.Errorf("%w: the account %s has %s there already", ErrDiffers, account, held)
		}
	}
	return counts, state, nil
}

// checkClosed fails with ErrReopened if a source that was moved is served again: a move that
// is done does nothing, and would be taken for one that moved what has changed.
func (m Mover) checkClosed(state State) error {
	if state != Done || m.Closed == nil {
		return nil
	}
	closed, err := m.Closed()
	if err == nil && !closed {
		err = ErrReopened
	}
	return err
}

// count counts what the source has.
func (m Mover) count(ctx context.Context) (c Counts, accounts map[string]bool, err error) {
	accounts = map[string]bool{}
	err = errors.Join(
		each(m.Records.Keys(ctx), func(k credential.Key) error { c.Keys++; accounts[k.Account] = true; return nil }),
		each(m.Records.Budgets(ctx), func(b budget.Budget) error { c.Budgets++; accounts[b.Account] = true; return nil }),
		each(m.files(ctx), func(f file.File) error { c.Files++; accounts[f.Account] = true; return nil }),
		each(m.Records.Usage(ctx), func(u Usage) error { c.Usage++; accounts[u.Account] = true; return nil }),
		each(m.Records.Jobs(ctx), func(j job.Job) error {
			accounts[j.Account] = true
			if j.Status.Terminal() {
				c.Ended++
			} else {
				c.Open++
			}
			return nil
		}),
		each(m.Blobs.List(ctx, ""), func(b blob.Entry) error { c.Blobs++; c.Bytes += b.Size; return nil }),
	)
	c.Accounts = len(accounts)
	return c, accounts, err
}

// files returns the files that have not expired.
func (m Mover) files(ctx context.Context) iter.Seq2[file.File, error] {
	now := m.Now()
	return func(yield func(file.File, error) bool) {
		for f, err := range m.Records.Files(ctx) {
			if (err != nil || !f.Expired(now)) && !yield(f, err) {
				return
			}
		}
	}
}

// each calls a function for each of a sequence, until one fails.
func each[V any](all iter.Seq2[V, error], do func(V) error) error {
	for one, err := range all {
		if err == nil {
			err = do(one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Move moves everything, from where an earlier call got to.
//
// Errors: ErrDiffers; those of both sides. Nothing is lost, and the next call goes on.
func (m Mover) Move(ctx context.Context) (Counts, error) {
	counts, state, err := m.Count(ctx)
	if err != nil {
		return counts, err
	}
	source, err := m.Records.ID(ctx)
	if err != nil {
		return counts, err
	}
	if state == None || state == Begun {
		if err := m.Target.SetLedger(ctx, source, Begun); err != nil {
			return counts, err
		}
		if counts.Copied, err = m.copyAll(ctx); err != nil {
			return counts, err
		}
		if err := m.Check(ctx); err != nil {
			return counts, err
		}
	}
	if state == Done {
		return counts, nil
	}
	if err := m.Close(); err != nil {
		return counts, err
	}
	if err := m.Target.SetLedger(ctx, source, Open); err != nil {
		return counts, err
	}
	if err := m.open(ctx); err != nil {
		return counts, err
	}
	return counts, m.Target.SetLedger(ctx, source, Done)
}

// open makes the keys, and accepts the jobs that have not ended.
func (m Mover) open(ctx context.Context) error {
	if err := each(m.Records.Keys(ctx), func(k credential.Key) error { return m.Target.PutKey(ctx, k) }); err != nil {
		return err
	}
	return each(m.Records.Jobs(ctx), func(j job.Job) error {
		if j.Status.Terminal() {
			return nil
		}
		return m.Target.Accept(ctx, Anew(j, m.Now()))
	})
}

// Anew returns a job that has not ended as one that begins, with the whole time that a job
// has.
func Anew(j job.Job, now time.Time) job.Job {
	j.Status, j.Progress, j.Runs, j.Nonce, j.StartedAt = job.Pending, 0, 0, "", time.Time{}
	j.Deadline = now.Add(job.MaxAge)
	return j
}

// copyAll copies what keys lead to, and returns how many blobs were not there yet.
func (m Mover) copyAll(ctx context.Context) (copied int, err error) {
	if copied, err = m.CopyBlobs(ctx); err != nil {
		return copied, err
	}
	held := map[budget.Counter]int64{}
	for _, step := range []func() error{
		func() error {
			return each(m.files(ctx), func(f file.File) error { return m.Target.PutFile(ctx, f) })
		},
		func() error {
			return each(m.Records.Usage(ctx), func(u Usage) error { return m.Target.PutUsage(ctx, u) })
		},
		func() error {
			return each(m.Records.Budgets(ctx), func(b budget.Budget) error { return m.Target.PutBudget(ctx, b) })
		},
		func() error {
			return each(m.Records.Jobs(ctx), func(j job.Job) error {
				if !j.Status.Terminal() {
					// It takes them again when it is accepted.
					for _, h := range j.Holds {
						held[h.Counter] += h.Amount
					}
					return nil
				}
				attempts, err := m.Records.Attempts(ctx, j.ID)
				if err != nil {
					return err
				}
				return m.Target.PutJob(ctx, j, attempts)
			})
		},
		func() error {
			return each(m.Records.Counters(ctx), func(c Counter) error {
				c.Used = max(0, c.Used-held[c.Counter])
				return m.Target.PutCounter(ctx, c)
			})
		},
	} {
		if err := step(); err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// CopyBlobs copies the blobs that are not there yet, which may be done ahead, while the
// source is served. It returns how many those were.
func (m Mover) CopyBlobs(ctx context.Context) (copied int, err error) {
	return copied, each(m.Blobs.List(ctx, ""), func(b blob.Entry) error {
		have, err := m.Store.Head(ctx, b.Name)
		if err == nil && have.Size == b.Size {
			return nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		r, err := m.Blobs.Open(ctx, b.Name, 0, -1)
		if fault.Is(err, fault.NotFound) {
			return nil // deleted since it was listed
		}
		if err != nil {
			return err
		}
		defer r.Close()
		if _, err := m.Store.Put(ctx, b.Name, r); err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		copied++
		return nil
	})
}

// Check fails with ErrDiffers unless the target has all files, blobs, usage and ended jobs
// of the source, as they are.
func (m Mover) Check(ctx context.Context) error {
	return errors.Join(
		each(m.files(ctx), func(f file.File) error { return m.Target.HasFile(ctx, f) }),
		each(m.Records.Usage(ctx), func(u Usage) error { return m.Target.HasUsage(ctx, u) }),
		each(m.Records.Jobs(ctx), func(j job.Job) error {
			if !j.Status.Terminal() {
				return nil
			}
			return m.Target.HasJob(ctx, j)
		}),
		each(m.Blobs.List(ctx, ""), func(b blob.Entry) error { return m.checkBlob(ctx, b) }),
	)
}

func (m Mover) checkBlob(ctx context.Context, b blob.Entry) error {
	have, err := m.Store.Head(ctx, b.Name)
	if fault.Is(err, fault.NotFound) || err == nil && have.Size != b.Size {
		return fmt.Errorf("%w: the bytes of %s are not there", ErrDiffers, b.Name)
	}
	if err != nil || !m.Digests {
		return err
	}
	here, err := digest(ctx, m.Blobs, b.Name)
	if err != nil {
		return err
	}
	there, err := digest(ctx, m.Store, b.Name)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(here.Sum(nil), there.Sum(nil)) {
		return fmt.Errorf("%w: %s has other bytes", ErrDiffers, b.Name)
	}
	return nil
}

// opener opens blobs.
type opener interface {
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

// digest returns the SHA-256 of a blob.
func digest(ctx context.Context, from opener, name string) (hash.Hash, error) {
	r, err := from.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	return sum, err
}

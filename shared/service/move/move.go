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
// Each step can be broken off at any point and be done again: nothing is written over that
// the move did not write itself, and what else is there has to be the same.
//
// Until the ledger is opened the source may be served again between two attempts. What the
// earlier one wrote then gives way to what the source has now, and what the source has no
// longer is removed: records by the mark of the source that each of them has at the deploy,
// bytes by the journal (see journal.go). What lacks the mark is somebody else's, is never
// changed, and ends the move before it changes anything.
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

// ErrDiffers means that a deploy has something else under the same id, or lacks it.
var ErrDiffers = errors.New("the deploy has something else")

// ErrReopened means that a source that was moved is, or was, served again.
var ErrReopened = errors.New("it was moved before, and opened again since: what changed here is not moved, " +
	"as the deploy keeps what it has")

// ErrServed means that nothing is copied ahead of a move whose records are there already.
var ErrServed = errors.New("the deploy has the keys already, and deletes files itself: nothing is copied ahead any more")

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
	if err == nil && (state == None || state == Begun) {
		err = m.checkUnheld(ctx, source, accounts)
	}
	return counts, state, err
}

// checkUnheld fails with ErrDiffers if the target has anything of the accounts that this
// move did not write, such as a key that somebody made there meanwhile.
func (m Mover) checkUnheld(ctx context.Context, source string, accounts map[string]bool) error {
	for account := range accounts {
		held, err := m.Target.Holds(ctx, source, account)
		if err != nil {
			return err
		}
		if held != "" {
			return fmt.Errorf("%w: the account %s has %s there already", ErrDiffers, account, held)
		}
	}
	return nil
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
	if state == Done {
		return counts, nil
	}
	if state == None || state == Begun {
		if err := m.Target.SetLedger(ctx, source, Begun); err != nil {
			return counts, err
		}
		if counts.Copied, err = m.copyAll(ctx, source); err != nil {
			return counts, err
		}
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
	if err := m.Target.SetLedger(ctx, source, Done); err != nil {
		return counts, err
	}
	return counts, m.Store.Delete(ctx, journalName(source))
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

// copyAll makes the target have what keys lead to, as the source has it, and compares the
// two. It returns how many blobs were not there yet.
func (m Mover) copyAll(ctx context.Context, source string) (copied int, err error) {
	if copied, err = m.copyBlobs(ctx, source, true); err != nil {
		return copied, err
	}
	_, accounts, err := m.count(ctx)
	if err != nil {
		return copied, err
	}
	if err := m.removeRecords(ctx, source, accounts); err != nil {
		return copied, err
	}
	if err := m.putRecords(ctx, source); err != nil {
		return copied, err
	}
	if err := m.Check(ctx); err != nil {
		return copied, err
	}
	// Once more, as it took its time: from here on nothing is removed any more.
	return copied, m.checkUnheld(ctx, source, accounts)
}

// removeRecords removes what an earlier attempt wrote and the source has no longer.
func (m Mover) removeRecords(ctx context.Context, source string, accounts map[string]bool) error {
	has := map[Record]bool{}
	err := errors.Join(
		each(m.files(ctx), func(f file.File) error { has[FileRecord(f)] = true; return nil }),
		each(m.Records.Usage(ctx), func(u Usage) error { has[UsageRecord(u)] = true; return nil }),
		each(m.Records.Budgets(ctx), func(b budget.Budget) error { has[BudgetRecord(b.ID)] = true; return nil }),
		each(m.Records.Jobs(ctx), func(j job.Job) error { has[JobRecord(j)] = j.Status.Terminal(); return nil }),
	)
	if err != nil {
		return err
	}
	for account := range accounts {
		err := each(m.Target.Written(ctx, source, account), func(r Record) error {
			if has[r] {
				return nil
			}
			return m.Target.Remove(ctx, source, r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// putRecords writes all that keys lead to.
func (m Mover) putRecords(ctx context.Context, source string) error {
	held := map[budget.Counter]int64{}
	for _, step := range []func() error{
		func() error {
			return each(m.files(ctx), func(f file.File) error { return m.Target.PutFile(ctx, source, f) })
		},
		func() error {
			return each(m.Records.Usage(ctx), func(u Usage) error { return m.Target.PutUsage(ctx, source, u) })
		},
		func() error {
			return each(m.Records.Budgets(ctx), func(b budget.Budget) error { return m.Target.PutBudget(ctx, source, b) })
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
				return m.Target.PutJob(ctx, source, j, attempts)
			})
		},
		func() error {
			return each(m.Records.Counters(ctx), func(c Counter) error {
				c.Used = max(0, c.Used-held[c.Counter])
				return m.Target.PutCounter(ctx, source, c)
			})
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
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

package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/cursor"
	"cutroom/shared/domain/fault"
)

type Config struct {
	Store Store
	Now   func() time.Time
	// Random must be cryptographically secure, because job ids must not be guessable.
	Random  io.Reader
	Workers map[Lane]int // the number of jobs that run concurrently
	// Spare is the number of extra slots per lane for brief jobs of accounts with no job on that lane. Admission
	// does not count them.
	Spare int
	// Both ages are counted from the job's end.
	ResultAge, RecordAge time.Duration
	SpreadBlobs          bool
	Cursors              cursor.Codec
	Watcher              Watcher      // nil means polling
	Orchestrator         Orchestrator // may be nil
	Priorities           bool         // whether the queue delivers jobs with low priority last
	// Estimates, Queues, RunTimes and Budgets may be nil.
	Estimates EstimateReader
	Queues    Queues
	RunTimes  RunTimes
	Budgets   Budgets
	// MaxLength is assumed for results whose length is unknown when the job is accepted.
	MaxLength time.Duration
	Logger    *slog.Logger
}

type Budgets interface {
	// Claims returns the claims for a job, or nil if no budget applies. The parameter `most` is the job's maximum
	// usage.
	Claims(ctx context.Context, account, key string, most budget.Amounts) ([]budget.Claim, error)
	// Warn sends the warnings that are due after a job has reserved amounts or was rejected.
	Warn(ctx context.Context, claims []budget.Claim, refused bool)
}

const (
	DefaultResultAge = 24 * time.Hour
	DefaultRecordAge = 7 * 24 * time.Hour
)

type Service struct {
	config Config
	// admitting is locked from when the backlog is read until the job is accepted, so that admission is exact.
	admitting sync.Mutex

	// estimating guards the two fields below.
	estimating  sync.Mutex
	estimates   Estimates
	estimatedAt time.Time

	queues queues
}

func NewService(c Config) *Service {
	if c.ResultAge == 0 {
		c.ResultAge = DefaultResultAge
	}
	if c.RecordAge == 0 {
		c.RecordAge = DefaultRecordAge
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{config: c}
}

func (s *Service) Ages() (result, record time.Duration) {
	return s.config.ResultAge, s.config.RecordAge
}

func (s *Service) Now() time.Time { return s.config.Now() }

// NewID returns a job id. It is called before the upload starts, because the names of input blobs contain the id.
func (s *Service) NewID() (string, error) { return NewID(s.config.Now(), s.config.Random) }

func (s *Service) InputBlob(id, field string) string {
	if s.config.SpreadBlobs {
		return spreadFolder(id) + "/" + field
	}
	return InputBlob(id, field)
}

// NewID returns "job_" followed by a ULID, which sorts by time and has 80 random bits.
func NewID(now time.Time, random io.Reader) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), random)
	if err != nil {
		return "", fmt.Errorf("job: generate an id: %w", err)
	}
	return "job_" + id.String(), nil
}

// IDTime returns the time when NewID generated an id, or the zero time if NewID did not generate it.
func IDTime(id string) time.Time {
	drawn, err := ulid.ParseStrict(strings.TrimPrefix(id, "job_"))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(drawn.Time())
}

func (s *Service) NewSeed() (uint32, error) {
	var bytes [4]byte
	if _, err := io.ReadFull(s.config.Random, bytes[:]); err != nil {
		return 0, fmt.Errorf("job: generate a seed: %w", err)
	}
	return uint32(bytes[0])<<24 | uint32(bytes[1])<<16 | uint32(bytes[2])<<8 | uint32(bytes[3]), nil
}

// Submit accepts a job whose inputs are stored. The caller sets ID, Account, Key, Model, Lane, Seed, Request and
// Estimate, and deletes the inputs if Submit fails. limit is the account's maximum number of pending and
// processing jobs. wait is how long the caller waits for the job to end. For both, 0 means no limit.
//
// Errors: as for CheckCapacity; fault.Exhausted if too little is left of a budget.
func (s *Service) Submit(ctx context.Context, j Job, limit int, wait time.Duration) (Job, error) {
	j, claims, err := s.accept(ctx, j, limit, wait)
	if len(claims) > 0 && (err == nil || fault.Is(err, fault.Exhausted)) {
		s.config.Budgets.Warn(ctx, claims, err != nil)
	}
	if err != nil {
		var refusal *fault.Error
		if errors.As(err, &refusal) && refusal.Code == fault.Limited && refusal.RetryAfter == 0 {
			refusal.RetryAfter = retryAfter()
		}
		return Job{}, err
	}
	return j, nil
}

// accept returns the budget claims even if a budget rejected them.
func (s *Service) accept(ctx context.Context, j Job, limit int, wait time.Duration) (Job, []budget.Claim, error) {
	// Without the lock, every job in a burst would see the same free capacity.
	s.admitting.Lock()
	defer s.admitting.Unlock()
	if err := s.checkCapacity(ctx, j, limit, wait); err != nil {
		return Job{}, nil, err
	}
	j.Status = Pending
	j.Request.Spread = s.config.SpreadBlobs && len(j.Request.Inputs) == 0
	j.CreatedAt = s.config.Now().UTC().Truncate(time.Millisecond)
	j.Deadline = j.CreatedAt.Add(MaxAge)
	if within := j.Request.seconds(StartWithin); within > 0 {
		j.Deadline = j.CreatedAt.Add(min(within, MaxAge))
	}
	var claims []budget.Claim
	if s.config.Budgets != nil {
		var err error
		if claims, err = s.config.Budgets.Claims(ctx, j.Account, j.Key, Most(j, s.config.MaxLength)); err != nil {
			return Job{}, nil, fmt.Errorf("job: read the budgets: %w", err)
		}
	}
	return j, claims, s.config.Store.Accept(ctx, j, limit, claims...)
}

// Resume reports whether an interrupted Submit accepted the job. It also queues the job if that is still necessary.
func (s *Service) Resume(ctx context.Context, id string) (accepted bool, err error) {
	j, err := s.config.Store.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err == nil && j.Status == Pending {
		err = s.config.Store.Accept(ctx, j, 0)
	}
	if err != nil {
		return false, fmt.Errorf("job: resume %s: %w", id, err)
	}
	return true, nil
}

// CheckCapacity rejects a job before a large upload. It assumes normal priority. Submit may still reject it later.
//
// Errors: fault.Limited if the account has reached its limit, the queue is full, or the job would
// probably not end while the caller waits.
func (s *Service) CheckCapacity(ctx context.Context, lane Lane, account string, limit int, wait time.Duration) error {
	brief := Request{Length: time.Second} // the job may be
	return s.checkCapacity(ctx, Job{Lane: lane, Account: account, Request: brief}, limit, wait)
}

func (s *Service) checkCapacity(ctx context.Context, j Job, limit int, wait time.Duration) error {
	backlog, err := s.config.Store.Backlog(ctx, j.Lane, j.Account)
	if err != nil {
		return fmt.Errorf("job: read the backlog: %w", err)
	}
	if !j.Low() {
		backlog.Jobs -= backlog.Low
		backlog.AccountJobs -= backlog.AccountLow
	}
	backlog.Brief = j.Brief()
	return s.admit(backlog, j.Lane, limit, wait)
}

// HasPriorities reports whether jobs with low priority are accepted.
func (s *Service) HasPriorities() bool { return s.config.Priorities }

func (s *Service) admit(backlog Backlog, lane Lane, limit int, wait time.Duration) error {
	if limit > 0 && backlog.AccountOpen >= limit {
		full := TooManyOpen(limit)
		full.RetryAfter = retryAfter()
		return full
	}
	backlog.Spare = s.config.Spare
	return backlog.AdmitWaiting(wait, s.config.Workers[lane], s.config.Now())
}

// retryAfter is random, so that an account's callers do not all retry at the same time.
func retryAfter() time.Duration { return 2*time.Second + rand.N(3*time.Second) }

// Get returns an account's job. If its deadline has passed, Get ends it.
//
// Errors: fault.NotFound if the job does not exist or belongs to another account, or if its record has expired.
func (s *Service) Get(ctx context.Context, account, id string) (Job, error) {
	j, err := s.config.Store.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Job{}, ErrNotFound
	}
	if err != nil {
		return Job{}, fmt.Errorf("job: get %s: %w", id, err)
	}
	now := s.config.Now()
	if j.Account != account || s.forgotten(j, now) {
		return Job{}, ErrNotFound
	}
	if !j.Status.Terminal() && !now.Before(j.Deadline) {
		expired, err := s.config.Store.Expire(ctx, id, now)
		if fault.Is(err, fault.StorageFull) {
			// The job has ended, even if the store cannot record that yet.
			return j.At(now), nil
		}
		if err != nil {
			return Job{}, fmt.Errorf("job: expire %s: %w", id, err)
		}
		return expired, nil
	}
	return j, nil
}

// CheckResult returns nil if the job has a result.
//
// Errors: fault.NotFound if the result has expired; fault.Conflict if the job has failed;
// fault.Conflict with RetryAfter if the job is pending or processing.
func (s *Service) CheckResult(j Job) error {
	switch {
	case j.Status == Failed:
		return fault.New(fault.Conflict, "The job failed (%s): %s", j.Failure.Code, j.Failure.Message)
	case j.Status != Completed:
		notReady := fault.New(fault.Conflict, "The job is %s; its result is not ready.", j.Status)
		notReady.RetryAfter = 2 * time.Second
		return notReady
	case !s.config.Now().Before(j.ResultExpiry(s.config.ResultAge)):
		return ErrResultExpired
	}
	return nil
}

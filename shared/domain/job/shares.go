package job

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"cutroom/shared/domain/fault"
)

// Shares signs links by which anyone can read the result of a job until they end
// (docs/contract/jobs.md#shares). Nothing is stored for a link: another secret, or
// the deletion of the result, voids it. The zero value takes no link.
type Shares struct {
	secret func(context.Context) ([]byte, error)
	now    func() time.Time
}

// NewShares returns Shares that sign with the secret.
func NewShares(secret []byte, now func() time.Time) Shares {
	return NewSharesFrom(func(context.Context) ([]byte, error) { return secret, nil }, now)
}

// NewSharesFrom returns Shares that sign with a secret that is requested whenever it
// is needed. The function should cache it.
func NewSharesFrom(secret func(context.Context) ([]byte, error), now func() time.Time) Shares {
	return Shares{secret, now}
}

// Share is what makes a link: the end as a Unix time in seconds, and the signature.
type Share struct{ Expires, Signature string }

var (
	// ErrNoShare is returned for a link that was not signed here, or has ended.
	ErrNoShare = fault.New(fault.Forbidden, "The link is not valid, or has ended.")
	// ErrSharedGone is returned for a link whose result was deleted.
	ErrSharedGone = fault.New(fault.NotFound, "What this link led to was deleted.")
)

// Sign returns the share of the job until the time, which is cut to seconds.
//
// Errors: the secret cannot be read.
func (s Shares) Sign(ctx context.Context, id string, until time.Time) (Share, error) {
	expires := strconv.FormatInt(until.Unix(), 10)
	signature, err := s.signature(ctx, id, expires)
	return Share{expires, signature}, err
}

// Check refuses a share of the job that Sign did not return, or that has ended.
//
// Errors: ErrNoShare; the secret cannot be read.
func (s Shares) Check(ctx context.Context, id string, share Share) error {
	if s.secret == nil {
		return ErrNoShare
	}
	want, err := s.signature(ctx, id, share.Expires)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(share.Signature), []byte(want)) {
		return ErrNoShare
	}
	expires, err := strconv.ParseInt(share.Expires, 10, 64)
	if err != nil || s.now().Unix() >= expires {
		return ErrNoShare
	}
	return nil
}

func (s Shares) signature(ctx context.Context, id, expires string) (string, error) {
	secret, err := s.secret(ctx)
	if err != nil {
		return "", fmt.Errorf("job: the secret of shares: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	// The purpose comes first, so that nothing else signed with the secret can pass
	// for a share. An id holds no NUL.
	mac.Write([]byte("share of a result\x00" + id + "\x00" + expires))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Shared returns the job of a share that was checked, if its result is still there.
//
// Errors: ErrSharedGone.
func (s *Service) Shared(ctx context.Context, id string) (Job, error) {
	j, err := s.config.Store.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Job{}, ErrSharedGone
	}
	if err != nil {
		return Job{}, fmt.Errorf("job: get %s: %w", id, err)
	}
	if s.CheckResult(j) != nil {
		return Job{}, ErrSharedGone
	}
	return j, nil
}

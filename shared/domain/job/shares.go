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

// Shares signs public links to job results (docs/contract/jobs.md#shares). Links are not stored, so
// a new secret invalidates them all. The zero value accepts no link.
type Shares struct {
	secret func(context.Context) ([]byte, error)
	now    func() time.Time
}

func NewShares(secret []byte, now func() time.Time) Shares {
	return NewSharesFrom(func(context.Context) ([]byte, error) { return secret, nil }, now)
}

// NewSharesFrom returns Shares that call the function secret for every signature. The function should cache its
// result.
func NewSharesFrom(secret func(context.Context) ([]byte, error), now func() time.Time) Shares {
	return Shares{secret, now}
}

// Share contains a link's expiry as a Unix time in seconds, and its signature.
type Share struct{ Expires, Signature string }

var (
	ErrNoShare    = fault.New(fault.Forbidden, "The link is invalid or has expired.")
	ErrSharedGone = fault.New(fault.NotFound, "The result behind this link was deleted.")
)

// Sign returns a link to the job's result. The link expires at the given time, rounded down to seconds.
func (s Shares) Sign(ctx context.Context, id string, until time.Time) (Share, error) {
	expires := strconv.FormatInt(until.Unix(), 10)
	signature, err := s.signature(ctx, id, expires)
	return Share{expires, signature}, err
}

// Errors: ErrNoShare if the signature is invalid or the link has expired.
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
		return "", fmt.Errorf("job: read the secret of shares: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	// The purpose comes first, so that no signature made with the secret for another purpose is valid here.
	mac.Write([]byte("share of a result\x00" + id + "\x00" + expires))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Shared returns the job of a link that has been checked.
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

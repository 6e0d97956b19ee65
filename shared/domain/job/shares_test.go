package job_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

func TestSharesAreBoundToJobAndExpiry(t *testing.T) {
	ctx, now := t.Context(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(at time.Time, secret string) job.Shares {
		return job.NewShares([]byte(secret), func() time.Time { return at })
	}
	shares := at(now, "a secret")
	until := now.Add(time.Hour)
	share, err := shares.Sign(ctx, "job_1", until)
	if err != nil {
		t.Fatal(err)
	}
	later, err := shares.Sign(ctx, "job_1", until.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for says, c := range map[string]struct {
		by    job.Shares
		id    string
		share job.Share
		ok    bool
	}{
		"as signed":                {shares, "job_1", share, true},
		"in its last second":       {at(until.Add(-time.Second), "a secret"), "job_1", share, true},
		"at its expiry":            {at(until, "a secret"), "job_1", share, false},
		"of another job":           {shares, "job_2", share, false},
		"with another expiry":      {shares, "job_1", job.Share{later.Expires, share.Signature}, false},
		"without a signature":      {shares, "job_1", job.Share{share.Expires, ""}, false},
		"without anything":         {shares, "job_1", job.Share{}, false},
		"after the secret changed": {at(now, "another"), "job_1", share, false},
		"without a secret":         {job.Shares{}, "job_1", share, false},
	} {
		err := c.by.Check(ctx, c.id, c.share)
		if ok := err == nil; ok != c.ok || !ok && !errors.Is(err, job.ErrNoShare) {
			t.Errorf("%s: %v", says, err)
		}
	}
	gone := errors.New("no secret")
	without := job.NewSharesFrom(func(context.Context) ([]byte, error) { return nil, gone }, time.Now)
	if _, err := without.Sign(ctx, "job_1", until); !errors.Is(err, gone) {
		t.Errorf("signed without a secret: %v", err)
	}
	if err := without.Check(ctx, "job_1", share); !errors.Is(err, gone) {
		t.Errorf("checked without a secret: %v", err)
	}
}

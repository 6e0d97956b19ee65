package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// trouble makes every fourth call fail.
var trouble = awstest.Faults{Throttled: 0.06, Failed: 0.06, LostCalls: 0.04, LostAnswers: 0.08}

// known reports whether an error means that nothing was written.
func known(err error) bool {
	return fault.Is(err, fault.Limited) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict)
}

func until(ctx context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || known(err) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

func TestUsageCountsOnceThroughFailures(t *testing.T) {
	cloud := local.Cloud(t)
	table := cloud.MakeTable(t, "usage")
	proxy := cloud.Proxy(t, 11, trouble)
	store := dynamo.NewUsage(dynamo.NewClient(proxy.Config()), table)
	const workers, turns, each = 4, 6, 5
	for _, err := range conformance.Race(workers, func(worker int) error {
		for turn := range turns {
			var records []usage.Record
			for i := range each {
				records = append(records, usage.Record{
					ID: fmt.Sprint(worker, "-", turn, "-", i), Account: "acme", Model: "a", Day: "2026-02-02",
					Counts: usage.Counts{Requests: 1, PromptTokens: 10},
				})
			}
			if err := until(t.Context(), func() error { return store.Add(t.Context(), records) }); err != nil {
				return err
			}
		}
		return nil
	}) {
		conformance.OK(t, err)
	}
	got, err := dynamo.NewUsage(client(cloud), table).Totals(t.Context(), "acme", "2026-02-02", "2026-02-02", usage.All)
	conformance.OK(t, err)
	const all = workers * turns * each
	want := usage.Total{Day: "2026-02-02", Model: "a", Counts: usage.Counts{Requests: all, PromptTokens: 10 * all}}
	if len(got) != 1 || got[0] != want {
		t.Errorf("the totals are %+v, want %+v; faults: %v", got, want, proxy.Met())
	}
}

func TestJobsAreBilledOnceThroughFailures(t *testing.T) {
	cloud := local.Cloud(t)
	clean := dynamo.NewClient(cloud.Config())
	jobs, usages := cloud.MakeTable(t, "jobs"), cloud.MakeTable(t, "usage")
	proxy := cloud.Proxy(t, 13, trouble)
	client := dynamo.NewClient(proxy.Config())
	store := dynamo.NewJobs(dynamo.NewRuns(client, jobs).CountIn(dynamo.NewUsage(client, usages)), &handedOver{}, nil, time.Now)
	const workers, each, price = 5, 6, 20_000
	for _, err := range conformance.Race(workers, func(worker int) error {
		for i := range each {
			j := newJob(fmt.Sprintf("job_%d_%d", worker, i))
			j.Request.Price = &catalog.MediaPrice{Per: catalog.PerEdit, Millionths: price, Currency: "EUR"}
			for _, step := range []func() error{
				func() error { return store.Accept(t.Context(), j, 0) },
				func() error {
					_, err := store.Start(t.Context(), j.ID, "n1", time.Now())
					return err
				},
				func() error {
					if i == 0 {
						return store.Runs.Fail(t.Context(), j.ID, "", job.CancelledFailure(), j.CreatedAt)
					}
					return store.Runs.Complete(t.Context(), j.ID, "n1", job.Result{Blob: "a"}, j.CreatedAt)
				},
			} {
				if err := until(t.Context(), step); err != nil {
					return err
				}
			}
		}
		return nil
	}) {
		conformance.OK(t, err)
	}
	totals, err := dynamo.NewUsage(clean, usages).Totals(t.Context(), "acme", "2000-01-01", "9999-12-31", usage.All)
	conformance.OK(t, err)
	var sum usage.Counts
	for _, total := range totals { // midnight may have passed
		sum.Add(total.Counts)
	}
	const all = workers * (each - 1)
	if want := (usage.Counts{Jobs: workers * each, JobsCompleted: all, Cost: all * price * 1000}); sum != want {
		t.Errorf("the usage is %+v, want %+v; faults: %v", sum, want, proxy.Met())
	}
}

func TestRatesCountOnceDespiteFailures(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 17, awstest.Faults{LostAnswers: 0.3, Failed: 0.1})
	now := time.Now()
	rates := dynamo.NewRates(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage"),
		func() time.Time { return now }, rand.Text)
	allowed, failed := 0, 0
	for range 60 {
		state, err := rates.Take(t.Context(), "a", 1, ratelimit.Rate{PerSecond: 1, Burst: 40})
		switch {
		case err != nil:
			failed++
		case state.Allowed:
			allowed++
		}
	}
	if allowed+failed < 40 || allowed > 40 || failed > 5 {
		t.Errorf("%d were allowed and %d failed, want 40 allowed; faults: %v", allowed, failed, proxy.Met())
	}
}

func TestKeysWorkThroughFailures(t *testing.T) {
	cloud := local.Cloud(t)
	table := cloud.MakeTable(t, "credentials")
	proxy := cloud.Proxy(t, 19, trouble)
	log := cloud.MakeTable(t, "usage")
	store, calm := dynamo.NewKeys(dynamo.NewClient(proxy.Config()), table, log), dynamo.NewKeys(client(cloud), table, log)
	now := time.Now()
	for i := range 40 {
		key, err := credential.NewKey(fmt.Sprintf("ck_secret-%08d", i), "acme", "default", "", now)
		conformance.OK(t, err)
		conformance.OK(t, until(t.Context(), func() error { return store.CreateKey(t.Context(), audit.Operator(key.CreatedAt), key) }))
		token := credential.Token{
			Hash: credential.HashOf(fmt.Sprint("ek_", i)), Key: key, CreatedAt: key.CreatedAt,
			ExpiresAt: key.CreatedAt.Add(time.Hour),
		}
		conformance.OK(t, until(t.Context(), func() error { return store.CreateToken(t.Context(), token) }))
		if i%2 == 0 {
			conformance.OK(t, until(t.Context(), func() error {
				_, err := store.RevokeKey(t.Context(), audit.Operator(now), key.ID)
				return err
			}))
		}
		found, err := calm.FindToken(t.Context(), token.Hash)
		if err != nil || found.Key.RevokedAt.IsZero() != (i%2 == 1) {
			t.Errorf("the token of key %d is %+v, %v", i, found, err)
		}
	}
}

package dynamo_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

type calls []struct {
	operation string
	call      func() error
}

// asDocumented checks that awstest's calls.tsv lists exactly these operations for the type.
func asDocumented(t *testing.T, proxy *awstest.Proxy, of string, calls calls) {
	t.Helper()
	documented := awstest.Documented(t, of)
	proxy.Calls()
	for _, c := range calls {
		conformance.OK(t, c.call())
		want, known := documented[c.operation]
		if got := awstest.CallList(proxy.Calls()); !known || got != want {
			t.Errorf("%s.%s makes the calls %q, but documented are %q", of, c.operation, got, want)
		}
		delete(documented, c.operation)
	}
	for operation := range documented {
		t.Errorf("%s.%s is documented but was not tried", of, operation)
	}
}

func limited(err error) error {
	if fault.Is(err, fault.Limited) {
		return nil
	}
	return fmt.Errorf("not limited: %w", err)
}

func TestKeyCallsMatchDocumentation(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewKeys(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "credentials"), cloud.MakeTable(t, "usage"))
	ctx, now := t.Context(), time.Now()
	key, err := credential.NewKey("ck_development", "acme", "default", "", now)
	conformance.OK(t, err)
	admin, err := credential.NewKey("ck_administration", "acme", "default", "", now)
	conformance.OK(t, err)
	other, err := credential.NewKey("ck_another_one", "acme", "default", "", now)
	conformance.OK(t, err)
	conformance.OK(t, store.CreateKey(ctx, audit.Operator(now), admin))
	conformance.OK(t, store.CreateKey(ctx, audit.Operator(now), other))
	token := credential.Token{Hash: credential.HashOf("ek_a"), Key: key, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	asDocumented(t, proxy, "Keys", calls{
		{"CreateKey", func() error { return store.CreateKey(ctx, audit.Operator(key.CreatedAt), key) }},
		{"FindKey", func() error { _, err := store.FindKey(ctx, key.Hash); return err }},
		{"CreateToken", func() error { return store.CreateToken(ctx, token) }},
		{"FindToken", func() error { _, err := store.FindToken(ctx, token.Hash); return err }},
		{"ListKeys", func() error { _, err := store.ListKeys(ctx, "acme"); return err }},
		{"RevokeKey", func() error { _, err := store.RevokeKey(ctx, audit.Operator(now), key.ID); return err }},
		{"RevokeKey by a key", func() error {
			_, err := store.RevokeKey(ctx, audit.Origin{By: admin.ID, At: now}, other.ID)
			return err
		}},
		{"ForgetKey", func() error { return store.ForgetKey(ctx, key.ID) }},
	})
}

func TestFileCallsMatchDocumentation(t *testing.T) {
	cloud := local.Cloud(t)
	s := newFileTable(t, cloud)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewFiles(dynamo.NewClient(proxy.Config()), s.table)
	ctx, account := t.Context(), "acme"
	f, promise, late := s.new(1, 60), s.new(2, 10), s.new(3, 60)
	promise.Pending, promise.UploadUntil = true, s.now.Add(time.Hour)
	late.CreatedAt, late.ExpiresAt = s.now.Add(time.Hour), s.now.Add(2*time.Hour)
	held := file.Reservation{Account: account, ID: "a", Until: s.now.Add(time.Hour)}
	published := promise
	published.Pending, published.ExpiresAt = false, s.now.Add(2*time.Hour)
	asDocumented(t, proxy, "Files", calls{
		{"Create", func() error { return store.Create(ctx, f, 100) }},
		{"Create of a promise", func() error { return store.Create(ctx, promise, 100) }},
		{"PendingUpload", func() error { _, err := store.PendingUpload(ctx, promise.ID); return err }},
		{"Finalize", func() error { return store.Finalize(ctx, published, s.now) }},
		{"Get", func() error { _, err := store.Get(ctx, account, f.ID, s.now); return err }},
		{"FindMD5", func() error { _, err := store.FindMD5(ctx, account, f.MD5, s.now); return err }},
		{"List", func() error { _, _, err := store.List(ctx, account, "", 100, s.now); return err }},
		{"Create, full", func() error { return limited(store.Create(ctx, s.new(4, 60), 100)) }},
		{"Create, freeing an expired file", func() error { return store.Create(ctx, late, 100) }},
		{"Delete", func() error { _, err := store.Delete(ctx, account, late.ID, late.CreatedAt); return err }},
		{"Reserve", func() (err error) { held, err = store.Reserve(ctx, held, 10, 10, 100, s.now); return err }},
		{"Reserve, growing", func() (err error) { held, err = store.Reserve(ctx, held, 30, 30, 100, s.now); return err }},
		{"Reserve, nearly full", func() (err error) { held, err = store.Reserve(ctx, held, 50, 51, 185, s.now); return err }},
		{"Reserve, full", func() error { _, err := store.Reserve(ctx, held, 101, 200, 100, s.now); return limited(err) }},
		{"Release", func() error { return store.Release(ctx, held) }},
		{"Create in the place of a reservation", func() (err error) {
			reserved := s.new(5, 20)
			if reserved.Reserved, err = store.Reserve(ctx, file.Reservation{Account: account, ID: "b", Until: s.now.Add(time.Hour)},
				20, 20, 100, s.now); err != nil {
				return err
			}
			proxy.Calls()
			return store.Create(ctx, reserved, 100)
		}},
		{"Abandon", func() error {
			broken := s.new(6, 1)
			broken.Pending, broken.UploadUntil = true, s.now.Add(time.Hour)
			conformance.OK(t, store.Create(ctx, broken, 100))
			proxy.Calls()
			return store.Abandon(ctx, broken.ID)
		}},
		{"Free", func() error { return store.Free(ctx, published) }},
		{"Free, again", func() error { return store.Free(ctx, published) }},
	})
}

func TestUsageCallsMatchDocumentation(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewUsage(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage"))
	record := usage.Record{ID: "a", Account: "acme", Model: "m", Day: "2026-02-02", Counts: usage.Counts{Requests: 1}}
	asDocumented(t, proxy, "Usage", calls{
		{"Add", func() error { return store.Add(t.Context(), []usage.Record{record}) }},
		{"Totals", func() error {
			_, err := store.Totals(t.Context(), "acme", "2026-02-01", "2026-02-28", usage.All)
			return err
		}},
	})
}

func TestRateCallsMatchDocumentation(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	now := time.Now()
	records, table := dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage")
	store := dynamo.NewRates(records, table, func() time.Time { return now }, rand.Text)
	other := dynamo.NewRates(records, table, func() time.Time { return now }, rand.Text)
	type count func(context.Context, string, int, ratelimit.Rate) (ratelimit.State, error)
	one := func(count count, name string, n int) func() error {
		return func() error {
			_, err := count(t.Context(), name, n, ratelimit.Rate{PerSecond: 1, Burst: 5})
			return err
		}
	}
	asDocumented(t, proxy, "Rates", calls{
		{"Take", one(store.Take, "a", 1)},
		{"Take, in use", one(store.Take, "a", 1)},
		{"Take, in use by others", one(other.Take, "a", 1)},
		{"Take, nothing", one(store.Take, "a", 0)},
		{"Take, over the burst", one(store.Take, "a", 6)},
		{"Charge", one(store.Charge, "b", 1)},
	})
}

func TestSessionCallsMatchDocumentation(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	clock := &storeClock{now: time.Now()}
	table := cloud.MakeTable(t, "sessions")
	open := func(config aws.Config) *dynamo.Sessions {
		config.HTTPClient = &http.Client{Transport: clock}
		return dynamo.NewSessions(dynamo.NewClient(config), table)
	}
	store, uncounted := open(proxy.Config()), open(cloud.Config())
	ctx := t.Context()
	slot := func(id, epoch string) session.Slot { return session.Slot{ID: id, Account: "acme", Epoch: epoch} }
	renew := func() error {
		_, _, err := store.RenewTickets(ctx, "acme", "holder", []session.Ticket{{ID: "c", Longest: 9}, {ID: "d", Longest: 9}})
		return err
	}
	asDocumented(t, proxy, "Sessions", calls{
		{"Active, none", func() error { _, err := store.Active(ctx, "acme"); return err }},
		{"Begin", func() error { return store.Begin(ctx, "one", "") }},
		{"Address", func() error { _, err := store.Address(ctx, "one"); return err }},
		{"Renew", func() error { return store.Renew(ctx, "one") }},
		{"Take", func() error { return store.Take(ctx, slot("a", "one"), 1) }},
		{"Take, full", func() error { return limited(store.Take(ctx, slot("b", "one"), 1)) }},
		{"Active", func() error { _, err := store.Active(ctx, "acme"); return err }},
		{"Take, from a dead lease", func() error {
			clock.pass(session.TakeAfter)
			conformance.OK(t, uncounted.Begin(ctx, "two", ""))
			return store.Take(ctx, slot("b", "two"), 1)
		}},
		{"RenewTickets", func() error { return renew() }},
		{"RenewTickets, young", func() error { return renew() }},
		{"Take, not yet", func() error { return limited(store.Take(ctx, slot("c", "two"), 1)) }},
		{"Free", func() error { return store.Free(ctx, slot("b", "two")) }},
		{"Take, with a ticket", func() error { return store.Take(ctx, slot("c", "two"), 1) }},
		{"End", func() error { return store.End(ctx, "two") }},
	})
}

package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/move"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// source is what one machine keeps.
type source struct {
	id       string
	keys     []credential.Key
	budgets  []budget.Budget
	counters []move.Counter
	files    []file.File
	usage    []move.Usage
	jobs     []job.Job
	attempts map[string][]webhook.Attempt
}

func sequence[V any](all []V) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

func (s *source) ID(context.Context) (string, error)                      { return s.id, nil }
func (s *source) Keys(context.Context) iter.Seq2[credential.Key, error]   { return sequence(s.keys) }
func (s *source) Budgets(context.Context) iter.Seq2[budget.Budget, error] { return sequence(s.budgets) }
func (s *source) Counters(context.Context) iter.Seq2[move.Counter, error] {
	return sequence(s.counters)
}
func (s *source) Files(context.Context) iter.Seq2[file.File, error]  { return sequence(s.files) }
func (s *source) Usage(context.Context) iter.Seq2[move.Usage, error] { return sequence(s.usage) }
func (s *source) Jobs(context.Context) iter.Seq2[job.Job, error]     { return sequence(s.jobs) }
func (s *source) Attempts(_ context.Context, id string) ([]webhook.Attempt, error) {
	return s.attempts[id], nil
}

// newSource returns a machine's records of one account, with something of each kind.
func newSource(t *testing.T, secret, account string) *source {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	key, err := credential.NewKey(secret, account, credential.DefaultTier, "laptop", now)
	if err != nil {
		t.Fatal(err)
	}
	one := budget.Budget{ID: budget.ID{Account: account, Period: budget.Month, Unit: budget.Jobs}, Limit: 100}
	hold := budget.Hold{Counter: one.Counter(now), Amount: 1}
	ended, open := newJob("job_"+account+"_ended"), newJob("job_"+account+"_open")
	ended.Account, ended.Key, open.Account, open.Key = account, key.ID, account, key.ID
	ended.Status, ended.Progress, ended.Runs, ended.Webhook = job.Completed, 1, 2, "https://example.com/hook"
	ended.StartedAt, ended.CompletedAt = now, now.Add(time.Second)
	ended.Request.Prompt = "noir"
	ended.Result = &job.Result{Blob: "jobs/" + ended.ID + "/result", MIME: "video/mp4", Size: 6, SHA256: "abc"}
	open.Status, open.Runs, open.Nonce, open.StartedAt = job.Processing, 1, "nonce", now
	open.Holds = []budget.Hold{hold}
	failed := newJob("job_" + account + "_failed")
	failed.Account, failed.Key, failed.Status, failed.CompletedAt = account, key.ID, job.Failed, now
	failed.Failure = &job.Failure{Code: job.EngineError, Message: "It failed."}
	return &source{
		id: "source-" + account, keys: []credential.Key{key}, budgets: []budget.Budget{one},
		counters: []move.Counter{{Counter: one.Counter(now), Used: 3}},
		files: []file.File{{
			ID: "file_" + account, Account: account, Key: key.ID, Filename: "a.mp4", MIME: "video/mp4", Size: 6,
			MD5: "e6156aa341999f97d9ada6dacffe2c0a", Blob: "files/file_" + account, CreatedAt: now,
			ExpiresAt: now.Add(time.Hour), Lifetime: time.Hour, UploadUntil: now.Add(time.Minute),
		}},
		usage: []move.Usage{{Account: account, Total: usage.Total{
			Day: "2026-02-03", Model: "gen-2.5", Key: key.ID, Counts: everyCount(),
		}}},
		jobs: []job.Job{ended, open, failed},
		attempts: map[string][]webhook.Attempt{ended.ID: {
			{Number: 1, At: now, Duration: time.Second, Status: 500, Next: now.Add(time.Second)},
			{Number: 2, At: now.Add(time.Second), Duration: time.Second, Status: 200},
		}},
	}
}

// everyCount returns counts of which none is 0.
func everyCount() (counts usage.Counts) {
	for i, fields := 0, reflect.ValueOf(&counts).Elem(); i < fields.NumField(); i++ {
		fields.Field(i).SetInt(int64(i + 1))
	}
	return counts
}

// started counts the starts of jobs, of which only the first of each does anything.
type started map[string]int

func (s started) Dispatch(_ context.Context, j job.Job) error { s[j.ID]++; return nil }

// errBrokenOff ends a move.
var errBrokenOff = errors.New("killed")

// brokenOff is a target that fails after some writes.
type brokenOff struct {
	move.Target
	left int
}

func (b *brokenOff) write(do func() error) error {
	if b.left--; b.left < 0 {
		return errBrokenOff
	}
	if err := do(); err != nil {
		return err
	}
	// Every other one is killed after the write instead of before it.
	if b.left--; b.left < 0 {
		return errBrokenOff
	}
	return nil
}

func (b *brokenOff) SetLedger(ctx context.Context, id string, s move.State) error {
	return b.write(func() error { return b.Target.SetLedger(ctx, id, s) })
}

func (b *brokenOff) PutFile(ctx context.Context, id string, f file.File) error {
	return b.write(func() error { return b.Target.PutFile(ctx, id, f) })
}

func (b *brokenOff) PutUsage(ctx context.Context, id string, u move.Usage) error {
	return b.write(func() error { return b.Target.PutUsage(ctx, id, u) })
}

func (b *brokenOff) PutBudget(ctx context.Context, id string, one budget.Budget) error {
	return b.write(func() error { return b.Target.PutBudget(ctx, id, one) })
}

func (b *brokenOff) PutCounter(ctx context.Context, id string, c move.Counter) error {
	return b.write(func() error { return b.Target.PutCounter(ctx, id, c) })
}

func (b *brokenOff) PutJob(ctx context.Context, id string, j job.Job, a []webhook.Attempt) error {
	return b.write(func() error { return b.Target.PutJob(ctx, id, j, a) })
}

func (b *brokenOff) Remove(ctx context.Context, id string, r move.Record) error {
	return b.write(func() error { return b.Target.Remove(ctx, id, r) })
}

func (b *brokenOff) PutKey(ctx context.Context, k credential.Key) error {
	return b.write(func() error { return b.Target.PutKey(ctx, k) })
}

func (b *brokenOff) Accept(ctx context.Context, j job.Job) error {
	return b.write(func() error { return b.Target.Accept(ctx, j) })
}

// brokenStore is a store whose writes count among those of a target that is broken off.
type brokenStore struct {
	*diskblob.Store
	with *brokenOff
}

func (s brokenStore) Put(ctx context.Context, name string, r io.Reader) (n int64, err error) {
	return n, s.with.write(func() error { n, err = s.Store.Put(ctx, name, r); return err })
}

func (s brokenStore) Delete(ctx context.Context, name string) error {
	return s.with.write(func() error { return s.Store.Delete(ctx, name) })
}

// deployTables is a deploy without functions.
type deployTables struct {
	tables map[string]string
	starts started
	move.Target
	budgets *dynamo.Budgets
}

func newDeploy(t *testing.T, cloud *awstest.Cloud) *deployTables {
	t.Helper()
	client := dynamo.NewClient(cloud.Config())
	d := &deployTables{tables: cloud.MakeTables(t), starts: started{}}
	d.budgets = dynamo.NewBudgets(client, d.tables["usage"], &machine{}, rand.Text)
	d.Target = dynamo.NewMoved(client, func(name string) string { return d.tables[name] }, d.budgets, d.starts, time.Now)
	return d
}

// folder returns a store with blobs of some names.
func folder(t *testing.T, names ...string) *diskblob.Store {
	t.Helper()
	store, err := diskblob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := store.Put(t.Context(), name, strings.NewReader("bytes ")); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// Wherever a move is broken off, the next one goes on. In the end everything is there once,
// as it was, and the job that had not ended begins anew.
func TestMoveThatIsBrokenOff(t *testing.T) {
	cloud := local.Cloud(t)
	d := newDeploy(t, cloud)
	from := newSource(t, "ck_of_a_move_0001", "acme")
	blobs, closed := folder(t, "files/file_acme", "jobs/job_acme_ended/result"), 0
	to := folder(t)
	mover := move.Mover{
		Records: from, Blobs: blobs, Target: d, Store: to, Digests: true,
		Close: func() error { closed++; return nil }, Now: time.Now,
	}
	broken := 0
	for n := 0; ; n++ {
		mover.Target = &brokenOff{Target: d.Target, left: n}
		_, err := mover.Move(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, errBrokenOff) {
			t.Fatalf("after %d steps: %v", n, err)
		}
		broken++
		keys := dynamo.NewKeys(dynamo.NewClient(cloud.Config()), d.tables["credentials"], d.tables["usage"])
		if _, err := keys.FindKey(t.Context(), from.keys[0].Hash); err == nil && closed == 0 {
			t.Fatal("a key works at the deploy while the source may be served")
		}
	}
	if broken < 8 || closed == 0 {
		t.Errorf("it was broken off %d times, and the source closed %d times", broken, closed)
	}
	mover.Target = d.Target
	if err := mover.Check(t.Context()); err != nil {
		t.Error(err)
	}
	wantDeploy(t, cloud, d, from)
	counts, err := mover.Move(t.Context())
	if err != nil || counts.Open != 1 || counts.Ended != 2 || counts.Keys != 1 || counts.Blobs != 2 {
		t.Errorf("once more: %+v, %v", counts, err)
	}
	if counts.Copied != 0 {
		t.Errorf("once more %d blobs were copied", counts.Copied)
	}

	// Who opened the source again is not told that what changed there was moved.
	mover.Closed = func() (bool, error) { return false, nil }
	if _, err := mover.Move(t.Context()); !errors.Is(err, move.ErrReopened) {
		t.Errorf("once more, of a source that was opened again: %v", err)
	}

	// Bytes that differ are noticed.
	if _, err := to.Put(t.Context(), "files/file_acme", strings.NewReader("Bytes ")); err != nil {
		t.Fatal(err)
	}
	if err := mover.Check(t.Context()); !errors.Is(err, move.ErrDiffers) {
		t.Errorf("other bytes: %v", err)
	}
}

// wantDeploy fails unless a deploy has what a source had.
func wantDeploy(t *testing.T, cloud *awstest.Cloud, d *deployTables, from *source) {
	t.Helper()
	client := dynamo.NewClient(cloud.Config())
	runs := dynamo.NewRuns(client, d.tables["jobs"])
	open, err := runs.Get(t.Context(), from.jobs[1].ID)
	if err != nil || open.Status != job.Pending || open.Runs != 0 || !open.Deadline.After(from.jobs[1].Deadline) ||
		len(open.Holds) != 1 {
		t.Errorf("the job that had not ended is %+v, %v", open, err)
	}
	if d.starts[open.ID] == 0 || len(d.starts) != 1 {
		t.Errorf("started were %v", d.starts)
	}
	if used, err := d.budgets.Used(t.Context(), []budget.Counter{from.counters[0].Counter}); err != nil || used[0] != 3 {
		t.Errorf("of the budget %v are used, %v, want 3", used, err)
	}
	totals, err := dynamo.NewUsage(client, d.tables["usage"]).Totals(t.Context(), "acme", "2026-01-01", "2026-12-31")
	if err != nil || len(totals) != 1 || totals[0] != from.usage[0].Total {
		t.Errorf("the usage is %+v, %v", totals, err)
	}
	attempts, err := dynamo.NewWebhooks(client, d.tables["jobs"]).Attempts(t.Context(), from.jobs[0].ID)
	if err != nil || len(attempts) != 2 {
		t.Errorf("the attempts are %+v, %v", attempts, err)
	}
	held, err := d.Holds(t.Context(), "another", "acme")
	if err != nil || held == "" {
		t.Errorf("it holds %q, %v", held, err)
	}
}

// A deploy that has something of an account is not moved to, and nothing is written; nor
// is one changed that has something else under the same id.
func TestMoveToAnotherAccount(t *testing.T) {
	cloud := local.Cloud(t)
	d := newDeploy(t, cloud)
	from := newSource(t, "ck_of_a_move_0002", "acme")
	other := newSource(t, "ck_of_a_move_0003", "acme")
	other.id = "another"
	blobs := folder(t, "files/file_acme")
	for i, s := range []*source{from, other} {
		to := folder(t)
		_, err := move.Mover{
			Records: s, Blobs: blobs, Target: d, Store: to, Close: func() error { return nil }, Now: time.Now,
		}.Move(t.Context())
		if (err == nil) != (i == 0) || i > 0 && !errors.Is(err, move.ErrDiffers) {
			t.Errorf("source %d: %v", i, err)
		}
		for range to.List(t.Context(), "") {
			if i > 0 {
				t.Error("it copied blobs all the same")
			}
		}
	}
	changed := from.files[0]
	changed.Filename = "b.mp4"
	used := from.usage[0]
	used.Requests++
	ended := from.jobs[0]
	ended.Seed++
	key := from.keys[0]
	key.CreatedAt = key.CreatedAt.Add(time.Hour)
	for what, put := range map[string]error{
		"a file": d.PutFile(t.Context(), from.id, changed), "usage": d.PutUsage(t.Context(), from.id, used),
		"a job":     d.PutJob(t.Context(), from.id, ended, nil),
		"a counter": d.PutCounter(t.Context(), from.id, move.Counter{Counter: from.counters[0].Counter, Used: 99}),
		"a key":     d.PutKey(t.Context(), key), "an open job": d.Accept(t.Context(), stranger(from.jobs[1])),
	} {
		if !errors.Is(put, move.ErrDiffers) {
			t.Errorf("%s that differs: %v", what, put)
		}
	}
}

// A deploy holds something of an account whose items are in partitions beside the first.
func TestWhatIsHeldInOtherPartitions(t *testing.T) {
	cloud := local.Cloud(t)
	d := newDeploy(t, cloud)
	client := dynamo.NewClient(cloud.Config())
	for table, attributes := range map[string]map[string]string{
		"usage": {"id": "acme#7", "part": "2026-11-23/gen-2.5/k/0"},
		"jobs":  {"id": "job_1", "part": dynamo.RecordPart, "account": "large#7", "owner": "large"},
	} {
		item := map[string]types.AttributeValue{}
		for name, value := range attributes {
			item[name] = &types.AttributeValueMemberS{Value: value}
		}
		name := d.tables[table]
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item})
		conformance.OK(t, err)
	}
	// Of a busy account, usage may be in a partition that no other account has.
	counts := dynamo.NewUsage(client, d.tables["usage"])
	conformance.OK(t, counts.SpreadUsage(t.Context(), "busy", "2026-11-23"))
	conformance.OK(t, counts.Add(t.Context(), []usage.Record{{
		ID: "0", Account: "busy", Key: "k", Model: "m", Day: "2026-11-23", Busy: true, Counts: usage.Counts{Requests: 1},
	}}))
	for account, want := range map[string]string{"acme": "usage", "large": "jobs", "busy": "usage", "small": ""} {
		held, err := d.Holds(t.Context(), "another", account)
		conformance.OK(t, err)
		conformance.Same(t, "what it holds of "+account, held, want)
	}
}

// stranger returns a job with the id of one of another account.
func stranger(j job.Job) job.Job {
	j.Account = fmt.Sprintf("not-%s", j.Account)
	return j
}

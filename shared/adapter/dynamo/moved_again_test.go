package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/move"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// servedAgain returns a source as it is after it was served again for a while: a file and a
// job were deleted, others added, a job and a webhook have ended, and usage went on. Its blobs
// are changed likewise.
func servedAgain(t *testing.T, before *source, blobs *diskblob.Store) *source {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	after := *before
	added := before.files[0]
	added.ID, added.Blob, added.Size, added.CreatedAt = added.ID+"_2", added.Blob+"_2", 11, now
	after.files = []file.File{added}
	ended := before.jobs[1]
	ended.Status, ended.Progress, ended.Nonce, ended.Holds, ended.CompletedAt = job.Completed, 1, "", nil, now
	ended.Result = &job.Result{Blob: "jobs/" + ended.ID + "/result", MIME: "video/mp4", Size: 6, SHA256: "abc"}
	told := before.jobs[2]
	told.Result, told.Failure = nil, &job.Failure{Code: job.EngineError, Message: "It failed in another way."}
	begun := newJob("job_acme_new")
	begun.Account, begun.Key = before.jobs[0].Account, before.jobs[0].Key
	after.jobs = []job.Job{ended, told, begun}
	after.attempts = map[string][]webhook.Attempt{told.ID: {
		{Number: 1, At: now, Duration: time.Second, Status: 500, Next: now.Add(time.Second)},
		{Number: 2, At: now.Add(time.Second), Duration: time.Second, Status: 204},
	}}
	used, fresh := before.usage[0], before.usage[0]
	used.Requests++
	fresh.Day = "2026-02-04"
	after.usage = []move.Usage{used, fresh}
	other := before.budgets[1]
	other.Limit, other.WarnURL = 5, "https://example.com/warned"
	after.budgets = []budget.Budget{other}
	after.counters = []move.Counter{{Counter: before.counters[0].Counter, Used: 4}}
	for _, gone := range []string{before.files[0].Blob, "jobs/" + before.jobs[0].ID + "/result"} {
		conformance.OK(t, blobs.Delete(t.Context(), gone))
	}
	for _, name := range []string{added.Blob, ended.Result.Blob} {
		_, err := blobs.Put(t.Context(), name, strings.NewReader("more bytes "))
		conformance.OK(t, err)
	}
	return &after
}

// firstSource returns a source before it was served again, and its blobs.
func firstSource(t *testing.T, secret string) (*source, *diskblob.Store) {
	t.Helper()
	from := newSource(t, secret, "acme")
	daily := budget.ID{Account: "acme", Key: from.keys[0].ID, Period: budget.Day, Unit: budget.Jobs}
	from.budgets = append(from.budgets, budget.Budget{ID: daily, Limit: 9})
	used := from.usage[0]
	used.Model = "purged-model"
	from.usage = append(from.usage, used)
	from.jobs[2].Webhook = "https://example.com/hook"
	now := from.jobs[2].CompletedAt
	from.attempts[from.jobs[2].ID] = []webhook.Attempt{{Number: 1, At: now, Status: 500, Next: now.Add(time.Second)}}
	return from, folder(t, from.files[0].Blob, "jobs/"+from.jobs[0].ID+"/result")
}

// Wherever a move is broken off before its keys are made, the source can be served again.
// The next attempts, which are broken off everywhere too, make the deploy have what the
// source has then, and nothing else.
func TestMoveAfterTheSourceWasServedAgain(t *testing.T) {
	cloud := local.Cloud(t)
	for n := 1; ; n += 2 {
		d := newDeploy(t, cloud)
		from, blobs := firstSource(t, fmt.Sprintf("ck_of_a_move_1%03d", n))
		to, closed := folder(t), false
		mover := func(records move.Records, left int) move.Mover {
			breaking := &brokenOff{Target: d.Target, left: left}
			return move.Mover{
				Records: records, Blobs: blobs, Target: breaking, Store: brokenStore{to, breaking}, Digests: true,
				Close: func() error { closed = true; return nil }, Now: time.Now,
			}
		}
		if n == 1 {
			// Bytes that were copied ahead are known as well.
			_, err := mover(from, 100).CopyBlobs(t.Context(), from.id)
			conformance.OK(t, err)
		}
		if _, err := mover(from, n).Move(t.Context()); !errors.Is(err, errBrokenOff) {
			t.Fatalf("the first attempt, after %d steps: %v", n, err)
		}
		if closed {
			if n < 20 {
				t.Errorf("the first attempt got to the keys by %d steps", n)
			}
			return
		}
		after := servedAgain(t, from, blobs)
		err := errBrokenOff
		for left := n % 3; errors.Is(err, errBrokenOff); left += 3 {
			_, err = mover(after, left).Move(t.Context())
		}
		if err != nil {
			t.Fatalf("first broken off after %d steps, then: %v", n, err)
		}
		conformance.OK(t, mover(after, 0).Check(t.Context()))
		wantOnly(t, cloud, d, after, blobs, to)
		if t.Failed() {
			t.Fatalf("the first attempt was broken off after %d steps", n)
		}
	}
}

// wantOnly fails unless a deploy has just what a source has, which servedAgain made.
func wantOnly(t *testing.T, cloud *awstest.Cloud, d *deployTables, from *source, blobs, to *diskblob.Store) {
	t.Helper()
	client := dynamo.NewClient(cloud.Config())
	conformance.Same(t, "the blobs", blobNames(t, to), blobNames(t, blobs))
	files, _, err := dynamo.NewFiles(client, d.tables["files"], time.Now).List(t.Context(), "acme", "", 10, time.Now())
	if err != nil || len(files) != 1 || files[0].ID != from.files[0].ID {
		t.Errorf("the files are %+v, %v", files, err)
	}
	table := d.tables["files"]
	count := map[string]types.AttributeValue{
		"account": &types.AttributeValueMemberS{Value: "acme"}, "id": &types.AttributeValueMemberS{Value: "storage"}}
	stored, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: count})
	conformance.OK(t, err)
	if n, _ := stored.Item["stored_bytes"].(*types.AttributeValueMemberN); n == nil || n.Value != "11" {
		t.Errorf("the account's count is %v, want 11 bytes", stored.Item)
	}
	totals, err := dynamo.NewUsage(client, d.tables["usage"]).Totals(t.Context(), "acme", "2026-01-01", "2026-12-31")
	if err != nil || len(totals) != 2 || totals[0] != from.usage[0].Total || totals[1] != from.usage[1].Total {
		t.Errorf("the usage is %+v, %v, want %+v", totals, err, from.usage)
	}
	budgets, err := d.budgets.Budgets(t.Context(), "acme")
	conformance.OK(t, err)
	conformance.Same(t, "the budgets", budgets, from.budgets)
	// The counter has what the open job holds beside, which is nothing.
	used, err := d.budgets.Used(t.Context(), []budget.Counter{from.counters[0].Counter})
	conformance.OK(t, err)
	conformance.Same(t, "what is used of the budget", used, []int64{4})
	ids := map[string]job.Status{}
	for _, id := range []string{"job_acme_ended", "job_acme_open", "job_acme_failed", "job_acme_new"} {
		if j, err := dynamo.NewRuns(client, d.tables["jobs"]).Get(t.Context(), id); err == nil {
			ids[id] = j.Status
		}
	}
	want := map[string]job.Status{
		"job_acme_open": job.Completed, "job_acme_failed": job.Failed, "job_acme_new": job.Pending}
	conformance.Same(t, "the jobs", ids, want)
	conformance.Same(t, "the jobs that were started", slices.Collect(maps.Keys(d.starts)), []string{"job_acme_new"})
	attempts, err := dynamo.NewWebhooks(client, d.tables["jobs"]).Attempts(t.Context(), "job_acme_failed")
	if err != nil || len(attempts) != 2 || attempts[1].Status != 204 {
		t.Errorf("the attempts are %+v, %v", attempts, err)
	}
	if attempts, err := dynamo.NewWebhooks(client, d.tables["jobs"]).Attempts(t.Context(), "job_acme_ended"); err != nil ||
		len(attempts) > 0 {
		t.Errorf("the attempts of a deleted job are %+v, %v", attempts, err)
	}
}

// blobNames returns the names of all blobs in order.
func blobNames(t *testing.T, store *diskblob.Store) (names []string) {
	t.Helper()
	for b, err := range store.List(t.Context(), "") {
		conformance.OK(t, err)
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// What somebody makes at the deploy for an account that is being moved ends the next attempt,
// which says what it is and changes nothing.
func TestMoveMeetsOthers(t *testing.T) {
	cloud := local.Cloud(t)
	for _, test := range []struct {
		what string
		make func(*testing.T, *deployTables, *source)
	}{
		{"keys", func(t *testing.T, d *deployTables, _ *source) {
			key, err := credential.NewKey("ck_made_at_the_deploy", "acme", credential.DefaultTier, "", time.Now())
			conformance.OK(t, err)
			keys := dynamo.NewKeys(dynamo.NewClient(cloud.Config()), d.tables["credentials"], d.tables["usage"])
			conformance.OK(t, keys.CreateKey(t.Context(), audit.Operator(time.Now()), key))
		}},
		{"budgets", func(t *testing.T, d *deployTables, s *source) {
			mine := s.budgets[0]
			mine.Limit = 7
			conformance.OK(t, d.budgets.Set(t.Context(), audit.Operator(time.Now()), mine))
		}},
		{"files", func(t *testing.T, d *deployTables, s *source) {
			f := s.files[0]
			f.ID, f.Blob, f.UploadUntil = "file_of_the_deploy", "files/file_of_the_deploy", time.Time{}
			files := dynamo.NewFiles(dynamo.NewClient(cloud.Config()), d.tables["files"], time.Now)
			conformance.OK(t, files.Create(t.Context(), f, 0))
		}},
		{"jobs", func(t *testing.T, d *deployTables, s *source) {
			j := s.jobs[0]
			j.ID = "job_of_the_deploy"
			conformance.OK(t, d.PutJob(t.Context(), "another", j, nil))
		}},
		{"usage", func(t *testing.T, d *deployTables, s *source) {
			u := s.usage[0]
			u.Model = "another-model"
			conformance.OK(t, d.PutUsage(t.Context(), "another", u))
		}},
	} {
		t.Run(test.what, func(t *testing.T) {
			d := newDeploy(t, cloud)
			from, blobs := firstSource(t, "ck_of_a_move_2_"+test.what)
			to := folder(t)
			mover := move.Mover{
				Records: from, Blobs: blobs, Target: d.Target, Store: to, Now: time.Now,
				Close: func() error { return errBrokenOff },
			}
			if _, err := mover.Move(t.Context()); !errors.Is(err, errBrokenOff) {
				t.Fatalf("the first attempt: %v", err)
			}
			test.make(t, d, from)
			mover.Records = servedAgain(t, from, blobs)
			before, stored := allItems(t, cloud, d), blobNames(t, to)
			_, err := mover.Move(t.Context())
			if !errors.Is(err, move.ErrDiffers) || !strings.Contains(err.Error(), "acme has "+test.what) {
				t.Errorf("the next attempt: %v", err)
			}
			if after := allItems(t, cloud, d); !reflect.DeepEqual(after, before) {
				t.Errorf("it changed\n%v\nto\n%v", before, after)
			}
			conformance.Same(t, "the blobs after it", blobNames(t, to), stored)
		})
	}
}

// Once keys are being made nothing is replaced or removed any more.
func TestMoveThatIsOpenReplacesNothing(t *testing.T) {
	cloud := local.Cloud(t)
	d := newDeploy(t, cloud)
	from, blobs := firstSource(t, "ck_of_a_move_3000")
	opening := move.Mover{
		Records: from, Blobs: blobs, Target: d.Target, Store: folder(t), Now: time.Now, Close: func() error { return nil },
	}
	_, err := opening.Move(t.Context())
	conformance.OK(t, err)
	after := servedAgain(t, from, blobs)
	for _, state := range []move.State{move.Open, move.Done} {
		conformance.OK(t, d.SetLedger(t.Context(), from.id, state))
		if err := d.SetLedger(t.Context(), from.id, move.Begun); !errors.Is(err, move.ErrDiffers) {
			t.Errorf("a move that is %s begins: %v", state, err)
		}
		if copied, err := opening.CopyBlobs(t.Context(), from.id); !errors.Is(err, move.ErrServed) {
			t.Errorf("ahead of a move that is %s %d blobs are copied: %v", state, copied, err)
		}
		before := allItems(t, cloud, d)
		for what, err := range map[string]error{
			"usage":     d.PutUsage(t.Context(), from.id, after.usage[0]),
			"a budget":  d.PutBudget(t.Context(), from.id, after.budgets[0]),
			"a counter": d.PutCounter(t.Context(), from.id, after.counters[0]),
			"a job":     d.PutJob(t.Context(), from.id, after.jobs[1], after.attempts[after.jobs[1].ID]),
			"no file":   d.Remove(t.Context(), from.id, move.FileRecord(from.files[0])),
			"no usage":  d.Remove(t.Context(), from.id, move.UsageRecord(from.usage[0])),
			"no budget": d.Remove(t.Context(), from.id, move.BudgetRecord(from.budgets[0].ID)),
			"no job":    d.Remove(t.Context(), from.id, move.JobRecord(from.jobs[0])),
		} {
			if !errors.Is(err, move.ErrDiffers) {
				t.Errorf("%s, while the move is %s: %v", what, state, err)
			}
		}
		if after := allItems(t, cloud, d); !reflect.DeepEqual(after, before) {
			t.Errorf("it changed\n%v\nto\n%v", before, after)
		}
	}
}

// allItems returns all items of a deploy but its ledger, by their keys.
func allItems(t *testing.T, cloud *awstest.Cloud, d *deployTables) map[string]map[string]types.AttributeValue {
	t.Helper()
	client, all := dynamo.NewClient(cloud.Config()), map[string]map[string]types.AttributeValue{}
	for name, table := range d.tables {
		for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table}); pages.HasMorePages(); {
			page, err := pages.NextPage(context.WithoutCancel(t.Context()))
			conformance.OK(t, err)
			for _, i := range page.Items {
				key := name
				for _, attribute := range []string{"account", "id", "part"} {
					if s, ok := i[attribute].(*types.AttributeValueMemberS); ok {
						key += "/" + s.Value
					}
				}
				if !strings.Contains(key, "/move#") {
					all[key] = i
				}
			}
		}
	}
	return all
}

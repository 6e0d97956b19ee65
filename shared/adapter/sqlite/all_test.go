package sqlite_test

import (
	"iter"
	"reflect"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/move"
)

func collect[V any](t *testing.T, all iter.Seq2[V, error]) []V {
	t.Helper()
	var found []V
	for one, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, one)
	}
	return found
}

// All reads what the stores have written, of all accounts, and leaves out files whose bytes
// are still to come.
func TestAll(t *testing.T) {
	db := open(t)
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	budgets := db.Budgets(&machine{})
	var everyCount usage.Counts
	for i, fields := 0, reflect.ValueOf(&everyCount).Elem(); i < fields.NumField(); i++ {
		fields.Field(i).SetInt(int64(i + 1))
	}
	for _, account := range []string{"acme", "other"} {
		key, err := credential.NewKey("ck_of_all_"+account, account, credential.DefaultTier, "laptop", now)
		if err != nil {
			t.Fatal(err)
		}
		stored := file.File{
			ID: "file_" + account, Account: account, Key: key.ID, MIME: "video/mp4", Size: 7, MD5: "ab",
			Blob: "files/" + account, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		}
		pending := stored
		pending.ID, pending.Blob = "file_p"+account, "files/p"+account
		pending.Pending, pending.UploadUntil = true, now.Add(time.Hour)
		for _, err := range []error{
			db.Keys().CreateKey(ctx, audit.Operator(now), key),
			db.Files().Create(ctx, stored, 0), db.Files().Create(ctx, pending, 0),
			db.Usage().Add(ctx, []usage.Record{{ID: account, Account: account, Key: key.ID, Model: "chat", Day: "2026-02-03",
				Counts: everyCount}}),
			budgets.Set(ctx, audit.Operator(now), budget.Budget{
				ID: budget.ID{Account: account, Period: budget.Day, Unit: budget.Jobs}, Limit: 5,
			}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	one := budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Jobs}
	j := job.Job{
		ID: "job_1", Account: "acme", Key: "key", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
		CreatedAt: now, Deadline: now.Add(job.MaxAge), Request: job.Request{Prompt: "noir"},
	}
	claim := budget.Claim{Counter: budget.Budget{ID: one}.Counter(now), Limit: 5, Amount: 1}
	if err := db.Jobs().HoldIn(budgets).Accept(ctx, j, 0, claim); err != nil {
		t.Fatal(err)
	}
	all := db.All()
	if keys := collect(t, all.Keys(ctx)); len(keys) != 2 || keys[0].Label != "laptop" {
		t.Errorf("the keys are %+v", keys)
	}
	if files := collect(t, all.Files(ctx)); len(files) != 2 || files[0].ID != "file_acme" || files[0].Size != 7 {
		t.Errorf("the files are %+v", files)
	}
	if used := collect(t, all.Usage(ctx)); len(used) < 2 || used[0].Account != "acme" ||
		used[0].Counts != everyCount {
		t.Errorf("the usage is %+v", used)
	}
	if set := collect(t, all.Budgets(ctx)); len(set) != 2 || set[0].Limit != 5 || set[0].ID != one {
		t.Errorf("the budgets are %+v", set)
	}
	counters := collect(t, all.Counters(ctx))
	if len(counters) != 1 || counters[0] != (move.Counter{Counter: claim.Counter, Used: 1}) {
		t.Errorf("the counters are %+v", counters)
	}
	if jobs := collect(t, all.Jobs(ctx)); len(jobs) != 1 || jobs[0].Request.Prompt != "noir" || len(jobs[0].Holds) != 1 {
		t.Errorf("the jobs are %+v", jobs)
	}
	if id, err := all.ID(ctx); err != nil || id == "" {
		t.Errorf("the id is %q, %v", id, err)
	}
}

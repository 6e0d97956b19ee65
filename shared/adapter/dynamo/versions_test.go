package dynamo_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/awstest"
)

// itemsFolder contains the items that each version wrote, grouped by table, as DynamoDB returns them.
var itemsFolder = filepath.Join("testdata", "versions")

var (
	longAgo = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	farAway = time.Date(2125, 2, 3, 4, 5, 6, 0, time.UTC)
)

type kept struct {
	cloud  *awstest.Cloud
	tables map[string]string
	keys   *dynamo.Keys
	files  *dynamo.Files
	usage  *dynamo.Usage
	jobs   *dynamo.Jobs
	// Only the fixtures of v0.1.0 and later versions contain budgets and batches.
	budgets *dynamo.Budgets
	batches *dynamo.Batches
}

func newKept(t *testing.T) kept {
	t.Helper()
	k := kept{cloud: local.Cloud(t)}
	k.tables = k.cloud.MakeTables(t)
	client := dynamo.NewClient(k.cloud.Config())
	k.keys = dynamo.NewKeys(client, k.tables["credentials"], k.tables["usage"])
	k.files, k.usage = dynamo.NewFiles(client, k.tables["files"]), dynamo.NewUsage(client, k.tables["usage"])
	k.budgets = dynamo.NewBudgets(client, k.tables["usage"], &machine{}, rand.Text)
	k.batches = dynamo.NewBatches(client, k.tables["usage"])
	k.jobs = dynamo.NewJobs(dynamo.NewRuns(client, k.tables["jobs"]).CountIn(k.usage), &handedOver{},
		counted{client, k.tables["jobs"]}, time.Now)
	return k
}

func (k kept) raw(t *testing.T, operation string, body any) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.cloud.URL, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+awstest.Account+
		"/20260203/"+awstest.Region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", operation, response.StatusCode, answer, err)
	}
	return answer
}

const secretOfItems = "ck_of_earlier_versions"

func keyOfItems() credential.Key {
	key, err := credential.NewKey(secretOfItems, "acme", credential.DefaultTier, "laptop", longAgo)
	if err != nil {
		panic(err)
	}
	return key
}

var itemsFile = file.File{
	ID: "file_kept", Account: "acme", Key: "key_0123456789ab", Filename: "a.mp4", MIME: "video/mp4", Size: 7,
	MD5: "e6156aa341999f97d9ada6dacffe2c0a", Blob: "files/file_kept", CreatedAt: longAgo, ExpiresAt: farAway,
	Lifetime: time.Hour,
}

// Jobs that were running when workers and functions were replaced continue, in old and new processes alike.
func TestItemsOfEarlierVersionsAreReadable(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(itemsFolder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("fixtures: %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			k := newKept(t)
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var tables map[string][]json.RawMessage
			if err := json.Unmarshal(text, &tables); err != nil {
				t.Fatal(err)
			}
			for table, items := range tables {
				for _, item := range items {
					k.raw(t, "PutItem", map[string]any{"TableName": k.tables[table], "Item": item})
				}
			}
			k.wantItems(t)
			k.wantJobs(t)
			k.wantMore(t)
		})
	}
}

// wantItems checks the stored key, file and usage.
func (k kept) wantItems(t *testing.T) {
	t.Helper()
	want := keyOfItems()
	if key, err := k.keys.FindKey(t.Context(), want.Hash); err != nil || key.ID != want.ID || key.Account != "acme" ||
		!key.Works(time.Now()) {
		t.Errorf("the key is %+v, %v", key, err)
	}
	f, err := k.files.Get(t.Context(), "acme", itemsFile.ID, time.Now())
	if err != nil || f.MD5 != itemsFile.MD5 || f.Size != itemsFile.Size || !f.ExpiresAt.Equal(farAway) {
		t.Errorf("the file is %+v, %v", f, err)
	}
	if found, err := k.files.FindMD5(t.Context(), "acme", itemsFile.MD5, time.Now()); err != nil || found.ID != f.ID {
		t.Errorf("FindMD5 returned %+v, %v", found, err)
	}
	totals, err := k.usage.Totals(t.Context(), "acme", "2026-02-01", "2026-02-28", usage.All)
	var all usage.Counts
	for _, total := range totals {
		all.Requests += total.Requests
		all.PromptTokens += total.PromptTokens
	}
	if err != nil || all.Requests != 2 || all.PromptTokens != 9 {
		t.Errorf("the usage is %+v, %v", all, err)
	}
	if _, err := k.files.Delete(t.Context(), "acme", itemsFile.ID, time.Now()); err != nil {
		t.Errorf("delete the file: %v", err)
	}
}

// wantJobs checks that open jobs can still end.
func (k kept) wantJobs(t *testing.T) {
	t.Helper()
	result := job.Result{Blob: "jobs/job_begun/result", MIME: "video/mp4", Size: 7, SHA256: "abc"}
	ended, err := k.jobs.Get(t.Context(), "job_ended")
	if err != nil || ended.Status != job.Completed || ended.Result == nil || ended.Result.SHA256 != "abc" {
		t.Errorf("the ended job is %+v, %v", ended, err)
	}
	waiting, err := k.jobs.Start(t.Context(), "job_waiting", "new", time.Now())
	if err != nil || waiting.Runs != 1 || waiting.Request.Prompt != "noir" || waiting.Request.Inputs["data"].Size != 7 ||
		waiting.Request.Options["strength"] != int64(3) {
		t.Errorf("the waiting job is %+v, %v", waiting, err)
	}
	k.wantOpen(t, 2)
	for id, nonce := range map[string]string{"job_waiting": "new", "job_begun": "old"} {
		if err := k.jobs.Progress(t.Context(), id, nonce, 0.9); err != nil {
			t.Errorf("progress of %s: %v", id, err)
		}
		if err := k.jobs.Complete(t.Context(), id, nonce, result, time.Now()); err != nil {
			t.Errorf("complete %s: %v", id, err)
		}
		if j, err := k.jobs.Get(t.Context(), id); err != nil || j.Status != job.Completed {
			t.Errorf("%s is %+v, %v", id, j, err)
		}
	}
	k.wantOpen(t, 0)
}

func (k kept) wantOpen(t *testing.T, want int) {
	t.Helper()
	if backlog, err := k.jobs.Backlog(t.Context(), job.VideoLane, "acme"); err != nil || backlog.AccountOpen != want {
		t.Errorf("%d jobs are open, %v, want %d", backlog.AccountOpen, err, want)
	}
}

// itemsUpload is an upload that was announced but has not arrived.
var (
	itemsBudget = budget.Budget{
		ID: budget.ID{Account: "acme", Period: "month", Unit: budget.Jobs}, Limit: 123456,
	}
	itemsBatch = batch.Batch{
		ID: "batch_kept", Account: "acme", Key: "key_0123456789ab", Endpoint: "/v1/embeddings", Input: "file_1",
		InputBlob: "batches/batch_kept/input", OutputLifetime: time.Hour, Status: batch.Validating, CreatedAt: longAgo,
		ExpiresAt: farAway,
	}
	itemsUpload = file.File{
		ID: "file_announced", Account: "acme", Key: "key_0123456789ab", Filename: "b.mp4", MIME: "video/mp4", Size: 9,
		MD5: "0123456789abcdef0123456789abcdef", Blob: "files/file_announced", CreatedAt: longAgo, Lifetime: time.Hour,
		Pending: true, UploadUntil: farAway,
	}
)

// wantMore checks the kinds of items that v0.1.0 introduced.
func (k kept) wantMore(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	if budgets, err := k.budgets.Budgets(ctx, "acme"); err != nil || len(budgets) != 1 || budgets[0] != itemsBudget {
		t.Errorf("the budgets are %+v, %v", budgets, err)
	}
	open, err := k.batches.Open(ctx)
	if err != nil || len(open) != 1 || open[0].ID != itemsBatch.ID || !open[0].ExpiresAt.Equal(farAway) {
		t.Fatalf("the open batches are %+v, %v", open, err)
	}
	changed := open[0]
	changed.Status = batch.InProgress
	if err := k.batches.Change(ctx, batch.Validating, changed); err != nil {
		t.Errorf("the batch does not continue: %v", err)
	}
	upload, err := k.files.PendingUpload(ctx, itemsUpload.ID)
	if err != nil || upload.MD5 != itemsUpload.MD5 {
		t.Fatalf("the announced upload is %+v, %v", upload, err)
	}
	upload.Pending, upload.ExpiresAt = false, farAway
	if err := k.files.Finalize(ctx, upload, time.Now()); err != nil {
		t.Errorf("the announced upload is not stored: %v", err)
	}
	if f, err := k.files.Get(ctx, "acme", itemsUpload.ID, time.Now()); err != nil || f.Size != itemsUpload.Size {
		t.Errorf("the stored file is %+v, %v", f, err)
	}
	totals, err := k.usage.Totals(ctx, "acme", "2026-02-01", "2026-02-28", usage.All)
	seconds := int64(0)
	for _, total := range totals {
		seconds += total.SessionSeconds
	}
	if err != nil || seconds != 61 {
		t.Errorf("sessions were open for %d s, %v", seconds, err)
	}
}

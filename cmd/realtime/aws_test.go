package main_test

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/budget/budgettest"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
)

// The instances also read images from S3 and write usage.
func TestInstancesInAWSShareRecords(t *testing.T) {
	t.Parallel()
	const role = "RealtimeTaskRole"
	ctx := t.Context()
	cloud := awstest.Start(t)
	tables, bucket := cloud.MakeTables(t), cloud.MakeBucket(t)
	records := dynamo.NewClient(cloud.Config())
	record := makeKey(t, dynamo.NewKeys(records, tables["credentials"], tables["usage"]))
	calls := cloud.Proxy(t, 1, awstest.Faults{})
	allowed, asked := awstest.Deployed(t), &iamtest.Ledger{}
	names := map[string]string{bucket: "cutroom-dev-" + awstest.Account + "-" + awstest.Region}
	for table, name := range tables {
		names[name] = "cutroom-dev-" + table
	}
	secret := cloud.MakeSecret(t, bucket+"-turn", "a secret of the relay")
	names[secret[strings.LastIndex(secret, ":")+1:]] = "turn-AbCdEf"
	guard := awstest.Guard{Account: allowed, Names: names, Asked: asked.Note}
	calls.Guard(t, guard)
	f := &fleet{t, slices.Concat(cloud.Environment(), inTask(t, role, guard), []string{
		"AWS_ENDPOINT_URL=" + calls.URL, tiersOf(t, 2), "CUTROOM_BUCKET=" + bucket,
		"CUTROOM_CREDENTIALS_TABLE=" + tables["credentials"], "CUTROOM_SESSIONS_TABLE=" + tables["sessions"],
		"CUTROOM_FILES_TABLE=" + tables["files"], "CUTROOM_USAGE_TABLE=" + tables["usage"],
		"CUTROOM_RTC_TURN_SECRET_ARN=" + secret,
	}), dynamo.NewSessions(records, tables["sessions"])}
	clock, err := boottime.Open()
	if err != nil {
		t.Fatal(err)
	}
	budgets := dynamo.NewBudgets(records, tables["usage"], clock, rand.Text)
	large := budget.Budget{ID: budget.ID{Account: account, Period: budget.Month, Unit: budget.SessionSeconds}, Limit: 1_000_000}
	if err := budgets.Set(ctx, audit.Operator(time.Now()), large); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	stored := storeImage(t, tables, bucket, cloud, record.ID, true)
	gone := storeImage(t, tables, bucket, cloud, record.ID, false)

	one, two := f.start(), f.start()
	first, second := f.open(one), f.open(two)
	f.becomes(2)
	f.isFull(one)
	f.isFull(two)
	first.edit(t)
	first.joinsRoom(t, two)
	first.leave()
	f.becomes(1)
	third := f.open(two)
	if err := second.Write(ctx, websocket.MessageText,
		[]byte(`{"type":"set_image","image_ref":"`+stored.ID+`"}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the image is acknowledged", func() bool {
		return strings.Contains(second.texts(), `{"type":"set_image_ack","success":true,`)
	})
	// A file's bytes may disappear after its record has been read.
	if err := second.Write(ctx, websocket.MessageText,
		[]byte(`{"type":"set_image","image_ref":"`+gone.ID+`"}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing image is rejected", func() bool {
		return strings.Contains(second.texts(), "image_ref must be the id of a stored file.")
	})
	second.edit(t)

	stopped := time.Now()
	two.signal(t, syscall.SIGTERM)
	for _, c := range []*client{second, third} {
		c.isNotifiedOfTheEnd(t, stopped)
	}
	if err := await.Receive(t, "two.ended", two.ended); err != nil {
		t.Errorf("the program exited with %v", err)
	}
	f.becomes(0)
	one.signal(t, syscall.SIGTERM)
	if err := await.Receive(t, "one.ended", one.ended); err != nil {
		t.Errorf("the program exited with %v", err)
	}
	wrong, err := asked.Judge(allowed, []string{role}, nil)
	if err != nil || len(wrong) > 0 {
		t.Errorf("the permissions of %s: %v %v", role, wrong, err)
	}
	totals, err := dynamo.NewUsage(records, tables["usage"]).Totals(ctx, account, usage.DayOf(began),
		usage.DayOf(time.Now()), usage.All)
	if err != nil {
		t.Fatal(err)
	}
	var sum usage.Counts
	for _, total := range totals {
		sum.Add(total.Counts)
	}
	used, err := budgettest.UsedSince(ctx, budgets, large, began)
	if err != nil || sum.Requests != 3 || used != sum.SessionSeconds {
		t.Errorf("the usage records have %+v, and the budget %d, %v", totals, used, err)
	}
}

// storeImage creates a file for the account. The file's bytes may be missing.
func storeImage(t *testing.T, tables map[string]string, bucket string, cloud *awstest.Cloud, key string,
	bytesToo bool) file.File {
	t.Helper()
	ctx, blobs := t.Context(), s3blob.New(cloud.Config(), bucket)
	files := file.NewService(file.Config{
		Store: dynamo.NewFiles(dynamo.NewClient(cloud.Config()), tables["files"]), Blobs: blobs,
		IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now,
	})
	name, err := files.NewBlob()
	if err != nil {
		t.Fatal(err)
	}
	if bytesToo {
		if _, err := blobs.Put(ctx, name, bytes.NewReader(picture())); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := files.Create(ctx, file.File{
		Account: account, Key: key, Filename: "a.jpg", MIME: "image/jpeg", Size: int64(len(picture())),
		MD5: strings.Repeat("0", 32), Blob: name,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

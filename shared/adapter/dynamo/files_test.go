package dynamo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

type fileTable struct {
	*dynamo.Files
	t      *testing.T
	client *dynamodb.Client
	table  string
	now    time.Time
}

func newFileTable(t *testing.T, cloud *awstest.Cloud) *fileTable {
	t.Helper()
	s := &fileTable{t: t, client: client(cloud), table: cloud.MakeTable(t, "files"),
		now: time.Now().UTC().Truncate(time.Millisecond)}
	s.Files = dynamo.NewFiles(s.client, s.table)
	return s
}

// new returns a file that expires in an hour.
func (s *fileTable) new(number int, size int64) file.File {
	id := fmt.Sprintf("file_%027d", number)
	return file.File{
		ID: id, Account: "acme", Filename: "a.mp4", MIME: "video/mp4", Size: size, MD5: fmt.Sprintf("%032x", number),
		Blob:      "files/" + id,
		CreatedAt: s.now, ExpiresAt: s.now.Add(time.Hour), Lifetime: time.Hour,
	}
}

func (s *fileTable) create(f file.File, limit int64) file.File {
	s.t.Helper()
	conformance.OK(s.t, s.Create(s.t.Context(), f, limit))
	return f
}

func (s *fileTable) items() []map[string]types.AttributeValue {
	s.t.Helper()
	got, err := s.client.Scan(s.t.Context(), &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true)})
	conformance.OK(s.t, err)
	return got.Items
}

// remove deletes an item as its TTL would, and returns its image as the stream's record shows it.
func (s *fileTable) remove(f file.File, id string) map[string]events.DynamoDBAttributeValue {
	s.t.Helper()
	for _, i := range s.items() {
		if textIn(i, "file_id") != f.ID || textIn(i, "id") != id {
			continue
		}
		_, err := s.client.DeleteItem(s.t.Context(), &dynamodb.DeleteItemInput{
			TableName: &s.table, Key: map[string]types.AttributeValue{"account": i["account"], "id": i["id"]},
		})
		conformance.OK(s.t, err)
		return image(s.t, i)
	}
	s.t.Fatalf("no item %s of %s", id, f.ID)
	return nil
}

func textIn(i map[string]types.AttributeValue, name string) string {
	value, _ := i[name].(*types.AttributeValueMemberS)
	if value == nil {
		return ""
	}
	return value.Value
}

// image converts an item to the type used in stream events.
func image(t *testing.T, i map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	record := map[string]events.DynamoDBAttributeValue{}
	for name, value := range i {
		switch value := value.(type) {
		case *types.AttributeValueMemberS:
			record[name] = events.NewStringAttribute(value.Value)
		case *types.AttributeValueMemberN:
			record[name] = events.NewNumberAttribute(value.Value)
		case *types.AttributeValueMemberBOOL:
			record[name] = events.NewBooleanAttribute(value.Value)
		default:
			t.Fatalf("%s is a %T", name, value)
		}
	}
	return record
}

func (s *fileTable) wantStorageLeft(left, limit int64) {
	s.t.Helper()
	const probe = 1 << 20 // sorts after the tests' files
	conformance.Fails(s.t, s.Create(s.t.Context(), s.new(probe, left+1), limit), fault.Limited)
	if left == 0 {
		return
	}
	f := s.create(s.new(probe, left), limit)
	_, err := s.Delete(s.t.Context(), f.Account, f.ID, s.now)
	conformance.OK(s.t, err)
}

// The stream may deliver a record repeatedly.
func TestFileRemovedByTTLIsFreedOnce(t *testing.T) {
	s := newFileTable(t, local.Cloud(t))
	const limit = 100
	f := s.create(s.new(1, 30), limit)
	s.create(s.new(2, 30), limit)
	record := s.remove(f, f.ID)
	s.wantStorageLeft(40, limit)
	removed, ok := dynamo.RemovedFile(record)
	if !ok || removed.ID != f.ID || removed.Blob != f.Blob || removed.Account != f.Account {
		t.Fatalf("the stream's record belongs to %+v, %v", removed, ok)
	}
	for range 3 {
		conformance.OK(t, s.Free(t.Context(), removed))
		s.wantStorageLeft(70, limit)
	}
	if _, err := s.FindMD5(t.Context(), f.Account, f.MD5, s.now); !fault.Is(err, fault.NotFound) {
		t.Errorf("FindMD5 returned %v, want not found", err)
	}
}

func TestPendingFileRemovedByTTLIsFreedOnce(t *testing.T) {
	s := newFileTable(t, local.Cloud(t))
	const limit = 100
	f := s.new(1, 30)
	f.Pending, f.UploadUntil = true, s.now.Add(time.Hour)
	s.create(f, limit)
	removed, ok := dynamo.RemovedFile(s.remove(f, "promise"))
	if !ok || removed.ID != f.ID || removed.Blob != f.Blob {
		t.Fatalf("the stream's record belongs to %+v, %v", removed, ok)
	}
	for range 2 {
		conformance.OK(t, s.Free(t.Context(), removed))
		s.wantStorageLeft(100, limit)
	}
}

// A file is removed with its own item or, if it never arrived, with its pending item.
func TestRemovedFileIgnoresOtherItems(t *testing.T) {
	s := newFileTable(t, local.Cloud(t))
	s.create(s.new(1, 1), 0)
	kept := s.new(2, 1)
	kept.Pending, kept.UploadUntil = true, s.now.Add(time.Hour)
	s.create(kept, 0)
	kept.Pending = false
	conformance.OK(t, s.Finalize(t.Context(), kept, s.now))
	broken := s.new(3, 1)
	broken.Pending, broken.UploadUntil = true, s.now.Add(time.Hour)
	s.create(broken, 0)
	ends := map[string]int{}
	items := s.items()
	for _, i := range items {
		if f, ok := dynamo.RemovedFile(image(t, i)); ok {
			ends[f.ID]++
		}
	}
	want := map[string]int{s.new(1, 1).ID: 1, kept.ID: 1, broken.ID: 1}
	if fmt.Sprint(ends) != fmt.Sprint(want) {
		t.Errorf("of %d items, the removal of these ends a file: %v, want %v", len(items), ends, want)
	}
}

func TestUploadFreesEnoughExpiredFiles(t *testing.T) {
	s := newFileTable(t, local.Cloud(t))
	const files = 120 // more than two transactions can delete
	for i := range files {
		s.create(s.new(i, 1), 0)
	}
	f := s.new(files, files)
	conformance.Fails(t, s.Create(t.Context(), f, files), fault.Limited)
	f.CreatedAt = s.now.Add(time.Hour)
	s.create(f, files)
	s.wantStorageLeft(0, files)
}

func TestListSkipsExpiredFilesInSteps(t *testing.T) {
	s := newFileTable(t, local.Cloud(t))
	oldest := s.new(0, 1)
	oldest.ExpiresAt = time.Time{}
	s.create(oldest, 0)
	const expired = 4100 // needs more than two passes
	writes := []types.WriteRequest{}
	for i := 1; i <= expired; i++ {
		f := s.new(i, 1)
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
			"account": &types.AttributeValueMemberS{Value: f.Account}, "id": &types.AttributeValueMemberS{Value: f.ID},
			"file_id": &types.AttributeValueMemberS{Value: f.ID}, "expires_at": &types.AttributeValueMemberN{Value: fmt.Sprint(f.ExpiresAt.UnixMilli())},
		}}})
		if len(writes) == 25 || i == expired {
			_, err := s.client.BatchWriteItem(t.Context(),
				&dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.table: writes}})
			conformance.OK(t, err)
			writes = writes[:0]
		}
	}
	pages, after := 0, ""
	for {
		found, next, err := s.List(t.Context(), "acme", after, 100, s.now.Add(time.Hour))
		conformance.OK(t, err)
		pages++
		if next == "" {
			if len(found) != 1 || found[0].ID != oldest.ID {
				t.Errorf("the last page contains %+v", found)
			}
			break
		}
		if len(found) > 0 || next == after {
			t.Fatalf("after %s: %+v, next %s", after, found, next)
		}
		after = next
	}
	if pages < 2 || pages > 5 {
		t.Errorf("got %d pages, want 2 to 5", pages)
	}
}

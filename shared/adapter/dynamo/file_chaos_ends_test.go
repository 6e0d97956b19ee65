package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

func (c *storageChaos) entries() (all []map[string]types.AttributeValue) {
	for _, i := range c.cloud.DynamoDB.Items("files", "acme") {
		if id := textIn(i, "id"); id != "storage" && !strings.HasPrefix(id, "file_") {
			all = append(all, i)
		}
	}
	return all
}

func nameOf(entry map[string]types.AttributeValue) string {
	return textIn(entry, "id") + " " + textIn(entry, "ends_at")
}

func (c *storageChaos) ended() map[string]bool {
	names := map[string]bool{}
	for _, i := range c.entries() {
		if end := textIn(i, "ends_at"); end != "" && end <= c.Now().Format("2006-01-02T15:04:05.000Z") {
			names[nameOf(i)] = true
		}
	}
	return names
}

func (c *storageChaos) counted(names map[string]bool) (bytes, promises int64) {
	for _, i := range c.entries() {
		switch {
		case !names[nameOf(i)]:
		case strings.HasPrefix(textIn(i, "id"), "promise/"):
			bytes, promises = bytes+num(i, "promise_bytes"), promises+1
		default:
			bytes += num(i, "size_bytes")
		}
	}
	return bytes, promises
}

// expire removes a file's item like DynamoDB's TTL. The stream reports the removal once or twice.
func (c *storageChaos) expire() {
	for _, i := range c.cloud.DynamoDB.Items("files", "acme") {
		end := num(i, "expires_at")
		if !strings.HasPrefix(textIn(i, "id"), "file_") || end == 0 || end > c.Now().UnixMilli() {
			continue
		}
		removed, ok := dynamo.RemovedFile(image(c.T, i))
		if !ok {
			c.fail("%s is not a file", show(i))
		}
		_, err := c.plain.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{TableName: aws.String("files"),
				Key: map[string]types.AttributeValue{"account": i["account"], "id": i["id"]}}}}})
		if err != nil {
			c.fail("%v", err)
		}
		for range 1 + c.random.IntN(2) {
			c.free(removed)
		}
		return
	}
}

func (c *storageChaos) free(f file.File) {
	c.do(&storageCall{what: "free " + f.ID}, func(ctx context.Context, s *dynamo.Files) (err error) {
		for range 20 {
			if err = s.Free(ctx, f); err == nil {
				break
			}
		}
		return err
	}, func(error) {})
}

// result records a file with a predetermined id, which other processes may record at the same time.
func (c *storageChaos) result() {
	n := c.number / 10
	f := file.File{ID: fmt.Sprintf("file_result_%d", n), Account: "acme", MD5: fmt.Sprintf("%032x", 100+n),
		Size: int64(1 + n%20), Blob: "a", CreatedAt: c.Now()}
	record := func(ctx context.Context, s *dynamo.Files) (err error) {
		for range 20 {
			if _, err = s.Get(ctx, f.Account, f.ID, c.Now()); err == nil {
				return nil
			}
			if fault.Is(err, fault.NotFound) {
				err = s.Create(ctx, f, 0)
			}
			if err == nil {
				return nil
			}
		}
		return err
	}
	c.do(&storageCall{what: "result " + f.ID, bytes: f.Size}, record, func(error) {})
}

func (c *storageChaos) lists() {
	var there, listed []string
	for _, i := range c.cloud.DynamoDB.Items("files", "acme") {
		end := num(i, "expires_at")
		if id := textIn(i, "id"); strings.HasPrefix(id, "file_") && (end == 0 || end > c.Now().UnixMilli()) {
			there = append(there, id)
		}
	}
	slices.Sort(there)
	slices.Reverse(there)
	for after := ""; ; {
		page, next, err := c.files.List(c.Context(), "acme", after, 1+c.random.IntN(3), c.Now())
		if err != nil {
			c.Error(err)
		}
		for _, f := range page {
			listed = append(listed, f.ID)
			found, err := c.files.FindMD5(c.Context(), "acme", f.MD5, c.Now())
			if err != nil || found.MD5 != f.MD5 || found.ID < f.ID {
				c.Errorf("the MD5 of %s finds %s, %v", f.ID, found.ID, err)
			}
			if _, err := c.files.Get(c.Context(), "acme", f.ID, c.Now()); err != nil {
				c.Errorf("get %s: %v", f.ID, err)
			}
		}
		if after = next; after == "" {
			break
		}
	}
	if !slices.Equal(listed, there) {
		c.Errorf("the list has %v, want %v", listed, there)
	}
}

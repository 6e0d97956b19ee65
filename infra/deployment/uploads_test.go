package deployment

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// announced is a file reference with the URL for its bytes.
type announced struct {
	ID     string
	Upload struct {
		Method, URL string
		Headers     map[string]string
	}
}

// testUploads checks that a file whose bytes are uploaded by a signed URL is
// published once the bucket has reported them, and that the bytes are deleted with
// the record.
func testUploads(t *testing.T, d *deployed) {
	client := d.client(t, "uploads")
	content := bytes.Repeat([]byte("plain text\n"), 10_000)
	announcement := fmt.Sprintf(`{"filename":"notes.txt","mime_type":"text/plain","size_bytes":%d,"md5":"%x"}`,
		len(content), md5.Sum(content))
	answer, err := client.Call(bounded(t), http.MethodPost, "/v1/files", strings.NewReader(announcement),
		int64(len(announcement)), "Content-Type", "application/json")
	var file announced
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &file) != nil ||
		file.Upload.Method != http.MethodPut {
		t.Fatalf("the announcement: %v %d %s", err, answer.Status, answer.Body)
	}
	if unknown, err := client.Get(bounded(t), "/v1/files/"+file.ID); err != nil || unknown.Status != http.StatusNotFound {
		t.Errorf("before its bytes the file is %d (%v)", unknown.Status, err)
	}
	put, err := http.NewRequestWithContext(bounded(t), file.Upload.Method, file.Upload.URL, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range file.Upload.Headers {
		put.Header.Set(name, value)
	}
	stored, err := http.DefaultClient.Do(put)
	if err != nil {
		t.Fatal(err)
	}
	stored.Body.Close()
	if stored.StatusCode != http.StatusOK {
		t.Fatalf("the bytes were answered %d", stored.StatusCode)
	}
	// Listing does not look for the bytes: the file is listed only after the function
	// that the bucket starts.
	until(t, "the file is listed", func(ctx context.Context) (bool, error) {
		list, err := client.Get(ctx, "/v1/files")
		return strings.Contains(string(list.Body), file.ID), err
	})
	if blobs := d.blobs(t, "files/"); !slices.ContainsFunc(blobs,
		func(name string) bool { return strings.Contains(name, file.ID) }) {
		t.Errorf("the bucket has %v, want the file %s", blobs, file.ID)
	}
	if gone, err := client.Call(bounded(t), http.MethodDelete, "/v1/files/"+file.ID, nil, 0); err != nil ||
		gone.Status != http.StatusNoContent {
		t.Fatalf("the deletion: %v %d %s", err, gone.Status, gone.Body)
	}
	until(t, "the bytes are gone", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(d.blobs(t, "files/"),
			func(name string) bool { return strings.Contains(name, file.ID) }), nil
	})
}

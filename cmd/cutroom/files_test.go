package main_test

import (
	"bytes"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/testkit/servertest"
)

type storedFile struct {
	ID     string
	MD5    string
	Upload struct{ URL string }
}

func call(t *testing.T, client *servertest.Client, method, path string, body []byte, contentType string, into any) {
	t.Helper()
	answer, err := client.Call(bounded(t), method, path, bytes.NewReader(body), int64(len(body)), "Content-Type",
		contentType)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status >= 300 || into != nil && json.Unmarshal(answer.Body, into) != nil {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
}

func store(t *testing.T, client *servertest.Client, content []byte) storedFile {
	t.Helper()
	body, _, contentType := servertest.Form{servertest.File("file", "clip.mp4", content)}.Encode()
	var buffer bytes.Buffer
	if _, err := buffer.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	var f storedFile
	call(t, client, http.MethodPost, "/v1/files", buffer.Bytes(), contentType, &f)
	return f
}

// After a crash, page cursors and signed URLs are still valid, and whatever is left of an unacknowledged upload is
// deleted.
func TestFilesSurviveCrash(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := start(t, data)
	client := server.Client()
	oldest, newest := store(t, client, []byte("oldest")), store(t, client, []byte("newest"))
	type page struct {
		Files      []storedFile
		NextCursor *string `json:"next_cursor"`
	}
	var first page
	call(t, client, http.MethodGet, "/v1/files?limit=1", nil, "", &first)
	if len(first.Files) != 1 || first.Files[0].ID != newest.ID || first.NextCursor == nil {
		t.Fatalf("the first page is %+v", first)
	}
	var announced storedFile
	announcement := fmt.Sprintf(`{"filename":"film.mp4","mime_type":"video/mp4","size_bytes":%d,"md5":"%x"}`,
		len(fixtures.tiny), md5.Sum(fixtures.tiny))
	call(t, client, http.MethodPost, "/v1/files", []byte(announcement), "application/json", &announced)
	server.Kill()
	stray := filepath.Join(data, "blobs", "files", "file_of_a_broken_upload")
	if err := os.WriteFile(stray, []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}

	client = start(t, data).Client()
	var second page
	call(t, client, http.MethodGet, "/v1/files?cursor="+url.QueryEscape(*first.NextCursor), nil, "", &second)
	if len(second.Files) != 1 || second.Files[0].ID != oldest.ID || second.NextCursor != nil {
		t.Errorf("the second page is %+v", second)
	}
	signed, err := url.Parse(announced.Upload.URL)
	if err != nil {
		t.Fatal(err)
	}
	call(t, &servertest.Client{URL: client.URL}, http.MethodPut, signed.RequestURI(), fixtures.tiny, "", nil)
	var found storedFile
	call(t, client, http.MethodGet, "/v1/files/by-md5/"+announced.MD5, nil, "", &found)
	if found.ID != announced.ID {
		t.Errorf("by-md5 gives %s, want %s", found.ID, announced.ID)
	}
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Errorf("the bytes of a broken upload remain: %v", err)
	}
	if secret, err := os.Stat(filepath.Join(data, "secret")); err != nil || secret.Mode().Perm() != 0o600 {
		t.Errorf("the secret is kept as %v, %v", secret, err)
	}
}

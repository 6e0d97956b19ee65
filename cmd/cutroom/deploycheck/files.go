package deploycheck

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// file is the reference of a stored file.
type file struct {
	ID   string
	MD5  string
	Size int64 `json:"size_bytes"`
}

// store uploads a file in a form.
func (v *visit) store(ctx context.Context, content []byte) (file, error) {
	body, kind, err := form(field{name: "ttl_seconds", content: []byte("3600")},
		field{name: "file", file: "check.txt", content: content})
	if err != nil {
		return file{}, err
	}
	var stored file
	err = v.ask(ctx, request{method: http.MethodPost, path: "/v1/files", key: v.own.key, body: body, kind: kind}, &stored)
	return stored, err
}

// formSize is the size of an upload in a form, in bytes: near the most that API Gateway
// and Lambda carry.
const formSize = 4 << 20

// checkFormUpload uploads a file in a form and reads it back.
func checkFormUpload(ctx context.Context, v *visit) (string, error) {
	content, err := io.ReadAll(v.bytes(formSize))
	if err != nil {
		return "", err
	}
	stored, err := v.store(ctx, content)
	if err != nil {
		return "", err
	}
	got, err := v.download(ctx, "/v1/uploads/"+stored.ID)
	if err != nil {
		return "", err
	}
	if sum := md5.Sum(content); got.sum != hex.EncodeToString(sum[:]) {
		return "", fmt.Errorf("%d bytes were stored, and %d others came back", len(content), got.size)
	}
	return fmt.Sprintf("%d bytes", formSize), nil
}

// bytes returns that many bytes, always the same and of no known kind.
func (v *visit) bytes(size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{'c', 'h', 'e', 'c', 'k'}), size)
}

// announcement is the answer to an announced file.
type announcement struct {
	ID     string
	Upload struct {
		Method, URL string
		Headers     map[string]string
	}
}

// checkUpload sends a large file to a signed URL, and reads it back.
func checkUpload(ctx context.Context, v *visit) (string, error) {
	digest := md5.New()
	if _, err := io.Copy(digest, v.bytes(v.UploadSize)); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	body, err := json.Marshal(map[string]any{"filename": "check.bin", "mime_type": "application/octet-stream",
		"size_bytes": v.UploadSize, "md5": sum, "ttl_seconds": 3600})
	if err != nil {
		return "", err
	}
	var made announcement
	if err := v.ask(ctx, request{method: http.MethodPost, path: "/v1/files", key: v.own.key, body: body, kind: jsonType},
		&made); err != nil {
		return "", err
	}
	began := v.Now()
	if err := v.put(ctx, made); err != nil {
		return "", err
	}
	sent := v.Now().Sub(began)
	if err := v.listed(ctx, made.ID); err != nil {
		return "", err
	}
	known := v.Now().Sub(began) - sent
	var stored file
	if err := v.ask(ctx, request{path: "/v1/files/" + made.ID, key: v.own.key}, &stored); err != nil {
		return "", err
	}
	if stored.MD5 != sum || stored.Size != v.UploadSize {
		return "", fmt.Errorf("the stored file has %d bytes, want %d", stored.Size, v.UploadSize)
	}
	got, err := v.download(ctx, "/v1/uploads/"+made.ID)
	if err != nil {
		return "", err
	}
	if got.sum != sum {
		return "", fmt.Errorf("%d bytes were stored, and %d others came back", v.UploadSize, got.size)
	}
	// What Lambda cannot stream has to be redirected.
	if got.redirected == (v.UploadSize <= mostStreamed) && !v.Local {
		return "", fmt.Errorf("the download of %d bytes was redirected: %t", v.UploadSize, got.redirected)
	}
	return fmt.Sprintf("%d bytes sent in %s, known %s later, read back (redirected: %t)", v.UploadSize, round(sent),
		round(known), got.redirected), nil
}

// mostStreamed is the size, in bytes, above which content is redirected in AWS
// (docs/deploy-options.md, "Downloads").
const mostStreamed = 100 << 20

// put sends the bytes of an announced file.
func (v *visit) put(ctx context.Context, made announcement) error {
	sent, err := http.NewRequestWithContext(ctx, made.Upload.Method, made.Upload.URL, v.bytes(v.UploadSize))
	if err != nil {
		return errors.New("the announcement has no usable URL") // it carries a signature
	}
	sent.ContentLength = v.UploadSize
	for name, value := range made.Upload.Headers {
		sent.Header.Set(name, value)
	}
	response, err := v.http.Do(sent)
	if err != nil {
		return fmt.Errorf("send the bytes to the signed URL: %w", errors.Unwrap(err))
	}
	defer response.Body.Close()
	v.spent.stored += v.UploadSize
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // what came of it
		return fmt.Errorf("the signed URL answers %d: %.300q", response.StatusCode, body)
	}
	return nil
}

// listed waits until a file is listed: that is the work of the function that the bucket
// starts.
func (v *visit) listed(ctx context.Context, id string) error {
	for {
		var page struct{ Files []file }
		if err := v.ask(ctx, request{path: "/v1/files?limit=1000", key: v.own.key}, &page); err != nil {
			return err
		}
		for _, found := range page.Files {
			if found.ID == id {
				return nil
			}
		}
		if err := v.wait(ctx); err != nil {
			return fmt.Errorf("the file whose bytes came is not listed: %w", err)
		}
	}
}

// downloaded is what a download brought.
type downloaded struct {
	sum        string
	size       int64
	redirected bool
}

// download reads content to its end, also where it is redirected to a signed URL, which
// is not given the key.
func (v *visit) download(ctx context.Context, path string) (downloaded, error) {
	response, err := v.open(ctx, request{path: path, key: v.own.key})
	if err != nil {
		return downloaded{}, err
	}
	var got downloaded
	if response.StatusCode == http.StatusTemporaryRedirect {
		response.Body.Close()
		got.redirected = true
		if response, err = v.follow(ctx, response.Header.Get("Location")); err != nil {
			return got, err
		}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return got, fmt.Errorf("GET %s: %d, want 200 (redirected: %t)", path, response.StatusCode, got.redirected)
	}
	digest := md5.New()
	got.size, err = io.Copy(digest, response.Body)
	v.spent.received += got.size
	if err != nil {
		return got, fmt.Errorf("GET %s: it broke off after %d bytes: %w", path, got.size, err)
	}
	got.sum = hex.EncodeToString(digest.Sum(nil))
	return got, nil
}

// follow calls a signed URL.
func (v *visit) follow(ctx context.Context, location string) (*http.Response, error) {
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, errors.New("the redirect leads to no URL")
	}
	response, err := v.http.Do(sent)
	if err != nil {
		return nil, fmt.Errorf("follow the redirect: %w", errors.Unwrap(err))
	}
	return response, nil
}

// checkContent reads the result of the first job: whole, in part, and not again when it
// is known.
func checkContent(ctx context.Context, v *visit) (string, error) {
	id, err := v.completed(ctx)
	if err != nil {
		return "", err
	}
	path := "/v1/jobs/" + id + "/content"
	whole, err := v.call(ctx, request{path: path, key: v.own.key})
	if err != nil {
		return "", err
	}
	if whole.status == http.StatusTemporaryRedirect {
		got, err := v.download(ctx, path)
		return fmt.Sprintf("%d bytes, redirected", got.size), err
	}
	if whole.status != http.StatusOK || whole.header.Get("Content-Type") != "video/mp4" || len(whole.body) < 100 {
		return "", whole.unexpected("the content as video/mp4", http.StatusOK)
	}
	if length := whole.header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(whole.body)) {
		return "", fmt.Errorf("the content has %d bytes and says %s", len(whole.body), length)
	}
	part, err := v.call(ctx, request{path: path, key: v.own.key, header: map[string]string{"Range": "bytes=10-19"}})
	if err != nil {
		return "", err
	}
	if part.status != http.StatusPartialContent || !bytes.Equal(part.body, whole.body[10:20]) {
		return "", part.unexpected("ten bytes of the content", http.StatusPartialContent)
	}
	beyond, err := v.call(ctx, request{path: path, key: v.own.key,
		header: map[string]string{"Range": fmt.Sprintf("bytes=%d-", len(whole.body))}})
	if err != nil {
		return "", err
	}
	if beyond.status != http.StatusRequestedRangeNotSatisfiable {
		return "", beyond.unexpected("a range beyond the end", http.StatusRequestedRangeNotSatisfiable)
	}
	tag := whole.header.Get("ETag")
	same, err := v.call(ctx, request{path: path, key: v.own.key, header: map[string]string{"If-None-Match": tag}})
	if err == nil && (tag == "" || same.status != http.StatusNotModified) {
		err = same.unexpected(fmt.Sprintf("the content with the tag %q again", tag), http.StatusNotModified)
	}
	return fmt.Sprintf("%d bytes, a range, a range beyond the end, and 304", len(whole.body)), err
}

package s3blob_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/domain/blob/blobtest"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func TestStoreConforms(t *testing.T) {
	cloud := local.Cloud(t)
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		bucket := cloud.MakeBucket(t)
		return blobtest.Harness{
			Store:     s3blob.NewBelow(cloud.Config(), bucket, "backups/mine"),
			Leftovers: func(t *testing.T) []string { return broken(t, cloud.Config(), bucket) },
		}
	})
}

func TestPrefixesAreSeparate(t *testing.T) {
	cloud := local.Cloud(t)
	bucket := cloud.MakeBucket(t)
	names := func(store *s3blob.Store) (names []string) {
		for entry, err := range store.List(t.Context(), "") {
			conformance.OK(t, err)
			names = append(names, entry.Name)
		}
		return names
	}
	for _, prefix := range []string{"backups/mine", "backups/minerals", ""} {
		_, err := s3blob.NewBelow(cloud.Config(), bucket, prefix).Put(t.Context(), "a", strings.NewReader("x"))
		conformance.OK(t, err)
	}
	if got := names(s3blob.NewBelow(cloud.Config(), bucket, "backups/mine")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the prefix has %q", got)
	}
	if got := names(s3blob.New(cloud.Config(), bucket)); !slices.Contains(got, "backups/mine/a") {
		t.Errorf("the bucket has %q", got)
	}
}

func broken(t *testing.T, config aws.Config, bucket string) []string {
	t.Helper()
	client := awss3.NewFromConfig(config, func(o *awss3.Options) { o.UsePathStyle = true })
	uploads, err := client.ListMultipartUploads(context.WithoutCancel(t.Context()),
		&awss3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, upload := range uploads.Uploads {
		names = append(names, aws.ToString(upload.Key))
	}
	return names
}

const part = 8 << 20

type requests struct {
	http.RoundTripper
	mu   sync.Mutex
	made map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.made[operation(request)]++
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(request)
}

// calls returns the operations in the notation of the docs and resets the counts.
func (r *requests) calls() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := awstest.CallList(r.made)
	clear(r.made)
	return calls
}

func operation(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Has("uploads"):
		return "CreateMultipartUpload"
	case query.Has("partNumber"):
		return "UploadPart"
	case query.Has("uploadId") && r.Method == http.MethodDelete:
		return "AbortMultipartUpload"
	case query.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "CopyObject"
	}
	return map[string]string{
		http.MethodGet: "GetObject", http.MethodHead: "HeadObject", http.MethodPut: "PutObject",
		http.MethodDelete: "DeleteObject",
	}[r.Method]
}

func counted(t *testing.T, cloud *awstest.Cloud) (*s3blob.Store, *requests, string) {
	t.Helper()
	r := &requests{RoundTripper: http.DefaultTransport, made: map[string]int{}}
	config := cloud.Config()
	config.HTTPClient = &http.Client{Transport: r}
	bucket := cloud.MakeBucket(t)
	return s3blob.New(config, bucket), r, bucket
}

func TestLargeBlobsAreSentInParts(t *testing.T) {
	cloud := local.Cloud(t)
	for _, size := range []int{part - 1, part, part + 1, 2 * part, 3*part + 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			store, requests, bucket := counted(t, cloud)
			content := make([]byte, size)
			_, _ = rand.Read(content)
			n, err := store.Put(t.Context(), "a/b", bytes.NewReader(content))
			if err != nil || n != int64(size) {
				t.Fatalf("stored %d bytes, %v", n, err)
			}
			want := "PutObject"
			if parts := (size + part - 1) / part; size >= part {
				want = awstest.CallList(
					map[string]int{"CreateMultipartUpload": 1, "UploadPart": parts, "CompleteMultipartUpload": 1})
			}
			if got := requests.calls(); got != want {
				t.Errorf("the upload made %s, want %s", got, want)
			}
			for _, offset := range []int64{0, int64(size) - 10} {
				r, err := store.Open(t.Context(), "a/b", offset, -1)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content[offset:]) {
					t.Errorf("from %d: read %d bytes that differ from the stored ones: %v", offset, len(got), err)
				}
			}
			if left := broken(t, cloud.Config(), bucket); len(left) > 0 {
				t.Errorf("incomplete uploads remain: %v", left)
			}
		})
	}
}

// A missing bucket is a fault of the deployment, not of the caller, who would otherwise read that a file does not exist.
func TestMissingBucketIsNoMissingBlob(t *testing.T) {
	store := s3blob.New(local.Cloud(t).Config(), "no-such-bucket")
	_, put := store.Put(t.Context(), "a/b", strings.NewReader("film"))
	_, opened := store.Open(t.Context(), "a/b", 0, -1)
	for name, err := range map[string]error{"put": put, "open": opened, "copy": store.Copy(t.Context(), "a/b", "c/d")} {
		if err == nil || fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailedUploadLeavesNothing(t *testing.T) {
	cloud := local.Cloud(t)
	errGone := errors.New("the sender hung up")
	for name, c := range map[string]struct {
		after int
		end   func(cancel func()) io.Reader
		want  error
	}{
		"the reader fails after a part":     {part + 100, func(func()) io.Reader { return iotest.ErrReader(errGone) }, errGone},
		"the reader fails between parts":    {2 * part, func(func()) io.Reader { return iotest.ErrReader(errGone) }, errGone},
		"the context ends while it is sent": {2*part + 100, func(cancel func()) io.Reader { return &ending{cancel} }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			store, _, bucket := counted(t, cloud)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := store.Put(ctx, "a/b", io.MultiReader(io.LimitReader(zeros{}, int64(c.after)), c.end(cancel)))
			if err != c.want {
				t.Errorf("error %v, want %v itself", err, c.want)
			}
			if _, err := store.Head(t.Context(), "a/b"); !fault.Is(err, fault.NotFound) {
				t.Errorf("the blob exists: %v", err)
			}
			if left := broken(t, cloud.Config(), bucket); len(left) > 0 {
				t.Errorf("incomplete uploads remain: %v", left)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type ending struct{ cancel func() }

func (e *ending) Read(p []byte) (int, error) { e.cancel(); return len(p), nil }

func promise(content string, now time.Time) file.File {
	sum := md5.Sum([]byte(content))
	return file.File{
		ID: "file_1", Account: "acme", Size: int64(len(content)), MD5: hex.EncodeToString(sum[:]), Blob: "files/file_0",
		Pending: true, CreatedAt: now,
	}
}

func put(t *testing.T, signed file.SignedUpload, content string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, signed.URL, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range signed.Headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestSignedUploadAcceptsOnlyAnnouncedBytes(t *testing.T) {
	cloud := local.Cloud(t)
	store := s3blob.New(cloud.Config(), cloud.MakeBucket(t))
	now := time.Now()
	f := promise("the bytes of a film", now)
	signed, err := s3blob.NewSigner(store, func() time.Time { return now }).Sign(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if signed.ExpiresAt != f.SignedUntil() {
		t.Errorf("the URL expires at %s, want %s", signed.ExpiresAt, f.SignedUntil())
	}
	// The local AWS does not check signatures, but the URL shows what is signed.
	for _, want := range []string{"X-Amz-Expires=1800",
		"X-Amz-SignedHeaders=content-length%3Bcontent-md5%3Bhost%3Bif-none-match&"} {
		if !strings.Contains(signed.URL, want) {
			t.Errorf("%s has no %s", signed.URL, want)
		}
	}
	if strings.Contains(strings.ToLower(signed.URL), "checksum") {
		t.Errorf("%s contains a checksum of unread bytes", signed.URL)
	}
	if _, err := store.Arrival(t.Context(), f.Blob); !fault.Is(err, fault.NotFound) {
		t.Errorf("before the upload: %v", err)
	}
	if status := put(t, signed, "the bytes of a fake"); status != http.StatusBadRequest {
		t.Errorf("uploading other bytes: %d", status)
	}
	if status := put(t, signed, "the bytes of a film"); status != http.StatusOK {
		t.Fatalf("uploading the bytes: %d", status)
	}
	got, err := store.Arrival(t.Context(), f.Blob)
	if want := (file.Arrival{Size: f.Size, MD5: f.MD5}); err != nil || got != want {
		t.Errorf("arrived: %+v, %v; want %+v", got, err, want)
	}
	if status := put(t, signed, "the bytes of a film"); status != http.StatusPreconditionFailed {
		t.Errorf("uploading again: %d", status)
	}
}

// Programs may reach S3 at an address that callers cannot use.
func TestSignedURLsUseConfiguredAddress(t *testing.T) {
	cloud := local.Cloud(t)
	bucket := cloud.MakeBucket(t)
	now := time.Now()
	f := promise("the bytes of a film", now)
	hidden := s3blob.New(awstest.ConfigFor("http://s3.internal.test:1"), bucket)
	signer := s3blob.NewSigner(hidden, func() time.Time { return now }).At(cloud.URL)
	signed, err := signer.Sign(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	// The signature covers the URL's host.
	if !strings.HasPrefix(signed.URL, cloud.URL+"/"+bucket+"/") || !strings.Contains(signed.URL, "%3Bhost%3B") {
		t.Errorf("the URL is %s", signed.URL)
	}
	if status := put(t, signed, "the bytes of a film"); status != http.StatusOK {
		t.Errorf("uploading the bytes: %d", status)
	}
	download, err := signer.SignDownload(t.Context(), f.Blob, "video/mp4", "inline")
	if err != nil || !strings.HasPrefix(download, cloud.URL+"/"+bucket+"/") {
		t.Errorf("the URL of the download is %s, %v", download, err)
	}
}

func TestArrivalReturnsMD5OfAnyBlob(t *testing.T) {
	cloud := local.Cloud(t)
	store := s3blob.New(cloud.Config(), cloud.MakeBucket(t))
	content := bytes.Repeat([]byte("film"), part/4+1)
	if _, err := store.Put(t.Context(), "files/a", bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum(content)
	got, err := store.Arrival(t.Context(), "files/a")
	if want := (file.Arrival{Size: int64(len(content)), MD5: hex.EncodeToString(sum[:])}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestCallsMatchDocumentation(t *testing.T) {
	store, requests, _ := counted(t, local.Cloud(t))
	documented := awstest.Documented(t, "Store")
	ctx := t.Context()
	put := func(name string, r io.Reader) error { _, err := store.Put(ctx, name, r); return err }
	for _, c := range []struct {
		operation string
		call      func() error
	}{
		{"Put, up to 8 MiB", func() error { return put("a", strings.NewReader("a")) }},
		{"Put, 20 MiB", func() error { return put("b", io.LimitReader(zeros{}, 20<<20)) }},
		{"Put, broken off", func() error {
			err := put("c", io.MultiReader(io.LimitReader(zeros{}, part+1), iotest.ErrReader(io.ErrUnexpectedEOF)))
			if err == io.ErrUnexpectedEOF {
				err = nil
			}
			return err
		}},
		{"Open", func() error {
			r, err := store.Open(ctx, "a", 0, -1)
			if err == nil {
				err = r.Close()
			}
			return err
		}},
		{"Head", func() error { _, err := store.Head(ctx, "a"); return err }},
		{"Arrival", func() error { _, err := store.Arrival(ctx, "a"); return err }},
		{"Copy", func() error { return store.Copy(ctx, "a", "d") }},
		{"Delete", func() error { return store.Delete(ctx, "d") }},
	} {
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.operation, err)
		}
		want, known := documented[c.operation]
		if got := requests.calls(); !known || got != want {
			t.Errorf("%s makes the calls %q, but documented are %q", c.operation, got, want)
		}
		delete(documented, c.operation)
	}
	for operation := range documented {
		t.Errorf("%s is documented but was not tried", operation)
	}
}

func TestListReturnsAllPages(t *testing.T) {
	cloud := local.Cloud(t)
	store := s3blob.New(cloud.Config(), cloud.MakeBucket(t))
	want := map[string]int64{}
	var puts errgroup.Group
	puts.SetLimit(16)
	for i := range 1010 { // a page contains 1,000 blobs
		name := fmt.Sprintf("kept/deep/%04d", i)
		want[name] = int64(i % 7)
		puts.Go(func() error {
			_, err := store.Put(t.Context(), name, strings.NewReader(strings.Repeat("x", i%7)))
			return err
		})
	}
	puts.Go(func() error {
		_, err := store.Put(t.Context(), "keptelse/a", strings.NewReader("x"))
		return err
	})
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]int{"kept": 1010, "kept/": 1010, "": 1011, "none": 0} {
		found := 0
		for entry, err := range store.List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			if entry.Prefix || entry.StoredAt.IsZero() {
				t.Errorf("listed: %+v", entry)
			}
			found++
		}
		if found != want {
			t.Errorf("%[2]d objects below %[1]q, want %[3]d", prefix, found, want)
		}
	}
	for entry, err := range store.List(t.Context(), "kept") {
		if err != nil || entry.Size != want[entry.Name] {
			t.Errorf("listed: %+v, %v; want %d bytes", entry, err, want[entry.Name])
		}
		break // a caller may stop early
	}
}

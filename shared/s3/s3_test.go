package s3_test

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
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"cutroom/shared/awstest"
	"cutroom/shared/blob/blobtest"
	"cutroom/shared/fault"
	"cutroom/shared/file"
	"cutroom/shared/s3"
)

func TestStore(t *testing.T) {
	cloud := awstest.Start(t)
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		bucket := cloud.MakeBucket(t)
		return blobtest.Harness{
			Store:     s3.New(cloud.Config(), bucket),
			Leftovers: func(t *testing.T) []string { return broken(t, cloud.Config(), bucket) },
		}
	})
}

// broken gives the multipart uploads that have neither ended nor been given up.
func broken(t *testing.T, config aws.Config, bucket string) []string {
	t.Helper()
	client := awss3.NewFromConfig(config, func(o *awss3.Options) { o.UsePathStyle = true })
	uploads, err := client.ListMultipartUploads(context.WithoutCancel(t.Context()), &awss3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, upload := range uploads.Uploads {
		names = append(names, aws.ToString(upload.Key))
	}
	return names
}

// part is how many bytes one request carries at most.
const part = 8 << 20

// requests counts the requests of a client by what they are.
type requests struct {
	http.RoundTripper
	mu   sync.Mutex
	made map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	kind := request.Method
	for _, parameter := range []string{"uploads", "partNumber", "uploadId"} {
		if request.URL.Query().Has(parameter) {
			kind += " " + parameter
			break
		}
	}
	r.mu.Lock()
	r.made[kind]++
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(request)
}

// counted gives a store and what it asks for.
func counted(t *testing.T, cloud *awstest.Cloud) (*s3.Store, *requests, string) {
	t.Helper()
	r := &requests{RoundTripper: http.DefaultTransport, made: map[string]int{}}
	config := cloud.Config()
	config.HTTPClient = &http.Client{Transport: r}
	bucket := cloud.MakeBucket(t)
	return s3.New(config, bucket), r, bucket
}

func TestLargeBlobsGoByParts(t *testing.T) {
	cloud := awstest.Start(t)
	for _, size := range []int{part - 1, part, part + 1, 2 * part, 3*part + 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			store, requests, bucket := counted(t, cloud)
			content := make([]byte, size)
			_, _ = rand.Read(content)
			n, err := store.Put(t.Context(), "a/b", bytes.NewReader(content))
			if err != nil || n != int64(size) {
				t.Fatalf("stored %d bytes, %v", n, err)
			}
			want := map[string]int{"PUT": 1}
			if size >= part {
				want = map[string]int{"POST uploads": 1, "PUT partNumber": (size + part - 1) / part, "POST uploadId": 1}
			}
			if fmt.Sprint(requests.made) != fmt.Sprint(want) {
				t.Errorf("it took %v, want %v", requests.made, want)
			}
			for _, offset := range []int64{0, int64(size) - 10} {
				r, err := store.Open(t.Context(), "a/b", offset, -1)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content[offset:]) {
					t.Errorf("from %d: read %d bytes that are not those that were stored: %v", offset, len(got), err)
				}
			}
			if left := broken(t, cloud.Config(), bucket); len(left) > 0 {
				t.Errorf("uploads were left: %v", left)
			}
		})
	}
}

func TestALargeBlobThatBreaksOffLeavesNothing(t *testing.T) {
	cloud := awstest.Start(t)
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
				t.Errorf("the blob is there: %v", err)
			}
			if left := broken(t, cloud.Config(), bucket); len(left) > 0 {
				t.Errorf("uploads were left: %v", left)
			}
		})
	}
}

// zeros is a reader without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// ending is a reader without end that ends the context of who reads it.
type ending struct{ cancel func() }

func (e *ending) Read(p []byte) (int, error) { e.cancel(); return len(p), nil }

// promise makes a promised file of the bytes.
func promise(content string, now time.Time) file.File {
	sum := md5.Sum([]byte(content))
	return file.File{
		ID: "file_1", Account: "acme", Size: int64(len(content)), MD5: hex.EncodeToString(sum[:]), Blob: "files/file_0",
		Promised: true, UploadUntil: now.Add(file.SignedTime),
	}
}

// put sends bytes to a signed URL as a client does.
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

// A signed upload takes just the bytes that were announced, once.
func TestSignedUpload(t *testing.T) {
	cloud := awstest.Start(t)
	store := s3.New(cloud.Config(), cloud.MakeBucket(t))
	now := time.Now()
	f := promise("the bytes of a film", now)
	signed, err := s3.NewSigner(store, func() time.Time { return now }).Sign(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if signed.ExpiresAt != f.UploadUntil {
		t.Errorf("it expires at %s, want %s", signed.ExpiresAt, f.UploadUntil)
	}
	// The local AWS checks no signature: what it covers shows in the URL.
	for _, want := range []string{"X-Amz-Expires=21600", "X-Amz-SignedHeaders=content-length%3Bcontent-md5%3Bhost%3Bif-none-match&"} {
		if !strings.Contains(signed.URL, want) {
			t.Errorf("%s has no %s", signed.URL, want)
		}
	}
	if strings.Contains(strings.ToLower(signed.URL), "checksum") {
		t.Errorf("%s vouches for bytes that nobody has seen", signed.URL)
	}
	if _, err := store.Arrival(t.Context(), f.Blob); !fault.Is(err, fault.NotFound) {
		t.Errorf("before it came: %v", err)
	}
	if status := put(t, signed, "the bytes of a fake"); status != http.StatusBadRequest {
		t.Errorf("other bytes: %d", status)
	}
	if status := put(t, signed, "the bytes of a film"); status != http.StatusOK {
		t.Fatalf("the bytes: %d", status)
	}
	got, err := store.Arrival(t.Context(), f.Blob)
	if want := (file.Arrival{Size: f.Size, MD5: f.MD5}); err != nil || got != want {
		t.Errorf("arrived: %+v, %v; want %+v", got, err, want)
	}
	if status := put(t, signed, "the bytes of a film"); status != http.StatusPreconditionFailed {
		t.Errorf("once more: %d", status)
	}
}

// What was stored by parts has an entity tag that is no MD5.
func TestArrivalKnowsTheMD5OfAnyBlob(t *testing.T) {
	cloud := awstest.Start(t)
	store := s3.New(cloud.Config(), cloud.MakeBucket(t))
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

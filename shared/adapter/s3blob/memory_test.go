package s3blob_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/testkit/awstest"
)

// sink receives a multipart upload and discards its parts. It measures the memory usage at each part.
type sink struct {
	mu         sync.Mutex
	size, held int64
}

func (s *sink) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: request}
	body := ""
	switch operation(request) {
	case "CreateMultipartUpload":
		body = "<InitiateMultipartUploadResult><UploadId>upload</UploadId></InitiateMultipartUploadResult>"
	case "UploadPart":
		n, err := io.Copy(io.Discard, request.Body)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.size, s.held = s.size+n, max(s.held, heldMemory())
		s.mu.Unlock()
		answer.Header.Set("ETag", `"part"`)
	case "CompleteMultipartUpload":
		body = "<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>"
	default:
		return nil, fmt.Errorf("unexpected request: %s", operation(request))
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

func heldMemory() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestLargeUploadNeedsConstantMemory(t *testing.T) {
	const size, most = 256 << 20, 28 << 20
	s := &sink{}
	config := awstest.ConfigFor("http://s3.test")
	config.HTTPClient = &http.Client{Transport: s}
	store := s3blob.New(config, "bucket")
	before := heldMemory()
	n, err := store.Put(t.Context(), "a", io.LimitReader(zeros{}, size))
	if err != nil || n != size || s.size != size {
		t.Fatalf("stored %d bytes, sent %d: %v", n, s.size, err)
	}
	if held := s.held - before; held > most {
		t.Errorf("%d MiB were in use, want at most %d", held>>20, most>>20)
	}
}

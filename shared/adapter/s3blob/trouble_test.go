package s3blob_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"testing"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/awstest"
)

// A blob that Put acknowledged is complete, and a blob that Put rejected does not exist, not even partially.
func TestBlobsAreCompleteThroughFailures(t *testing.T) {
	cloud := local.Cloud(t)
	bucket := cloud.MakeBucket(t)
	proxy := cloud.Proxy(t, 5, awstest.Faults{Throttled: 0.08, Failed: 0.08, LostCalls: 0.04, LostAnswers: 0.1})
	store, calm := s3blob.New(proxy.Config(), bucket), s3blob.New(cloud.Config(), bucket)
	stored := 0
	for i := range 6 {
		content := make([]byte, 100+i%3*part)
		_, _ = rand.Read(content)
		name, copied := fmt.Sprint("a/", i), fmt.Sprint("b/", i)
		_, err := store.Put(t.Context(), name, bytes.NewReader(content))
		names := []string{name}
		if err == nil {
			stored++
			if store.Copy(t.Context(), name, copied) == nil {
				names = append(names, copied)
			}
		}
		for _, name := range names {
			r, openErr := calm.Open(t.Context(), name, 0, -1)
			if err != nil && fault.Is(openErr, fault.NotFound) {
				continue
			}
			if openErr != nil {
				t.Fatalf("%s: %v", name, openErr)
			}
			got, readErr := io.ReadAll(r)
			if err := errors.Join(readErr, r.Close()); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s contains %d bytes that differ from the %d stored bytes: %v", name, len(got), len(content), err)
			}
		}
	}
	if stored < 4 || len(proxy.Met()) < 3 {
		t.Errorf("only %d blobs were stored; faults: %v", stored, proxy.Met())
	}
}

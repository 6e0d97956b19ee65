package iamtest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"cutroom/shared/testkit/iamtest"
)

func sign(r *http.Request, service string) {
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=FilesRole/20260101/eu-central-1/"+service+
		"/aws4_request, SignedHeaders=host, Signature=0")
}

func TestCallerIsSigner(t *testing.T) {
	signed := httptest.NewRequest(http.MethodGet, "/b/k?X-Amz-Credential=FilesRole%2F20260101%2Feu-central-1%2Fs3%2Faws4_request", nil)
	header := httptest.NewRequest(http.MethodGet, "/b/k", nil)
	sign(header, "s3")
	for _, r := range []*http.Request{signed, header} {
		if key, service := iamtest.Caller(r); key != "FilesRole" || service != "s3" {
			t.Errorf("got caller %q of service %q", key, service)
		}
	}
	if key, service := iamtest.Caller(httptest.NewRequest(http.MethodGet, "/b/k", nil)); key != "" || service != "" {
		t.Errorf("an unsigned request has the caller %q of service %q", key, service)
	}
}

// S3 reports a missing object only to callers that may list the bucket.
func TestMissingObjectsNeedListPermission(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		want   bool
	}{
		{http.MethodGet, 404, true}, {http.MethodHead, 404, true}, {http.MethodGet, 200, false}, {http.MethodPut, 404, false},
	} {
		r := httptest.NewRequest(c.method, "/b/k", nil)
		sign(r, "s3")
		list, ok := iamtest.Names{Place: place}.ToReportMissing(r, c.status)
		if ok != c.want || ok && (list.Action != "s3:ListBucket" || list.Resource != "arn:aws:s3:::b") {
			t.Errorf("%+v: %+v %v", c, list, ok)
		}
	}
}

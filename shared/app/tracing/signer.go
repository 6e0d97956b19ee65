package tracing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const signingName = "xray"

// signer signs requests with AWS Signature Version 4. Each attempt uses the current credentials.
type signer struct {
	next        http.RoundTripper
	credentials aws.CredentialsProvider
	region      string
	now         func() time.Time
	signer      *v4.Signer
}

// The credentials are renewed automatically before they expire.
func newSigner(next http.RoundTripper, credentials aws.CredentialsProvider, region string,
	now func() time.Time) *signer {
	return &signer{next, credentials, region, now, v4.NewSigner()}
}

// RoundTrip keeps the body in memory. That is safe because batches of spans are limited in size.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	credentials, err := s.credentials.Retrieve(r.Context())
	if err != nil {
		return nil, fmt.Errorf("get the AWS credentials: %w", err)
	}
	signed := r.Clone(r.Context())
	signed.ContentLength = int64(len(body))
	signed.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	signed.Body, _ = signed.GetBody()
	sum := sha256.Sum256(body)
	err = s.signer.SignHTTP(r.Context(), credentials, signed, hex.EncodeToString(sum[:]), signingName, s.region, s.now())
	if err != nil {
		return nil, fmt.Errorf("sign the request: %w", err)
	}
	return s.next.RoundTrip(signed)
}

func (s *signer) CloseIdleConnections() {
	if next, ok := s.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return body, nil
}

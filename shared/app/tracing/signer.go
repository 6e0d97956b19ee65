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
	signer      *v4.Signer
}

// RoundTrip keeps the body in memory. That is safe because batches of spans are limited in size.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	credentials, err := s.credentials.Retrieve(r.Context())
	if err != nil {
		return nil, fmt.Errorf("get the AWS credentials: %w", err)
	}
	signed := r.Clone(r.Context())
	signed.Body, signed.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	sum := sha256.Sum256(body)
	err = s.signer.SignHTTP(r.Context(), credentials, signed, hex.EncodeToString(sum[:]), signingName, s.region,
		time.Now())
	if err != nil {
		return nil, fmt.Errorf("sign the request: %w", err)
	}
	return s.next.RoundTrip(signed)
}

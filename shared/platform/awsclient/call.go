package awsclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// These match the code and the message of an error response, in JSON and in XML.
var (
	errorCode    = regexp.MustCompile(`(?:"__type":"(?:[^"]*#)?|<Code>)([A-Za-z.]+)`)
	errorMessage = regexp.MustCompile(`(?:"[mM]essage":"|<Message>)([^"<]*)`)
)

// Call makes a call without an SDK client. EC2's and IAM's clients take longer to compile than the programs that would
// link them. It sends a form, or JSON if target names an operation. It makes one attempt and returns the response's
// body. An error response is a smithy.APIError.
func Call(ctx context.Context, config aws.Config, service, target, body string) ([]byte, error) {
	endpoint, err := Endpoint(ctx, config, service)
	if err != nil {
		return nil, err
	}
	region := config.Region
	if service == "iam" { // it has one address for all regions
		region, endpoint = "us-east-1", strings.Replace(endpoint, "//iam."+region+".", "//iam.", 1)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if target != "" {
		request.Header.Set("Content-Type", "application/x-amz-json-1.1")
		request.Header.Set("X-Amz-Target", target)
	}
	credentials, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(body))
	err = v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), service, region, time.Now())
	if err != nil {
		return nil, err
	}
	response, err := HTTPClient(config, 0).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	const longest = 16 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err != nil || response.StatusCode == http.StatusOK {
		return text, err
	}
	failure := &smithy.GenericAPIError{Code: response.Status, Fault: smithy.FaultServer}
	if response.StatusCode < http.StatusInternalServerError {
		failure.Fault = smithy.FaultClient
	}
	if found := errorCode.FindSubmatch(text); found != nil {
		failure.Code = string(found[1])
	}
	if found := errorMessage.FindSubmatch(text); found != nil {
		failure.Message = string(found[1])
	}
	return nil, failure
}

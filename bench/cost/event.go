package cost

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/testkit/servertest"
)

// request is a client's request, as API Gateway passes it to a function.
type request struct {
	method, resource, path string
	header                 map[string]string
	body                   []byte
}

// event returns the event of a request.
func (r request) event() ([]byte, error) {
	header := map[string]string{
		"Accept": "*/*", "Host": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com", "User-Agent": "curl/8.5.0",
		"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Port": "443", "X-Forwarded-Proto": "https",
	}
	maps.Copy(header, r.header)
	multiple := map[string][]string{}
	for field, value := range header {
		multiple[field] = []string{value}
	}
	event := events.APIGatewayProxyRequest{
		Resource: r.resource, Path: r.path, HTTPMethod: r.method, Headers: header, MultiValueHeaders: multiple,
		RequestContext: events.APIGatewayProxyRequestContext{
			Path: "/live" + r.path, ResourcePath: r.resource, HTTPMethod: r.method, Stage: "live",
			RequestID: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
			Identity:  events.APIGatewayRequestIdentity{SourceIP: "192.0.2.1", UserAgent: "curl/8.5.0"},
		},
	}
	if len(r.body) > 0 {
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(r.body), true
	}
	return json.Marshal(event)
}

// form returns a request that posts a form.
func form(resource, path, key string, parts servertest.Form) (request, error) {
	body, _, contentType := parts.Encode()
	content, err := io.ReadAll(body)
	return request{http.MethodPost, resource, path, map[string]string{"x-api-key": key, "Content-Type": contentType},
		content}, err
}

// get returns a request that reads.
func get(resource, path, key string) request {
	return request{method: http.MethodGet, resource: resource, path: path, header: map[string]string{"x-api-key": key}}
}

// post returns a request that posts JSON, with the key where its API expects it.
func post(path string, header map[string]string, body any) (request, error) {
	text, err := json.Marshal(body)
	fields := map[string]string{"Content-Type": "application/json"}
	maps.Copy(fields, header)
	return request{http.MethodPost, path, path, fields, text}, err
}

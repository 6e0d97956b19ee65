package deploycheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// tooLarge is above what API Gateway takes, in bytes.
const tooLarge = 11 << 20

// ownAnswer is a call that API Gateway answers by itself.
type ownAnswer struct {
	what string
	request
	// want is the status. Where it is 403, 404 will do.
	want int
}

// forbidden are calls that API Gateway takes for badly signed ones of AWS. By itself it
// answers them with a 403 of its own shape, {"message"}. Which of its errors each is, AWS
// says of few: a 403 in the shape of the service is as good.
func forbidden() []ownAnswer {
	var calls []ownAnswer
	for _, gateway := range []bool{false, true} {
		of := map[bool]string{false: "", true: " of the gateway"}[gateway]
		for what, header := range map[string]map[string]string{
			"that asks with a token": {"Authorization": "Bearer " + wrongKey},
			"that is signed for AWS": {"Authorization": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/" +
				"execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=0", "X-Amz-Date": "20260101T000000Z"},
			"that has a token of AWS": {"X-Amz-Security-Token": "none"},
		} {
			calls = append(calls, ownAnswer{"an unknown route" + of + " " + what,
				request{path: "/v1/unknown", gateway: gateway, header: header}, http.StatusForbidden})
		}
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPatch} {
			calls = append(calls, ownAnswer{"an unknown route" + of + " by " + method,
				request{method: method, path: "/v1/unknown", gateway: gateway}, http.StatusNotFound})
		}
	}
	return calls
}

// checkAnswers looks at what API Gateway answers by itself: the shape of the errors, an id
// for each, and what pages of other origins may read.
func checkAnswers(ctx context.Context, v *visit) (string, error) {
	large := bytes.Repeat([]byte(" "), tooLarge)
	var wrong []error
	calls := append([]ownAnswer{
		{"an unknown route", request{path: "/v1/unknown"}, http.StatusNotFound},
		{"an unknown route with a key", request{path: "/v1/unknown", key: v.own.key}, http.StatusNotFound},
		{"an unknown route of the gateway", request{path: "/v1/unknown", gateway: true}, http.StatusNotFound},
		// An Authorization header makes API Gateway look for a signature of AWS.
		{"an unknown route of the gateway with a key", request{path: "/v1/unknown", gateway: true, key: v.own.key},
			http.StatusNotFound},
		{"a body that is too large", request{method: http.MethodPost, path: "/v1/files", key: v.own.key, body: large,
			kind: jsonType}, http.StatusRequestEntityTooLarge},
		{"a body that is too large for the gateway", request{method: http.MethodPost, path: "/v1/chat/completions",
			gateway: true, key: v.own.key, body: large, kind: jsonType}, http.StatusRequestEntityTooLarge},
	}, forbidden()...)
	for _, c := range calls {
		if c.request.header == nil {
			c.request.header = map[string]string{}
		}
		c.request.header["Origin"] = "https://example.com"
		got, err := v.call(ctx, c.request)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.what, err)
		}
		if got.status != c.want && (c.want != http.StatusForbidden || got.status != http.StatusNotFound) {
			wrong = append(wrong, got.unexpected(c.what, c.want))
			continue
		}
		if complaint := errorShape(got, c.gateway); complaint != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s", c.what, complaint))
		}
		if got.requestID() == "" {
			wrong = append(wrong, fmt.Errorf("%s: no header names the request", c.what))
		}
		if got.header.Get("Access-Control-Allow-Origin") == "" {
			wrong = append(wrong, fmt.Errorf("%s: no page of another origin may read the answer", c.what))
		}
	}
	return fmt.Sprintf("%d answers", len(calls)), errors.Join(wrong...)
}

// checkPreflight asks, as a browser does, whether a page may call.
func checkPreflight(ctx context.Context, v *visit) (string, error) {
	var wrong []error
	for _, c := range []struct {
		path, header string
		gateway      bool
	}{{"/v1/files", "x-api-key", false}, {"/v1/chat/completions", "authorization", true}} {
		got, err := v.call(ctx, request{method: http.MethodOptions, path: c.path, gateway: c.gateway,
			header: map[string]string{"Origin": "https://example.com", "Access-Control-Request-Method": http.MethodPost,
				"Access-Control-Request-Headers": c.header}})
		if err != nil {
			return "", err
		}
		if got.status != http.StatusNoContent {
			wrong = append(wrong, got.unexpected("OPTIONS "+c.path, http.StatusNoContent))
			continue
		}
		// Where origins are named, a page of another one gets no leave, and that is as
		// it should be.
		if got.header.Get("Access-Control-Allow-Origin") == "" {
			continue
		}
		if allowed := strings.ToLower(got.header.Get("Access-Control-Allow-Headers")); allowed != "*" &&
			!strings.Contains(allowed, c.header) {
			wrong = append(wrong, fmt.Errorf("OPTIONS %s does not allow %s, but %q", c.path, c.header, allowed))
		}
		if methods := got.header.Get("Access-Control-Allow-Methods"); !strings.Contains(methods, http.MethodPost) {
			wrong = append(wrong, fmt.Errorf("OPTIONS %s does not allow POST, but %q", c.path, methods))
		}
	}
	return "2 routes", errors.Join(wrong...)
}

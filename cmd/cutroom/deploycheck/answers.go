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

// checkAnswers looks at what API Gateway answers by itself: the shape of the errors, an id
// for each, and what pages of other origins may read.
func checkAnswers(ctx context.Context, v *visit) (string, error) {
	large := bytes.Repeat([]byte(" "), tooLarge)
	var wrong []error
	calls := []struct {
		what string
		request
		want int
	}{
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
	}
	for _, c := range calls {
		c.request.header = map[string]string{"Origin": "https://example.com"}
		got, err := v.call(ctx, c.request)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.what, err)
		}
		if got.status != c.want {
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

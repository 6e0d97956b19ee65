package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"cutroom/shared/client"
	"cutroom/shared/client/access"
)

// wrongKey has the format of a key but is invalid.
const wrongKey = "ck_0000000000000000000000000000000000000000"

func checkRoutes(ctx context.Context, v *visit) (string, error) {
	text, err := v.textModel(ctx)
	if err != nil {
		return "", err
	}
	fixtures, err := v.fixtures(ctx)
	if err != nil {
		return "", err
	}
	token, err := v.own.CreateToken(ctx, client.TokenRequest{
		ExpiresIn: 3600, AllowedModels: []string{fixtures.Video, fixtures.Image, text},
	})
	if err != nil {
		return "", err
	}
	var wrong []error
	done := 0
	for gateway, calls := range map[bool][]access.Call{false: access.Media(fixtures), true: access.Gateway(text)} {
		for _, call := range calls {
			// The order matches the columns of the table of calls.
			for _, c := range []struct {
				name, secret string
				want         int
			}{
				{"no key", "", http.StatusUnauthorized},
				{"a wrong key", wrongKey, http.StatusUnauthorized},
				{"another account's key", v.other.key, call.OtherKey},
				{"a client token", token.APIKey, call.Token},
				{"a key", v.own.key, call.Key},
				{"an admin key", v.own.admin, call.AdminKey},
			} {
				method, _, _ := strings.Cut(call.Endpoint, " ")
				got, err := v.call(ctx, request{method: method, path: call.Path, gateway: gateway, key: c.secret,
					body: []byte(call.Body), kind: call.ContentType})
				if err != nil {
					return "", fmt.Errorf("%s with %s: %w", call.Endpoint, c.name, err)
				}
				if complaint := routeComplaint(got, gateway, c.want); complaint != "" {
					wrong = append(wrong, fmt.Errorf("%s with %s: %s", call.Endpoint, c.name, complaint))
				}
				done++
			}
		}
	}
	// Free the workers for the other checks.
	wrong = append(wrong, cancelJobs(ctx, v.own), cancelJobs(ctx, v.other))
	return fmt.Sprintf("%d calls", done), errors.Join(wrong...)
}

// routeComplaint describes the problem with a route's response, or returns "".
func routeComplaint(got answer, gateway bool, want int) string {
	switch redirected := got.status == http.StatusTemporaryRedirect && want == http.StatusOK; {
	case got.status != want && !redirected: // content may be redirected to the bucket
		return got.unexpected(want).Error()
	case got.status < http.StatusBadRequest:
		return ""
	}
	return errorShape(got, gateway)
}

// errorShape describes the problem with an error body (docs/contract/errors.md), or returns "".
func errorShape(got answer, gateway bool) string {
	var body struct {
		Detail json.RawMessage
		Error  *struct{ Message, Type string }
	}
	if err := json.Unmarshal(got.body, &body); err != nil {
		return fmt.Sprintf("%d without JSON: %.160q", got.status, got.body)
	}
	if gateway && (body.Error == nil || body.Error.Message == "" || body.Error.Type == "") ||
		!gateway && len(body.Detail) < len(`"x"`) {
		return fmt.Sprintf("%d without a reason: %.160q", got.status, got.body)
	}
	return ""
}

// fixtures creates the jobs, the files and the key that the table of calls refers to.
func (v *visit) fixtures(ctx context.Context) (f access.Fixtures, err error) {
	f.Video, f.Image = v.video.ID, v.image.ID
	if f.Cancelled, err = v.cancelled(ctx); err != nil {
		return f, err
	}
	if f.Ended = v.done; f.Ended == "" {
		f.Ended, f.NoResult = f.Cancelled, true
	}
	for i, id := range []*string{&f.Deleted, &f.Stored} {
		stored, err := v.own.PutFile(ctx, source(strings.Repeat("bytes", i+1)), "3600", nil)
		if err != nil {
			return f, err
		}
		*id, f.MD5 = stored.ID, stored.MD5
	}
	if _, err = v.makeKey(ctx, v.own.name, false); err != nil {
		return f, err
	}
	f.KeyID = v.made[len(v.made)-1]
	report, err := v.call(ctx, request{
		method: http.MethodHead, path: "/v1/uploads/" + f.Stored + "/credentials", key: v.own.key,
	})
	f.Verifies = report.status == http.StatusOK
	return f, err
}

func source(text string) client.Source {
	return client.Source{Name: "check.txt", Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

// cancelled submits a job and cancels it. If a worker completes the job first, it tries again.
func (v *visit) cancelled(ctx context.Context) (id string, err error) {
	const tries = 10
	for range tries {
		if id, err = v.submit(ctx, v.own, ""); err != nil {
			return "", err
		}
		if _, err = v.own.CancelJob(ctx, id); !client.IsStatus(err, http.StatusConflict) {
			return id, err
		}
	}
	return "", fmt.Errorf("%d jobs ended before they were cancelled", tries)
}

// checkAnswers checks the shape and the request id of API Gateway's own error responses, and that pages of other
// origins may read them. AWS does not document which error some of these calls get, so a 403 is accepted in place of
// a 404.
func checkAnswers(ctx context.Context, v *visit) (string, error) {
	type fields = map[string]string
	const get, post = http.MethodGet, http.MethodPost
	tooLarge := bytes.Repeat([]byte(" "), 11<<20)
	done := 0
	var wrong []error
	for gateway, large := range map[bool]string{false: "/v1/files", true: "/v1/chat/completions"} {
		for _, c := range []struct {
			what string
			want []int
			request
		}{
			{"without a key", []int{404}, request{method: get}},
			{"with a key", []int{404}, request{method: get, key: v.own.key}},
			{"by POST", []int{404}, request{method: post}},
			{"by PATCH", []int{404}, request{method: http.MethodPatch}},
			{"with a wrong token", []int{404, 403}, request{method: get, header: fields{"Authorization": "Bearer x"}}},
			{"with a token of AWS", []int{404, 403}, request{method: get, header: fields{"X-Amz-Security-Token": "x"}}},
			{"that is signed for AWS", []int{404, 403}, request{method: get, header: fields{"X-Amz-Date": "20260101T000000Z",
				"Authorization": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/execute-api/" +
					"aws4_request, SignedHeaders=host;x-amz-date, Signature=0"}}},
			{"with a body that is too large", []int{413}, request{method: post, path: large, key: v.own.key,
				kind: "application/json", body: tooLarge}},
		} {
			c.gateway, c.path = gateway, cmp.Or(c.path, "/v1/unknown")
			got, err := v.call(ctx, c.request)
			var complaint string
			switch {
			case err != nil:
				return "", fmt.Errorf("%s %s: %w", c.path, c.what, err)
			case !slices.Contains(c.want, got.status):
				complaint = got.unexpected(c.want[0]).Error()
			case got.requestID() == "":
				complaint = "no header contains the request id"
			case got.header.Get("Access-Control-Allow-Origin") == "":
				complaint = "pages from other origins cannot read the response"
			default:
				complaint = errorShape(got, gateway)
			}
			if complaint != "" {
				wrong = append(wrong, fmt.Errorf("%s %s: %s", c.path, c.what, complaint))
			}
			done++
		}
	}
	return fmt.Sprintf("%d answers", done), errors.Join(wrong...)
}

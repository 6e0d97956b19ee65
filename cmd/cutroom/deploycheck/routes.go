package deploycheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cutroom/shared/client/access"
)

// wrongKey has the form of a key and is none.
const wrongKey = "ck_0000000000000000000000000000000000000000"

// checkRoutes calls every route of both services with every kind of credential.
func checkRoutes(ctx context.Context, v *visit) (string, error) {
	if err := v.mint(ctx); err != nil {
		return "", err
	}
	text, err := v.textModel(ctx)
	if err != nil {
		return "", err
	}
	fixtures, err := v.fixtures(ctx)
	if err != nil {
		return "", err
	}
	done := 0
	var wrong []string
	try := func(call access.Call, gateway bool) error {
		for _, one := range v.credentials(call.Statuses) {
			complaint, err := v.callRoute(ctx, call, gateway, one)
			if err != nil {
				return err
			}
			done++
			if complaint != "" {
				wrong = append(wrong, complaint)
			}
		}
		return nil
	}
	for _, call := range access.Media(fixtures) {
		if err := try(call, false); err != nil {
			return "", err
		}
	}
	for _, call := range access.Gateway(text) {
		if err := try(call, true); err != nil {
			return "", err
		}
	}
	// Workers have better to do.
	if err := errors.Join(v.cancelJobs(ctx, v.own), v.cancelJobs(ctx, v.other)); err != nil {
		return "", err
	}
	if len(wrong) > 0 {
		return "", fmt.Errorf("%d of %d calls: %s", len(wrong), done, strings.Join(wrong, "; "))
	}
	return fmt.Sprintf("%d calls", done), nil
}

// credentialOf is a credential that a route is called with, and the status that it
// should get.
type credentialOf struct {
	name, secret string
	want         int
}

// credentials are in the order that the table of calls needs.
func (v *visit) credentials(s access.Statuses) []credentialOf {
	return []credentialOf{
		{"no key", "", http.StatusUnauthorized},
		{"a wrong key", wrongKey, http.StatusUnauthorized},
		{"another account's key", v.other.key, s.OtherKey},
		{"a client token", v.own.token, s.Token},
		{"a key", v.own.key, s.Key},
		{"an admin key", v.own.admin, s.AdminKey},
	}
}

// callRoute calls a route once, and returns what is wrong with the answer.
func (v *visit) callRoute(ctx context.Context, call access.Call, gateway bool, with credentialOf) (string, error) {
	method, _, _ := strings.Cut(call.Endpoint, " ")
	r := request{method: method, path: call.Path, gateway: gateway, key: with.secret, body: []byte(call.Body),
		kind: call.ContentType}
	response, err := v.open(ctx, r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	got := answer{status: response.StatusCode, header: response.Header}
	what := call.Endpoint + " with " + with.name
	if got.status >= http.StatusBadRequest {
		var body bytes.Buffer
		if _, err := body.ReadFrom(http.MaxBytesReader(nil, response.Body, maxBody)); err != nil {
			return "", fmt.Errorf("%s: the answer broke off: %w", what, err)
		}
		got.body = body.Bytes()
	}
	if redirected := got.status == http.StatusTemporaryRedirect && with.want == http.StatusOK; redirected {
		return "", nil // content, where the deployer has it so
	}
	if got.status != with.want {
		return got.unexpected(what, with.want).Error(), nil
	}
	if got.status < http.StatusBadRequest {
		if call.Endpoint == "POST /v1/jobs/{id}" {
			v.spent.jobs++
		}
		return "", nil
	}
	if complaint := errorShape(got, gateway); complaint != "" {
		return what + ": " + complaint, nil
	}
	return "", nil
}

// errorShape says what is wrong with the body of an error, empty if nothing is
// (docs/contract/errors.md).
func errorShape(got answer, gateway bool) string {
	var body struct {
		Detail json.RawMessage
		Error  *struct{ Message, Type string }
	}
	if err := json.Unmarshal(got.body, &body); err != nil {
		return fmt.Sprintf("%d without JSON: %s", got.status, got.detail())
	}
	if gateway && (body.Error == nil || body.Error.Message == "" || body.Error.Type == "") ||
		!gateway && len(body.Detail) < len(`""`)+1 {
		return fmt.Sprintf("%d without its reason: %s", got.status, got.detail())
	}
	return ""
}

// fixtures makes what the calls of the table refer to.
func (v *visit) fixtures(ctx context.Context) (access.Fixtures, error) {
	f := access.Fixtures{Video: v.video, Image: v.image, Ended: v.done}
	cancelled, err := v.cancelled(ctx)
	if err != nil {
		return f, err
	}
	if f.Cancelled = cancelled; f.Ended == "" {
		f.Ended, f.NoResult = cancelled, true
	}
	stored, err := v.store(ctx, []byte("some bytes"))
	if err != nil {
		return f, err
	}
	f.Stored, f.MD5 = stored.ID, stored.MD5
	deleted, err := v.store(ctx, []byte("other bytes"))
	if err != nil {
		return f, err
	}
	f.Deleted = deleted.ID
	var key struct{ ID string }
	err = v.ask(ctx, request{method: http.MethodPost, path: "/v1/keys", key: v.own.admin, body: []byte(`{"label":"check"}`),
		kind: jsonType}, &key)
	f.KeyID = key.ID
	if err != nil {
		return f, err
	}
	report, err := v.open(ctx, request{
		method: http.MethodHead, path: "/v1/uploads/" + f.Stored + "/credentials", key: v.own.key,
	})
	if err != nil {
		return f, err
	}
	f.Verifies = report.StatusCode == http.StatusOK
	return f, report.Body.Close()
}

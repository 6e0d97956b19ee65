package deploycheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	jsonType = "application/json"
	// maxBody bounds an answer that is read into memory, in bytes.
	maxBody = 16 << 20
)

// newClient returns a client that shows each answer as it came: nothing is tried again,
// and no redirect is followed.
func newClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			IdleConnTimeout:     30 * time.Second,
		},
	}
}

// request is a call of the deploy.
type request struct {
	// method is GET unless another is named.
	method, path string
	// gateway calls the inference gateway, else the media service.
	gateway bool
	// key is sent where the service takes it; empty sends none.
	key    string
	body   []byte
	kind   string
	header map[string]string
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// detail returns the beginning of the body, to be shown.
func (a answer) detail() string {
	const most = 160
	if len(a.body) > most {
		return fmt.Sprintf("%q…", a.body[:most])
	}
	return fmt.Sprintf("%q", a.body)
}

// requestID returns the id by which logs know the call.
func (a answer) requestID() string {
	if id := a.header.Get("x-amzn-RequestId"); id != "" {
		return id
	}
	return a.header.Get("x-request-id")
}

// unexpected says that the status is not the one wanted.
func (a answer) unexpected(what string, want int) error {
	return fmt.Errorf("%s: %d, want %d: %s (request %s)", what, a.status, want, a.detail(), a.requestID())
}

// open sends a call. The caller closes the answer's body.
func (v *visit) open(ctx context.Context, r request) (*http.Response, error) {
	base := v.MediaURL
	if r.gateway {
		base = v.InferenceURL
	}
	if r.method == "" {
		r.method = http.MethodGet
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	// Some API gateways take bytes for text unless the caller says what it accepts.
	sent.Header.Set("Accept", "*/*")
	sent.Header.Set("User-Agent", "cutroom-check")
	if r.kind != "" {
		sent.Header.Set("Content-Type", r.kind)
	}
	if r.key != "" && r.gateway {
		sent.Header.Set("Authorization", "Bearer "+r.key)
	} else if r.key != "" {
		sent.Header.Set("x-api-key", r.key)
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	v.spent.requests++
	response, err := v.http.Do(sent)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // the URL is long and may carry a signature
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return response, nil
}

// call sends a call and returns the whole answer.
func (v *visit) call(ctx context.Context, r request) (answer, error) {
	response, err := v.open(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	v.spent.received += int64(len(body))
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: the answer broke off: %w", r.method, r.path, err)
	}
	return answer{response.StatusCode, response.Header, body}, nil
}

// ask sends a call that has to be answered with 200, and decodes the answer.
func (v *visit) ask(ctx context.Context, r request, value any) error {
	got, err := v.call(ctx, r)
	if err != nil {
		return err
	}
	what := r.method + " " + r.path
	if got.status != http.StatusOK {
		return got.unexpected(what, http.StatusOK)
	}
	if err := json.Unmarshal(got.body, value); err != nil {
		return fmt.Errorf("%s is not answered with JSON: %s", what, got.detail())
	}
	return nil
}

// wait pauses between two looks at something.
func (v *visit) wait(ctx context.Context) error { return v.pause(ctx, v.Poll) }

func (v *visit) pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// field is a field of a form, a file if it has a name.
type field struct {
	name, file string
	content    []byte
}

// form returns a form's body and its type.
func form(fields ...field) (body []byte, kind string, err error) {
	var encoded bytes.Buffer
	writer := multipart.NewWriter(&encoded)
	for _, f := range fields {
		create := writer.CreateFormField
		if f.file != "" {
			create = func(name string) (io.Writer, error) { return writer.CreateFormFile(name, f.file) }
		}
		part, err := create(f.name)
		if err != nil {
			return nil, "", err
		}
		if _, err := part.Write(f.content); err != nil {
			return nil, "", err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, "", err
	}
	return encoded.Bytes(), writer.FormDataContentType(), nil
}

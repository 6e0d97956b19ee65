package webhookhttp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/panics"
)

const maxRedirects = 5

// NewFetcher returns a function that opens a file at an untrusted URL. The URL, and all URLs that it redirects to,
// must be allowed as targets. The caller must close the file. Errors: fault.Invalid.
func NewFetcher(c Config) func(ctx context.Context, url string) (io.ReadCloser, error) {
	client := New(c).client
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		r.Header.Del("Referer") // a URL may be secret
		if len(via) > maxRedirects {
			return fault.New(fault.Invalid, "The URL redirects more than %d times.", maxRedirects)
		}
		return c.Targets.CheckURL(r.URL.String())
	}
	return func(ctx context.Context, url string) (file io.ReadCloser, err error) {
		defer panics.Error(&err) // a hostile response may cause a panic
		if err := c.Targets.CheckURL(url); err != nil {
			return nil, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, fault.New(fault.Invalid, "The URL is not valid.")
		}
		request.Header.Set("User-Agent", "Cutroom-Fetch/1")
		response, err := client.Do(request)
		var refusal *fault.Error
		switch {
		case errors.As(err, &refusal):
			return nil, refusal
		case err != nil:
			return nil, fault.New(fault.Invalid, "%s", explain(err))
		case response.StatusCode != http.StatusOK:
			response.Body.Close()
			return nil, fault.New(fault.Invalid, "The server at the URL returned the status %d.", response.StatusCode)
		}
		return response.Body, nil
	}
}

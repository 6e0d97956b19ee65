package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"cutroom/shared/platform/httpserver"
)

// statusCallerGone is the status of a call whose caller left before its answer, for
// the access log alone; the number is nginx's.
const statusCallerGone = 499

// callerLeft reports whether a caller has closed its connection. A request's context
// also ends when the server stops, and then the caller is there to be told.
func callerLeft(r *http.Request) bool {
	return r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), httpserver.ErrStopping)
}

// fail answers with an error. What is no fault of the caller's is logged, with
// its cause.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	apiErr := ErrorOf(err)
	switch {
	case apiErr.Status >= http.StatusInternalServerError && callerLeft(r):
		apiErr = &Error{Status: statusCallerGone, Type: API, Message: "The caller has gone."}
	case apiErr.Status == http.StatusInternalServerError || apiErr.Status == http.StatusServiceUnavailable:
		g.config.Logger.LogAttrs(r.Context(), slog.LevelError, "a request failed",
			slog.String("request_id", httpserver.RequestID(r.Context())), slog.String("route", r.Pattern), slog.Any("error", err))
	}
	if apiErr.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(wholeSeconds(apiErr.RetryAfter), 10))
	}
	if apiErr.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(r))
	}
	writeJSON(w, apiErr.Status, apiErr.JSON())
}

// challenge says which credential there has to be, and whether the one that was
// sent is the reason (RFC 6750, section 3).
func challenge(r *http.Request) string {
	if _, sent := bearer(r.Header.Get("Authorization")); sent {
		return `Bearer realm="cutroom", error="invalid_token"`
	}
	return `Bearer realm="cutroom"`
}

// PanicHandler answers with 500 in the shape of this package's errors, for
// httpserver.Config's Failed.
func PanicHandler(origins httpserver.Origins) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origins.Allow(w.Header(), r, exposedHeaders)
		apiErr := ErrorOf(errors.New("a handler panicked"))
		writeJSON(w, apiErr.Status, apiErr.JSON())
	}
}

// bodyError is the error of a body that could not be read.
func bodyError(err error) *Error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Error{Status: http.StatusRequestTimeout, Type: InvalidRequest, Message: "The request's body stopped arriving."}
	}
	return &Error{Status: http.StatusBadRequest, Type: InvalidRequest, Message: "The request's body ended early or is broken."}
}

// writeJSON answers with a text of JSON. Its length is declared, so that the
// answer is complete for a client that is still sending (see httpserver).
func writeJSON(w http.ResponseWriter, status int, text []byte) {
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Cache-Control"] = noStore
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails when the client has gone
}

// respond answers with a value as JSON.
func respond(w http.ResponseWriter, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, text)
	return nil
}

// Fields of headers that are the same on every answer; nobody changes them.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
	noStore    = []string{"no-store"}
)

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

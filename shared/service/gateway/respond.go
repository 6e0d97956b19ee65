package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"

	"cutroom/shared/domain/credential"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/dialect"
)

// statusCallerGone is logged if the caller disconnected before the response. nginx uses the same status.
const statusCallerGone = 499

// callerLeft reports whether the caller has disconnected. It checks the cause, because the context also ends at
// shutdown.
func callerLeft(r *http.Request) bool {
	return r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), httpserver.ErrStopping)
}

// fail sends an error response. It logs the cause if the caller is not at fault.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	apiErr := apierror.From(err)
	switch {
	case apiErr.Status >= http.StatusInternalServerError && callerLeft(r):
		apiErr = &apierror.Error{Status: statusCallerGone, Type: apierror.API, Message: "The caller disconnected."}
	case apiErr.Status == http.StatusInternalServerError || apiErr.Status == http.StatusServiceUnavailable:
		g.config.Logger.LogAttrs(r.Context(), slog.LevelError, "request failed",
			slog.String("request_id", httpserver.RequestID(r.Context())),
			slog.String("route", r.Pattern), slog.Any("error", err))
	}
	apiErr.SetHeader(w.Header())
	if apiErr.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(r))
	}
	writeJSON(w, apiErr.Status, errorJSON(r, apiErr))
}

func errorJSON(r *http.Request, apiErr *apierror.Error) []byte {
	if isMessages(r) {
		return dialect.MessagesError(apiErr, httpserver.RequestID(r.Context()))
	}
	return apiErr.JSON()
}

// isMessages reports whether a client of the Messages dialect sent the request. The dialect has its
// own error format and key header.
func isMessages(r *http.Request) bool {
	return r.URL.Path == "/v1/messages" || strings.HasPrefix(r.URL.Path, "/v1/messages/") || len(r.Header["Anthropic-Version"]) > 0
}

// challenge says which credential is required and whether the given one is invalid (RFC 6750, section 3).
func challenge(r *http.Request) string {
	if _, sent := bearer(r.Header.Get("Authorization")); sent {
		return `Bearer realm="cutroom", error="invalid_token"`
	}
	return `Bearer realm="cutroom"`
}

// PanicHandler returns a handler for OnPanic of httpserver.Config. It responds with 500 in the
// gateway's error format.
func PanicHandler(origins httpserver.Origins) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origins.Allow(w.Header(), r, exposedHeaders)
		apiErr := apierror.From(errors.New("a handler panicked"))
		writeJSON(w, apiErr.Status, errorJSON(r, apiErr))
	}
}

func bodyError(err error) *apierror.Error {
	if busy := (*apierror.Error)(nil); errors.As(err, &busy) {
		return busy
	}
	if errors.Is(err, httpserver.ErrCompressedTooLarge) {
		apiErr := tooLarge()
		apiErr.Message = fmt.Sprintf("The compressed request body is larger than %d bytes, or expands too much. Send it uncompressed.", maxCompressed)
		return apiErr
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &apierror.Error{
			Status: http.StatusRequestTimeout, Type: apierror.InvalidRequest,
			Message: httpserver.BodyStalledMessage,
		}
	}
	return &apierror.Error{
		Status: http.StatusBadRequest, Type: apierror.InvalidRequest,
		Message: "The request body is incomplete or malformed.",
	}
}

// writeJSON sends a JSON response with its length, so that a client that is still sending its
// request knows when the response is complete (see httpserver).
func writeJSON(w http.ResponseWriter, status int, text []byte) { writeWhole(w, status, jsonType, text) }

func writeWhole(w http.ResponseWriter, status int, kind []string, text []byte) {
	header := w.Header()
	header["Content-Type"] = kind
	header["Cache-Control"] = noStore
	header["Content-Length"] = []string{strconv.Itoa(len(text))}
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails if the client has disconnected
}

func respond(w http.ResponseWriter, value any) error {
	text, err := encode(value)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, text)
	return nil
}

// encode does not escape HTML characters, which would take six bytes each.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// inTurn wraps a handler that builds its response in memory, so that accounts take turns.
func (g *Gateway) inTurn(handle principalHandler) principalHandler {
	return func(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
		return g.listTurns.Respond(r.Context(), who.Account(), func() error { return handle(w, r, who) })
	}
}

// These header values are shared and must not be changed.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
	noStore    = []string{"no-store"}
	// unbuffered tells proxies such as nginx not to buffer chunks.
	unbuffered    = []string{"no"}
	tokensTrailer = []string{"X-Tokens-Used"}
)

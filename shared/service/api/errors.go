package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/httpserver"
)

const (
	internalDetail = "Internal server error"
	// clientGone is the status logged when the client has disconnected, as in nginx.
	clientGone = 499
)

// With a standard scheme (RFC 9110, 11.6.1), browsers would prompt for a password.
const challenge = `ApiKey realm="cutroom", header="x-api-key"`

var statuses = map[fault.Code]int{
	fault.Invalid: http.StatusUnprocessableEntity, fault.Unauthorized: http.StatusUnauthorized,
	fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.TooLarge: http.StatusRequestEntityTooLarge, fault.UnsupportedCoding: http.StatusUnsupportedMediaType,
	fault.Limited: http.StatusTooManyRequests, fault.Exhausted: http.StatusTooManyRequests,
	fault.StorageFull: http.StatusInsufficientStorage, fault.EngineFailed: http.StatusBadGateway,
	fault.Unavailable: http.StatusServiceUnavailable, fault.Timeout: http.StatusGatewayTimeout,
}

func statusOf(code fault.Code) int { return cmp.Or(statuses[code], http.StatusInternalServerError) }

// shortageRetry is the Retry-After value when the machine lacks a resource.
const shortageRetry = 10 * time.Second

// fail sends an error response without details. The status is 422 for problems with the request, a fault's own status
// for a fault, 503 if the machine lacks a resource, and otherwise 500.
func (s *service) fail(w http.ResponseWriter, r *http.Request, err error) {
	if isOpenAI(r) {
		s.failOpenAI(w, r, err)
		return
	}
	var invalid problems
	var unread *bodyError
	var refusal *fault.Error
	switch {
	case errors.As(err, &invalid):
		s.writeJSON(w, r, http.StatusUnprocessableEntity, map[string]any{"detail": invalid.shorten()})
	case errors.As(err, &unread) && errors.Is(err, os.ErrDeadlineExceeded):
		s.writeDetail(w, r, http.StatusRequestTimeout, httpserver.BodyStalledMessage)
	case errors.As(err, &unread):
		s.fail(w, r, problems{bodyProblem("The body is incomplete or malformed.")})
	case errors.As(err, &refusal) && refusal.Code == fault.Invalid:
		s.fail(w, r, problems{bodyProblem(refusal.Message)})
	case errors.As(err, &refusal) && statusOf(refusal.Code) != http.StatusInternalServerError:
		status := statusOf(refusal.Code)
		// Do not log Unavailable without a cause, because it is normal, for example if no worker is warm.
		if status >= 500 && (refusal.Err != nil || refusal.Code != fault.Unavailable) {
			s.log(r, err)
		}
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", challenge)
		}
		if refusal.Code == fault.UnsupportedCoding {
			w.Header().Set("Accept-Encoding", httpserver.AcceptedCodings)
		}
		if refusal.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(wholeSeconds(refusal.RetryAfter), 10))
		}
		if refusal.Code == fault.Exhausted {
			w.Header().Set("X-Should-Retry", "false")
			s.writeJSON(w, r, status, exhaustedBody{refusal.Message, "insufficient_quota"})
			return
		}
		s.writeDetail(w, r, status, refusal.Message)
	case r.Context().Err() != nil:
		s.writeDetail(w, r, clientGone, "The client disconnected.")
	case fault.IsShortage(err):
		s.log(r, err)
		w.Header().Set("Retry-After", strconv.FormatInt(wholeSeconds(shortageRetry), 10))
		s.writeDetail(w, r, http.StatusServiceUnavailable, "The service is short of resources. Try again later.")
	default:
		s.log(r, err)
		s.writeDetail(w, r, http.StatusInternalServerError, internalDetail)
	}
}

// See docs/contract/budgets.md#over-a-budget.
type exhaustedBody struct {
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

func (s *service) log(r *http.Request, err error) {
	s.Logger.LogAttrs(r.Context(), slog.LevelError, "request failed",
		slog.String("request_id", httpserver.RequestID(r.Context())),
		slog.String("route", r.Pattern),
		slog.Any("error", err))
}

// InternalError returns a handler for httpserver.Config.OnPanic.
func InternalError(origins httpserver.Origins) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origins.Allow(w.Header(), r, exposed)
		writeInternalError(w)
	}
}

func writeInternalError(w http.ResponseWriter) {
	writeBody(w, http.StatusInternalServerError, []byte(`{"detail":"`+internalDetail+`"}`))
}

func (s *service) writeDetail(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if isOpenAI(r) {
		writeBody(w, status, openAIDetail(status, detail))
		return
	}
	s.writeJSON(w, r, status, map[string]string{"detail": detail})
}

func (s *service) writeJSON(w http.ResponseWriter, r *http.Request, status int, value any) {
	body, err := encodeJSON(value)
	if err != nil {
		s.log(r, err)
		writeInternalError(w)
		return
	}
	writeBody(w, status, body)
}

func encodeJSON(value any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}

// writeBody responds with JSON that must not be cached.
func writeBody(w http.ResponseWriter, status int, text []byte) {
	writeKept(w, status, text, "no-store")
}

// The Content-Length lets a client that is still sending get a complete response.
func writeKept(w http.ResponseWriter, status int, text []byte, control string) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", control)
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails if the client has disconnected
}

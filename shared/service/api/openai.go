package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
)

// OpenAIPaths are the patterns of the routes that the inference address serves with this package.
var OpenAIPaths = []string{"/v1/images/{route}", "/v1/videos", "/v1/videos/", sharesPath + "{job_id}"}

// OpenAIImages is the group of OpenAI's image routes (docs/clients.md#images-and-videos-with-openais-client).
// Like all routes of OpenAI, they take the key as a bearer token and return the gateway's errors.
func OpenAIImages(s *service) []route {
	return within(credential.ImageRoutes, []route{
		{method: http.MethodPost, path: "/v1/images/edits", access: keyOrToken, handle: s.editImages},
		{method: http.MethodPost, path: "/v1/images/generations", access: keyOrToken, handle: s.editImages},
	})
}

// OpenAIVideos is the group of OpenAI's video routes, except for the content.
func OpenAIVideos(s *service) []route {
	return within(credential.JobRoutes, []route{
		{method: http.MethodPost, path: "/v1/videos", access: keyOrToken, handle: s.createVideo},
		{method: http.MethodPost, path: "/v1/videos/edits", access: keyOrToken, handle: s.createVideo},
		{method: http.MethodPost, path: "/v1/videos/{id}/remix", access: keyOrToken, handle: s.createVideo},
		{method: http.MethodGet, path: "/v1/videos", access: keyOnly, handle: s.inTurn(s.listVideos)},
		{method: http.MethodGet, path: "/v1/videos/{id}", access: keyOrToken, unlimited: true, handle: s.showVideo},
		{method: http.MethodDelete, path: "/v1/videos/{id}", access: keyOnly, handle: s.deleteVideo},
	})
}

func OpenAIContent(s *service) []route {
	return within(credential.JobRoutes, []route{{
		method: http.MethodGet, path: "/v1/videos/{id}/content", access: keyOrToken, unlimited: true,
		handle: s.showVideoContent,
	}})
}

func isOpenAI(r *http.Request) bool {
	path := r.URL.Path
	return strings.HasPrefix(path, "/v1/images/") || path == "/v1/videos" || strings.HasPrefix(path, "/v1/videos/")
}

// bearer returns "" if the request has no bearer token.
func bearer(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

func (s *service) failOpenAI(w http.ResponseWriter, r *http.Request, err error) {
	e := openAIError(r, err)
	var refusal *fault.Error
	expected := errors.As(err, &refusal) && refusal.Code == fault.Unavailable && refusal.Err == nil
	switch {
	case e.Status >= http.StatusInternalServerError && r.Context().Err() != nil:
		e = &apierror.Error{Status: clientGone, Type: apierror.API, Message: "The client disconnected."}
	case e.Status >= http.StatusInternalServerError && !expected:
		s.log(r, err)
	}
	e.SetHeader(w.Header())
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="cutroom"`)
	}
	writeBody(w, e.Status, e.JSON())
}

func openAIError(r *http.Request, err error) *apierror.Error {
	var invalid problems
	var unread *bodyError
	switch {
	case errors.As(err, &invalid):
		return invalid[0].openAI(r)
	case errors.As(err, &unread) && errors.Is(err, os.ErrDeadlineExceeded):
		return &apierror.Error{
			Status: http.StatusRequestTimeout, Type: apierror.InvalidRequest, Message: httpserver.BodyStalledMessage,
		}
	case errors.As(err, &unread):
		return apierror.Invalid("", "", "The body is incomplete or malformed.")
	}
	return apierror.From(err)
}

// openAI converts a problem. Fields of a model's form get the names of OpenAI's parameters.
func (p problem) openAI(r *http.Request) *apierror.Error {
	param := ""
	if last := len(p.Location) - 1; last > 0 && p.Type != "json_invalid" {
		param = p.Location[last]
	}
	if param == catalog.DataField || param == catalog.ReferenceField {
		param = "input_reference"
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/images/"):
			param = "image"
		case r.URL.Path != "/v1/videos":
			param = videoField
		}
	}
	message, code := strings.TrimPrefix(p.Message, "Value error, "), apierror.InvalidValue
	switch p.Type {
	case "missing":
		code, message = apierror.MissingParameter, fmt.Sprintf("Missing required parameter: '%s'.", param)
	case "json_invalid":
		code = apierror.InvalidJSON
	case "int_parsing", "bool_parsing":
		code = apierror.InvalidType
	case "greater_than_equal":
		code = apierror.IntegerTooSmall
	case "less_than_equal":
		code = apierror.IntegerTooLarge
	}
	return apierror.Invalid(param, code, "%s", message)
}

// openAIDetail returns the body of an error that has only a status and a message.
func openAIDetail(status int, detail string) []byte {
	e := apierror.Error{Type: apierror.InvalidRequest, Message: detail}
	if status >= http.StatusInternalServerError {
		e.Type = apierror.API
	}
	return e.JSON()
}

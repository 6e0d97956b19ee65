package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cutroom/shared/domain/credential"
	"cutroom/shared/platform/httpserver"
)

// Keys is the group for an account's permanent keys. Admin keys can manage only their own account's keys.
func Keys(s *service) []route {
	return within(credential.KeyRoutes, []route{
		{method: http.MethodGet, path: "/v1/keys", access: adminOnly, handle: s.inTurn(s.listKeys)},
		{method: http.MethodPost, path: "/v1/keys", access: adminOnly, handle: s.createKey},
		{method: http.MethodDelete, path: "/v1/keys/{key_id}", access: adminOnly, handle: s.revokeKey},
	})
}

type keyBody struct {
	ID        string  `json:"id"`
	Label     string  `json:"label"`
	Tier      string  `json:"tier"`
	Admin     bool    `json:"admin"`
	CreatedAt *string `json:"created_at"`
	// ExpiresAt is null if the key does not expire.
	ExpiresAt *string                 `json:"expires_at"`
	RevokedAt *string                 `json:"revoked_at"`
	Models    []string                `json:"models"`
	Routes    []credential.RouteGroup `json:"routes"`
}

func newKeyBody(k credential.Key) keyBody {
	return keyBody{k.ID, k.Label, k.Tier, k.Admin, timestamp(k.CreatedAt), timestamp(k.ExpiresAt),
		timestamp(k.RevokedAt), k.Limits.Models, k.Limits.Routes}
}

// createdKeyBody contains the secret, which is never shown again.
type createdKeyBody struct {
	keyBody
	Key string `json:"key"`
}

// The list is not paged, because the number of keys is limited.
func (s *service) listKeys(w http.ResponseWriter, r *http.Request, c call) error {
	keys, err := s.Keys.List(r.Context(), c.who.Account())
	if err != nil {
		return err
	}
	bodies := make([]keyBody, len(keys))
	for i, k := range keys {
		bodies[i] = newKeyBody(k)
	}
	s.writeJSON(w, r, http.StatusOK, map[string]any{"keys": bodies})
	return nil
}

func (s *service) createKey(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	request, found := s.keyRequest(sent, c.who.Key.Tier)
	if len(found) > 0 {
		return found
	}
	answer, err := s.onceSecret(w, r, c, request, func(ctx context.Context) (any, error) {
		secret, key, err := s.Keys.Create(ctx, c.who.Key, httpserver.RequestID(ctx), request)
		return createdKeyBody{newKeyBody(key), secret}, err
	})
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, answer)
	return nil
}

// labelPattern excludes control characters, because labels are printed on terminals.
const labelPattern = `^[^\u0000-\u001f\u007f-\u009f]*$`

// A request may name only the caller's own tier, because an account cannot change its own limits.
func (s *service) keyRequest(sent jsonObject, tier string) (request credential.KeyRequest, found problems) {
	label, found := sent.label()
	named, there, wrong := sent.text("tier")
	switch {
	case wrong != nil:
		found = append(found, wrong...)
	case there && named != tier:
		found = append(found, notAmong("tier", named, []string{tier}))
	}
	request.Label = label
	request.Admin, wrong = sent.boolean("admin")
	found = append(found, wrong...)
	request.ExpiresAt, wrong = sent.future("expires_at", s.Keys.Now())
	found = append(found, wrong...)
	request.Limits.Models, wrong = sent.list("models", credential.MaxKeyModels, s.unknownModel)
	found = append(found, wrong...)
	request.Limits.Routes, wrong = sent.routeGroups()
	return request, append(found, wrong...)
}

func (o jsonObject) label() (label string, found problems) {
	label, there, wrong := o.text("label")
	switch {
	case wrong != nil:
		found = append(found, wrong...)
	case !there:
		found = append(found, missing("label"))
	case label == "":
		found = append(found, tooShort("label", label, 1))
	case utf8.RuneCountInString(label) > credential.MaxLabel:
		found = append(found, tooLong("label", label, credential.MaxLabel))
	case strings.ContainsFunc(label, unicode.IsControl):
		found = append(found, patternMismatch("label", label, labelPattern))
	}
	return label, found
}

// future reads a time that must be in the future. It returns the zero time if the member is absent.
func (o jsonObject) future(name string, now time.Time) (time.Time, problems) {
	text, there, found := o.text(name)
	if found != nil || !there {
		return time.Time{}, found
	}
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return at, problems{valueProblem(name, text, "Input should be a time such as 2027-01-31T00:00:00Z.")}
	case !at.After(now) || at.UTC().Year() > lastYear:
		return at, problems{valueProblem(name, text, "The time must be in the future and before the year 10000.")}
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

const lastYear = 9999

// routeGroups returns nil if the key may use all groups.
func (o jsonObject) routeGroups() (groups []credential.RouteGroup, found problems) {
	all := credential.RouteGroups()
	names, found := o.list("routes", len(all), func(name string) string {
		if !slices.Contains(all, credential.RouteGroup(name)) {
			return fmt.Sprintf("Input should be one of %v.", all)
		}
		return ""
	})
	for _, name := range names {
		groups = append(groups, credential.RouteGroup(name))
	}
	return groups, found
}

// Revoking a key again succeeds, so a client may retry after a lost response.
func (s *service) revokeKey(w http.ResponseWriter, r *http.Request, c call) error {
	if err := s.Keys.Revoke(r.Context(), c.who.Key, httpserver.RequestID(r.Context()), r.PathValue("key_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

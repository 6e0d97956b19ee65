package api

import (
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"cutroom/shared/domain/credential"
)

// Keys is the group of an account's permanent keys, an extension of this service.
// Admin keys manage the keys of their own account only.
func Keys(s *service) []route {
	return []route{
		{method: http.MethodGet, path: "/v1/keys", access: adminOnly, handle: s.listKeys},
		{method: http.MethodPost, path: "/v1/keys", access: adminOnly, handle: s.createKey},
		{method: http.MethodDelete, path: "/v1/keys/{key_id}", access: adminOnly, handle: s.revokeKey},
	}
}

// keyBody is a permanent key as listed.
type keyBody struct {
	ID        string  `json:"id"`
	Label     string  `json:"label"`
	Tier      string  `json:"tier"`
	Admin     bool    `json:"admin"`
	CreatedAt *string `json:"created_at"`
	// RevokedAt is null until the key is revoked.
	RevokedAt *string `json:"revoked_at"`
}

func newKeyBody(k credential.Key) keyBody {
	return keyBody{k.ID, k.Label, k.Tier, k.Admin, timestamp(k.CreatedAt), timestamp(k.RevokedAt)}
}

// createdKeyBody is a new key with its secret, which is never shown again.
type createdKeyBody struct {
	keyBody
	Key string `json:"key"`
}

// listKeys is GET /v1/keys. It has no pages, because the number of keys is limited.
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

// keyRequest describes the key to create.
type keyRequest struct {
	Label string
	Admin bool
}

// createKey is POST /v1/keys.
func (s *service) createKey(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	request, found := sent.keyRequest(c.who.Key.Tier)
	if len(found) > 0 {
		return found
	}
	answer, err := s.onceSecret(w, r, c, request, func(ctx context.Context) (any, error) {
		secret, key, err := s.Keys.Create(ctx, c.who.Key, request.Label, request.Admin)
		return createdKeyBody{newKeyBody(key), secret}, err
	})
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, answer)
	return nil
}

// labelPattern excludes control characters, because labels are printed on
// terminals.
const labelPattern = `^[^\u0000-\u001f\u007f-\u009f]*$`

// keyRequest reads the description of a key. Its tier must be that of the caller's
// key: an account cannot change what it may use.
func (o jsonObject) keyRequest(tier string) (request keyRequest, found problems) {
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
	named, there, wrong := o.text("tier")
	switch {
	case wrong != nil:
		found = append(found, wrong...)
	case there && named != tier:
		found = append(found, notAmong("tier", named, []string{tier}))
	}
	admin, wrong := o.boolean("admin")
	return keyRequest{label, admin}, append(found, wrong...)
}

// revokeKey is DELETE /v1/keys/{key_id}. Revoking a key again succeeds, so that a
// client may repeat a call whose response was lost.
func (s *service) revokeKey(w http.ResponseWriter, r *http.Request, c call) error {
	if err := s.Keys.Revoke(r.Context(), c.who.Key, r.PathValue("key_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
)

// See docs/contract/auth.md#client-tokens.
func Tokens(s *service) []route {
	return within(credential.TokenRoutes, []route{
		{method: http.MethodPost, path: "/v1/client/tokens", access: keyOnly, handle: s.createToken},
		{method: http.MethodPost, path: "/v1/verify", access: keyOrToken, handle: s.verifyCredential},
		{method: http.MethodGet, path: "/.well-known/jwks.json", handle: s.listSigners},
	})
}

// verifyCredential returns the claims of the credential with which it was called.
func (s *service) verifyCredential(w http.ResponseWriter, r *http.Request, c call) error {
	s.writeJSON(w, r, http.StatusOK, c.who.Claims())
	return nil
}

func (s *service) listSigners(w http.ResponseWriter, r *http.Request, _ call) error {
	keys, err := s.Minter.KeySet(r.Context())
	if err != nil {
		return err
	}
	text, err := encodeJSON(map[string]any{"keys": keys})
	if err == nil {
		writeKept(w, http.StatusOK, text, "public, max-age=3600")
	}
	return err
}

// maxSessionSeconds is longer than any session and fits into every client's integers.
const maxSessionSeconds = 1<<31 - 1

func (s *service) createToken(w http.ResponseWriter, r *http.Request, c call) error {
	sent, err := readJSON(r)
	if err != nil {
		return err
	}
	request, found := s.tokenRequest(sent)
	if len(found) > 0 {
		return found
	}
	for _, name := range request.Scope.Models {
		if err := s.checkModel(c.who, name); err != nil {
			return err
		}
	}
	answer, err := s.onceSecret(w, r, c, request, func(ctx context.Context) (any, error) {
		issued, token, err := s.Minter.Mint(ctx, c.who.Key, request)
		claims := token.Claims()
		return tokenBody{issued.Secret, issued.JWT, timestamp(token.ExpiresAt), claims.Permissions, claims.Constraints}, err
	})
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, answer)
	return nil
}

// tokenRequest returns all problems, in field order.
func (s *service) tokenRequest(sent jsonObject) (credential.TokenRequest, problems) {
	request := credential.TokenRequest{Lifetime: credential.DefaultTokenLifetime}
	lifetime, found := sent.integer("expiresIn",
		int64(credential.MinTokenLifetime/time.Second), int64(credential.MaxTokenLifetime/time.Second))
	if lifetime != nil {
		request.Lifetime = time.Duration(*lifetime) * time.Second
	}
	var wrong problems
	request.Scope.Models, wrong = sent.list("allowedModels", credential.MaxTokenModels, s.unknownModel)
	found = append(found, wrong...)
	request.Scope.Origins, wrong = sent.list("allowedOrigins", credential.MaxTokenOrigins, func(origin string) string {
		if !credential.IsOrigin(origin) {
			return "Input should be a full origin: a scheme, a host and, if needed, a port, such as https://app.example.com."
		}
		return ""
	})
	found = append(found, wrong...)
	request.Scope.MaxSession, wrong = sent.maxSession()
	found = append(found, wrong...)
	request.Metadata, wrong = sent.metadata()
	found = append(found, wrong...)
	request.Scope.Label, wrong = sent.usageLabel()
	return request, append(found, wrong...)
}

// unknownModel returns the problem with a model's name, or "" if a media or inference model has that name.
func (s *service) unknownModel(name string) string {
	knows := s.KnowsModel
	if knows == nil {
		knows = s.Catalog.Knows
	}
	if !knows(name) {
		return catalog.UnknownModel(name).Error()
	}
	return ""
}

// list reads the values to which a token or key is limited. The function wrong returns the problem with a value, or
// "". An empty list is rejected because it is ambiguous.
func (o jsonObject) list(name string, most int, wrong func(string) string) ([]string, problems) {
	values, found := o.texts(name, most)
	switch {
	case found != nil || values == nil:
		return nil, found
	case len(values) == 0:
		return nil, problems{valueProblem(name, o[name], "The list is empty. Omit the field to allow all.")}
	}
	for i, value := range values {
		if message := wrong(value); message != "" {
			found = append(found, valueProblem(strconv.Itoa(i), value, message).within(name))
		}
	}
	return values, found
}

// maxSession returns 0 if the member is absent.
func (o jsonObject) maxSession() (time.Duration, problems) {
	constraints, found := o.object("constraints")
	if found != nil {
		return 0, found
	}
	realtime, found := constraints.object("realtime")
	if found != nil {
		return 0, problems{found[0].within("constraints")}
	}
	seconds, found := realtime.integer("maxSessionDuration", 1, maxSessionSeconds)
	switch {
	case found != nil:
		return 0, problems{found[0].within("constraints", "realtime")}
	case seconds == nil:
		return 0, nil
	}
	return time.Duration(*seconds) * time.Second, nil
}

// White space does not count towards the size limit.
func (o jsonObject) metadata() (json.RawMessage, problems) {
	object, found := o.object("metadata")
	if found != nil || object == nil {
		return nil, found
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, o["metadata"]); err != nil || compact.Len() > credential.MaxTokenMetadata {
		return nil, problems{valueProblem("metadata", json.RawMessage(compact.Bytes()),
			fmt.Sprintf("The object is longer than %d bytes.", credential.MaxTokenMetadata))}
	}
	return compact.Bytes(), nil
}

// usageLabel returns the labels in metadata.attribution in the form "customer=acme,plan=pro".
func (o jsonObject) usageLabel() (string, problems) {
	metadata, _ := o.object("metadata")
	value := metadata.member("attribution")
	if value == nil {
		return "", nil
	}
	var labels map[string]string
	err := json.Unmarshal(value, &labels)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+labels[name])
	}
	label := strings.Join(pairs, ",")
	if err != nil || len(label) > credential.MaxTokenLabel || strings.ContainsFunc(label, unicode.IsControl) {
		return "", problems{valueProblem("attribution", value, fmt.Sprintf(
			"Input should be an object of strings, at most %d bytes long when written as name=value,name=value.",
			credential.MaxTokenLabel)).within("metadata")}
	}
	return label, nil
}

// tokenBody contains the secret, which is shown only once.
type tokenBody struct {
	APIKey string `json:"apiKey"`
	// Token is the same credential as a JWT, for clients that require one.
	Token       string                  `json:"token"`
	ExpiresAt   *string                 `json:"expiresAt"`
	Permissions *credential.Permissions `json:"permissions"`
	Constraints *credential.Constraints `json:"constraints"`
}

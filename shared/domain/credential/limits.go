package credential

import (
	"slices"
	"time"

	"cutroom/shared/domain/fault"
)

// RouteGroup is a group of routes. A key may be limited to some groups (docs/contract/auth.md#limits-of-a-key).
type RouteGroup string

const (
	JobRoutes       RouteGroup = "jobs"
	ImageRoutes     RouteGroup = "images"
	FileRoutes      RouteGroup = "files"
	RealtimeRoutes  RouteGroup = "realtime"
	InferenceRoutes RouteGroup = "inference"
	UsageRoutes     RouteGroup = "usage"
	TokenRoutes     RouteGroup = "tokens"
	KeyRoutes       RouteGroup = "keys"
)

func RouteGroups() []RouteGroup {
	return []RouteGroup{
		JobRoutes, ImageRoutes, FileRoutes, RealtimeRoutes, InferenceRoutes, UsageRoutes, TokenRoutes, KeyRoutes,
	}
}

const MaxKeyModels = 20

// Limits restricts a permanent key and its client tokens. The zero value allows everything.
type Limits struct {
	// Models lists model ids or aliases. Empty allows all. Aliases are resolved when the key is used.
	Models []string `json:"models,omitempty"`
	// Routes lists groups of routes. Empty allows all.
	Routes []RouteGroup `json:"routes,omitempty"`
}

func (l Limits) AllowsModel(names ...string) bool { return allowsModel(l.Models, names) }
func (l Limits) AllowsRoutes(group RouteGroup) bool {
	return len(l.Routes) == 0 || slices.Contains(l.Routes, group)
}

// An empty list allows every model.
func allowsModel(allowed, names []string) bool {
	return len(allowed) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(allowed, name)
	})
}

func (k Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }
func (k Key) Works(now time.Time) bool   { return k.RevokedAt.IsZero() && !k.Expired(now) }

// AllowsModel reports whether both the key and the client token allow the model with these names.
func (p Principal) AllowsModel(names ...string) bool {
	return p.Key.Limits.AllowsModel(names...) && p.Scope().AllowsModel(names...)
}

// CheckModel rejects a model that the caller is not allowed to use.
//
// Errors: fault.Forbidden.
func (p Principal) CheckModel(id string, names ...string) error {
	switch names = append([]string{id}, names...); {
	case !p.Key.Limits.AllowsModel(names...):
		return KeyModelNotAllowed(id)
	case !p.Scope().AllowsModel(names...):
		return ModelNotAllowed(id)
	}
	return nil
}

// Errors: fault.Forbidden.
func (p Principal) CheckRoutes(group RouteGroup) error {
	if !p.Key.Limits.AllowsRoutes(group) {
		return fault.New(fault.Forbidden, "The API key does not allow the routes %q.", group)
	}
	return nil
}

// CheckManages rejects another key of the account if it outlives the admin key or has more permissions.
//
// Errors: fault.Forbidden.
func (k Key) CheckManages(other Key) error {
	outlasts := !k.ExpiresAt.IsZero() && (other.ExpiresAt.IsZero() || other.ExpiresAt.After(k.ExpiresAt))
	if outlasts || exceeds(other.Limits.Models, k.Limits.Models) || exceeds(other.Limits.Routes, k.Limits.Routes) {
		return fault.New(fault.Forbidden, "The key %s outlives the calling key or has more permissions.", other.ID)
	}
	return nil
}

// exceeds reports whether the first list permits anything that the second list does not. An empty list permits
// everything.
func exceeds[T comparable](allowed, others []T) bool {
	return len(others) > 0 &&
		(len(allowed) == 0 || slices.ContainsFunc(allowed, func(one T) bool { return !slices.Contains(others, one) }))
}

// inherit fills empty fields from the creating key, so that the new key cannot outlive it or have more
// permissions. It compares model names as strings, because an alias may later refer to another model.
//
// Errors: fault.Forbidden if the request exceeds the creating key.
func (r KeyRequest) inherit(by Key) (KeyRequest, error) {
	switch {
	case r.ExpiresAt.IsZero():
		r.ExpiresAt = by.ExpiresAt
	case !by.ExpiresAt.IsZero() && r.ExpiresAt.After(by.ExpiresAt):
		return r, fault.New(fault.Forbidden, "The new key would outlive the key that creates it, which expires at %s.",
			by.ExpiresAt.UTC().Format(time.RFC3339))
	}
	for _, name := range r.Limits.Models {
		if !by.Limits.AllowsModel(name) {
			return r, fault.New(fault.Forbidden, "The calling key does not allow the model %s.", name)
		}
	}
	for _, group := range r.Limits.Routes {
		if !by.Limits.AllowsRoutes(group) {
			return r, fault.New(fault.Forbidden, "The calling key does not allow the routes %q.", group)
		}
	}
	if len(r.Limits.Models) == 0 {
		r.Limits.Models = by.Limits.Models
	}
	if len(r.Limits.Routes) == 0 {
		r.Limits.Routes = by.Limits.Routes
	}
	return r, nil
}

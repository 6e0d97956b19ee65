package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/httpserver"
)

// See docs/contract/auth.md#permissions.
type access int

const (
	// public routes require no credential.
	public access = iota
	keyOnly
	adminOnly
	// keyOrToken routes accept permanent keys, and client tokens within their scope.
	keyOrToken
)

// route describes an endpoint and what its requests require. Other descriptions, such as the
// OpenAPI document, are derived from routes.
type route struct {
	// GET routes also serve HEAD.
	method string
	// path is an http.ServeMux pattern.
	path   string
	access access
	// If a key is limited to groups, they must include the route's group (docs/contract/auth.md#limits-of-a-key).
	group credential.RouteGroup
	// queryToken routes also accept a client token in the query, as api_key, for browsers.
	queryToken bool
	// unlimited routes are exempt from tiers' rates, as public routes are.
	unlimited bool
	// serves reports whether jobs for a model can be submitted to this route. It is nil if {id} is not a model.
	serves func(*catalog.Model) bool
	// waits is true if the call waits for the job to end.
	waits bool
	// form returns the request form for a model. nil means the model's own form.
	form   func(*catalog.Model) *catalog.Form
	handle handler
}

func within(group credential.RouteGroup, routes []route) []route {
	for i := range routes {
		routes[i].group = group
	}
	return routes
}

func (route *route) models(known *catalog.Catalog) []*catalog.Model {
	if route.serves == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known.Models()), func(m *catalog.Model) bool { return !route.serves(m) })
}

func (route *route) formOf(m *catalog.Model) *catalog.Form {
	if route.form == nil {
		return m.Form
	}
	return route.form(m)
}

type call struct {
	// who is zero for public routes.
	who credential.Principal
	// model is nil if the path does not name a model.
	model *catalog.Model
	// copy numbers the jobs of a call, starting from 0. Each has its own idempotency record.
	copy int
	// wait is how long the call waits before it cancels the job. 0 means that the job continues after the wait.
	wait time.Duration
}

// handler responds to a request, or returns the error to send.
type handler func(http.ResponseWriter, *http.Request, call) error

// admit performs the checks that precede a handler, in the order of docs/contract/errors.md#order-of-checks.
// Errors: fault.Unauthorized, fault.Limited, fault.NotFound, fault.Forbidden.
func (s *service) admit(w http.ResponseWriter, r *http.Request, route *route) (call, error) {
	var c call
	if route.access == public {
		return c, nil
	}
	var err error
	if c.who, err = s.authenticate(w, r, route); err != nil {
		return c, err
	}
	if !route.unlimited {
		if err := s.count(r.Context(), w.Header(), c.who); err != nil {
			return c, err
		}
	}
	if route.serves != nil {
		name := r.PathValue("id")
		m, ok := s.Catalog.Find(name)
		switch {
		case !ok:
			return c, catalog.UnknownModel(name)
		case !route.serves(m):
			return c, fault.New(fault.NotFound, "The model %s is not served here. Submit a job to /v1/jobs/%s.", m.ID, name)
		}
		c.model = m
		if route.waits && m.Kind == catalog.Image {
			c.wait = s.ImageWait
		}
		full := s.Jobs.CheckCapacity(r.Context(), job.LaneOf(m.Kind), c.who.Account(), c.who.Tier.PendingJobs, c.wait)
		if err := s.unlessRepeated(r, c, full); err != nil {
			return c, err
		}
	}
	return c, s.checkScope(r, route, c)
}

// checkScope rejects a call that exceeds a client token's scope, or a key's role or limits. Errors: fault.Forbidden.
func (s *service) checkScope(r *http.Request, route *route, c call) error {
	switch {
	case c.who.Token != nil && (route.access == keyOnly || route.access == adminOnly):
		return credential.ErrKeyRequired
	case route.access == adminOnly && !c.who.Key.Admin:
		return fault.New(fault.Forbidden, "An admin key of the account is required.")
	case !c.who.Scope().AllowsOrigin(r.Header.Get("Origin")):
		return credential.ErrOriginNotAllowed
	}
	if err := c.who.CheckRoutes(route.group); err != nil {
		return err
	}
	if c.model != nil {
		return s.checkModel(c.who, c.model.ID)
	}
	return nil
}

// checkModel rejects a model outside the caller's scope or the key's limits. It resolves names at this point,
// because the catalog may have changed since the credential was created. Errors: fault.Forbidden.
func (s *service) checkModel(who credential.Principal, id string) error {
	var names []string
	if m, ok := s.Catalog.Find(id); ok {
		names = m.Names()
	}
	return who.CheckModel(id, names...)
}

func methodsOf(routes []*route) string {
	var allowed []string
	for _, route := range routes {
		allowed = append(allowed, route.method)
		if route.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	return strings.Join(allowed, ", ")
}

// dispatch serves a single path pattern. If the path names a model, only the routes for models apply.
func (s *service) dispatch(all []*route) http.HandlerFunc {
	ofModels := slices.DeleteFunc(slices.Clone(all), func(route *route) bool { return route.serves == nil })
	allow, allowModel := methodsOf(all), methodsOf(ofModels)
	return func(w http.ResponseWriter, r *http.Request) {
		routes, allow := all, allow
		if len(ofModels) > 0 {
			if _, known := s.Catalog.Find(r.PathValue("id")); known {
				routes, allow = ofModels, allowModel
			}
		}
		if httpserver.IsPreflight(r) {
			httpserver.AnswerPreflight(w, r, allow)
			return
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		i := slices.IndexFunc(routes, func(route *route) bool { return route.method == method })
		if i < 0 {
			w.Header().Set("Allow", allow)
			s.writeDetail(w, r, http.StatusMethodNotAllowed, "Method Not Allowed")
			return
		}
		c, err := s.admit(w, r, routes[i])
		if err == nil {
			err = routes[i].handle(w, r, c)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

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

// access is the kind of credential that a route requires
// (docs/contract/auth.md#who-may-do-what).
type access int

const (
	// public routes require none.
	public access = iota
	// keyOnly routes require a permanent key.
	keyOnly
	// adminOnly routes require a permanent key with the admin role.
	adminOnly
	// keyOrToken routes accept permanent keys, and client tokens within their
	// scope.
	keyOrToken
)

// route is one endpoint and what a request needs to reach its handler. Whatever
// else describes the endpoints, such as the OpenAPI document, is derived from
// routes.
type route struct {
	// method is the HTTP method. GET routes also answer HEAD.
	method string
	// path is a pattern of http.ServeMux.
	path   string
	access access
	// group is what a key has to be allowed that is limited to some routes
	// (docs/contract/auth.md#limits-of-a-key); empty on a public route.
	group credential.RouteGroup
	// queryToken routes also accept a client token as api_key in the query, for
	// browser clients that cannot set a header.
	queryToken bool
	// unlimited routes are exempt from the rates of tiers
	// (docs/contract/limits.md#tiers). So are public ones, which have no account to
	// count for.
	unlimited bool
	// serves reports whether the route serves a model, for routes whose {id} is a
	// model's id or alias; the call then submits a job to the model. It is nil if
	// the path names no model.
	serves func(*catalog.Model) bool
	// waits says that the call then waits for the job's end.
	waits bool
	// form returns the request form for a model; nil means the model's own.
	form   func(*catalog.Model) *catalog.Form
	handle handler
}

// within returns the routes with their group. Public ones need none.
func within(group credential.RouteGroup, routes []route) []route {
	for i := range routes {
		routes[i].group = group
	}
	return routes
}

// models returns the models that the path may name, in the order of the catalog.
func (route *route) models(known *catalog.Catalog) []*catalog.Model {
	if route.serves == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known.Models()), func(m *catalog.Model) bool { return !route.serves(m) })
}

// formOf returns the request form for a model.
func (route *route) formOf(m *catalog.Model) *catalog.Form {
	if route.form == nil {
		return m.Form
	}
	return route.form(m)
}

// call is what admit found out about a request.
type call struct {
	// who is the caller; zero on a public route.
	who credential.Principal
	// model is the model that the path names, nil if it names none.
	model *catalog.Model
	// wait is how long the call waits for the end of the job that it submits, at most: then the
	// job is failed. It is 0 for a job that goes on.
	wait time.Duration
}

// handler responds to a request, or returns the error to respond with.
type handler func(http.ResponseWriter, *http.Request, call) error

// admit makes the checks that precede a route's handler, in the order of
// docs/contract/errors.md#order-of-checks. The queue's capacity can be checked only
// once the model is known.
//
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
		room := s.Jobs.CheckCapacity(r.Context(), job.LaneOf(m.Kind), c.who.Account(), c.who.Tier.PendingJobs, c.wait)
		if err := s.unlessRepeated(r, c, room); err != nil {
			return c, err
		}
	}
	return c, s.checkScope(r, route, c)
}

// checkScope refuses a call beyond the scope of a client token, or the role or the limits
// of a permanent key.
//
// Errors: fault.Forbidden.
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

// checkModel refuses a model outside the caller's scope, or the limits of its key. Their
// names are resolved now, not when the token or the key was made.
//
// Errors: fault.Forbidden.
func (s *service) checkModel(who credential.Principal, id string) error {
	var names []string
	if m, ok := s.Catalog.Find(id); ok {
		names = m.Names()
	}
	return who.CheckModel(id, names...)
}

// methodsOf returns the methods of a path's routes, as the header field Allow lists
// them.
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

// dispatch serves one path, choosing the route by method. On a path that can name a
// model or something else, a model's name has only the routes that take models.
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

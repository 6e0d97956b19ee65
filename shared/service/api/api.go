// Package api is the media service over HTTP: it turns requests into calls of
// the domain and the domain's answers and faults into responses. The contract
// is docs/contract/media.md.
//
// Endpoints come in groups. A program that serves everything takes them all;
// one that serves a single group takes that one.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/platform/httpserver"
)

// DefaultMaxUpload is how large an uploaded file may be, in bytes, when nothing
// else is set (docs/contract/errors.md#too-large).
const DefaultMaxUpload = 512 << 20

// Config is what the endpoints are made of.
type Config struct {
	Catalog *catalog.Catalog
	// KnowsModel reports whether any model has the name, where inference models
	// may change while the service runs; nil asks Catalog.
	KnowsModel    func(name string) bool
	Jobs          *job.Service
	Authenticator *credential.Authenticator
	// Limiter counts requests against the rates of tiers; nil limits none.
	Limiter Limiter
	// Idempotency gives each Idempotency-Key to one request; nil ignores them.
	Idempotency *idempotency.Service
	// Minter makes client tokens, for the group Tokens.
	Minter *credential.Minter
	// Keys makes, lists and revokes permanent keys, for the group Keys.
	Keys *credential.KeyService
	// Origins are those that browsers may call from.
	Origins httpserver.Origins
	// ImageWait is how long a caller waits for an image, which is then given up;
	// 0 takes DefaultImageWait.
	ImageWait time.Duration
	// VideoWait is how long the deprecated routes wait for a video; 0 waits
	// for the job's deadline. The job goes on after it.
	VideoWait time.Duration
	// Warm reports whether a worker takes the lane's jobs now, and asks for one
	// where none does. An image that would only wait for a worker to start is
	// refused; nil means that there always is one.
	Warm func(context.Context, job.Lane) (bool, error)
	// Stopping ends the calls that wait for a job, as no worker will take it
	// any more; nil never does.
	Stopping context.Context
	// Draining ends the events of jobs before that: their clients open them again,
	// with another server where there are several. nil is Stopping.
	Draining context.Context
	Blobs    blob.Store
	Files    *file.Service
	// Intake bounds the uploads under way; nil lets in everything, where the bodies
	// of requests are there before they are handled.
	Intake *file.Intake
	// Downloads signs URLs that results are read by, which the content route then
	// redirects to; nil sends the bytes itself.
	Downloads DownloadSigner
	// Signer signs the URLs of large uploads, for the group Files.
	Signer Signer
	// UploadURLs are the URLs that the group Uploads takes bytes by.
	UploadURLs UploadURLs
	// EventsOnce lets the events of a job be its present state alone, where
	// answers do not stream; the client then asks again.
	EventsOnce bool
	// Sessions counts realtime sessions, and QuotaReads how often a key asks for
	// their number (nil limits none), for the group Realtime.
	Sessions   Sessions
	QuotaReads Limiter
	// WebhookTargets says what jobs may name as webhooks; the zero value is the
	// public internet.
	WebhookTargets webhook.Targets
	// WebhookLog and WebhookSecrets are for the group Webhooks.
	WebhookLog     webhook.Log
	WebhookSecrets webhook.Secrets
	// MaxUpload is how large a file in a form may be, in bytes; 0 takes
	// DefaultMaxUpload.
	MaxUpload int64
	// Ready reports why the service does not accept requests yet, for
	// /healthz; nil means that it always does. The message of a
	// fault.Unavailable is shown.
	Ready func(context.Context) error
	// InferenceURL is the base URL of the inference gateway, for the document of both
	// services; empty stands for DefaultInferenceURL.
	InferenceURL string
	// ConsoleURL is where the console is, as GET / tells it: relative to it, such as
	// "./console/"; empty where there is none.
	ConsoleURL string
	Logger     *slog.Logger
}

// service holds the endpoints of all groups.
type service struct {
	Config
	// streams counts the open streams of events.
	streams ratelimit.Open
}

// Group is a set of endpoints that are deployed together.
type Group func(*service) []route

// allGroups is every group, for a server that serves everything.
func allGroups() []Group {
	return []Group{Jobs, Content, Events, Generate, Tokens, Keys, Models, Files, FileContent, Uploads, Realtime, RealtimePage, Webhooks, OpenAPI, Root, Health}
}

// New makes the handler of the groups, of all of them when none is named.
func New(c Config, groups ...Group) http.Handler {
	if c.MaxUpload == 0 {
		c.MaxUpload = DefaultMaxUpload
	}
	if len(groups) == 0 {
		groups = allGroups()
	}
	if c.ImageWait == 0 {
		c.ImageWait = DefaultImageWait
	}
	if c.Stopping == nil {
		c.Stopping = context.Background()
	}
	if c.Draining == nil {
		c.Draining = c.Stopping
	}
	s := &service{Config: c}
	byPath := map[string][]*route{}
	for _, group := range groups {
		for _, route := range group(s) {
			byPath[route.path] = append(byPath[route.path], &route)
		}
	}
	mux := http.NewServeMux()
	for path, routes := range byPath {
		mux.HandleFunc(path, s.dispatch(routes))
	}
	mux.HandleFunc("/", s.notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Origins.Allow(w.Header(), r, exposed)
		// The mux would redirect to a cleaned path; a path that is not clean
		// is no path of this service.
		if clean := path.Clean(r.URL.Path); !strings.HasPrefix(r.URL.Path, "/") || r.URL.Path != clean && r.URL.Path != clean+"/" {
			s.notFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *service) notFound(w http.ResponseWriter, r *http.Request) {
	s.writeDetail(w, r, http.StatusNotFound, "Not Found")
}

// authenticate tells who is calling, by the header x-api-key, or by a client
// token in the query where the route takes one.
//
// Errors: fault.Unauthorized.
func (s *service) authenticate(w http.ResponseWriter, r *http.Request, route *route) (credential.Principal, error) {
	secret := r.Header.Get("x-api-key")
	if secret == "" && route.queryToken {
		if secret = readQuery(r.URL.RawQuery)["api_key"]; secret != "" {
			// Whoever shows the answer must not tell others by which URL.
			w.Header().Set("Referrer-Policy", "no-referrer")
		}
		if credential.CheckSecret(secret) == nil {
			// A URL is kept in too many places for a key that does not expire.
			return credential.Principal{}, fault.New(fault.Unauthorized, "The query takes a client token; a permanent key belongs in the header x-api-key.")
		}
	}
	who, err := s.Authenticator.Authenticate(r.Context(), secret)
	if err != nil {
		return credential.Principal{}, err
	}
	httpserver.SetAccount(r.Context(), who.Account())
	return who, nil
}

// Health is GET /healthz, and GET /health, which other services call so: 200 once
// the service accepts requests.
func Health(s *service) []route {
	return []route{
		{method: http.MethodGet, path: "/healthz", handle: s.health},
		{method: http.MethodGet, path: "/health", handle: s.health},
	}
}

func (s *service) health(w http.ResponseWriter, r *http.Request, _ call) error {
	if s.Ready != nil {
		if err := s.Ready(r.Context()); err != nil {
			if fault.Is(err, fault.Unavailable) {
				return err // it says what strangers may know
			}
			// While a service starts this is no failure.
			s.Logger.WarnContext(r.Context(), "not ready", "error", err)
			return fault.New(fault.Unavailable, "The service does not accept requests now.")
		}
	}
	s.writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// Package api serves the media service over HTTP (docs/contract/media.md).
//
// Endpoints are divided into groups. A server has all groups; a function may have only one.
package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path"
	"slices"
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

// DefaultMaxUpload is in bytes (docs/contract/errors.md#too-large).
const DefaultMaxUpload = 512 << 20

type Config struct {
	Catalog *catalog.Catalog
	// KnowsModel reports whether a model with the name exists. nil uses Catalog, which is enough
	// unless inference models change while the service runs.
	KnowsModel    func(name string) bool
	Authenticator *credential.Authenticator
	// Limiter enforces tiers' request rates and session quotas. nil means no limits.
	Limiter Limiter
	// Idempotency runs requests with the same Idempotency-Key only once. nil ignores the header.
	Idempotency *idempotency.Service
	Origins     httpserver.Origins
	// Stopping ends calls that are waiting for a job, because no worker will run the job. nil means never.
	Stopping context.Context
	// Draining ends event streams, before Stopping ends other calls. Clients then reconnect, possibly to another
	// server. nil means that Stopping also ends event streams.
	Draining context.Context
	Blobs    blob.Store
	// Scratch is the folder for the temporary files of FileRoutes and C2PARoutes.
	Scratch string
	// MaxUpload is the maximum size of a file in a form, in bytes; 0 means DefaultMaxUpload.
	MaxUpload int64
	// Ready returns why the service is not ready to accept requests, for /healthz. If Ready is nil, the service is
	// always ready. Clients see the error's message only if it is fault.Unavailable.
	Ready  func(context.Context) error
	Logger *slog.Logger

	JobRoutes
	FileRoutes
	C2PARoutes
	AccountRoutes
	SessionRoutes
	WebhookRoutes
	InfoRoutes
}

type JobRoutes struct {
	Jobs *job.Service
	// Shares signs and checks links to results, for the groups Jobs and Content.
	Shares job.Shares
	// ImageWait is how long a caller waits for an image. After that, the job is cancelled. 0 means DefaultImageWait.
	ImageWait time.Duration
	// VideoWait is how long the deprecated routes wait for a video. The job then continues.
	VideoWait time.Duration
	// AfterWait calls a function in a goroutine after the wait, unless stop is called first. nil means
	// time.AfterFunc.
	AfterWait func(wait time.Duration, over func()) (stop func() bool)
	// Warm reports whether a worker is accepting jobs from the lane, and starts a worker if not. Image requests
	// are rejected while no worker is running. nil means that a worker is always running.
	Warm func(context.Context, job.Lane) (bool, error)
	// Downloads signs the URLs to which the content route redirects. nil means that the route sends the bytes itself.
	Downloads DownloadSigner
	// RedirectAbove is the maximum number of bytes that the content route sends itself. Larger content is redirected.
	RedirectAbove int64
	// EventsOnce makes event streams send only the job's current state, for deployments that cannot stream responses.
	// Clients then poll.
	EventsOnce bool
	// WebhookTargets restricts webhook URLs. The zero value allows the public internet.
	WebhookTargets webhook.Targets
	// Fetch opens a file at a caller's URL and returns fault.Invalid if that fails. nil means that URLs are not accepted.
	Fetch func(ctx context.Context, url string) (io.ReadCloser, error)
}

type FileRoutes struct {
	Files *file.Service
	// Intake limits uploads in progress. It is nil in functions, which receive each request as a single event.
	Intake *file.Intake
	// Posters makes thumbnails of stored files on first request, in folders below Scratch. If it is
	// nil, only thumbnails made by workers are served.
	Posters Posters
	// Signer signs the URLs of large uploads, for the group Files.
	Signer Signer
	// UploadURLs signs and checks the URLs of the group Uploads.
	UploadURLs UploadURLs
}

type C2PARoutes struct {
	Verifier Verifier
	// MaxVerified is the maximum size of a file to verify, in bytes. VerifyTime limits how long
	// verification may take. 0 means no limit.
	MaxVerified int64
	VerifyTime  time.Duration
}

type AccountRoutes struct {
	Minter   *credential.Minter
	Keys     *credential.KeyService
	Budgets  BudgetService
	AuditLog AuditLog
}

type SessionRoutes struct {
	Sessions Sessions
	// LiveVideo means that sessions accept video over WebRTC, for the group RealtimePage.
	LiveVideo bool
	// MediaURL is the base URL of the other groups, for the group RealtimePage. Empty means this server.
	MediaURL string
}

type WebhookRoutes struct {
	WebhookLog     webhook.Log
	WebhookSecrets webhook.Secrets
}

type InfoRoutes struct {
	// InferenceURL is the inference gateway's base URL, for the OpenAPI document, which covers both
	// services. Empty means DefaultInferenceURL.
	InferenceURL string
	// ConsoleURL is the console's URL relative to GET /, such as "./console/". It is empty without a console.
	ConsoleURL string
	Engine     EngineFacts
}

type service struct {
	Config
	streams   ratelimit.Open
	slowFiles slowFiles
	// Limits on concurrent thumbnails, conversions to JPEG, verifications, list reads, JSON bodies with files, responses
	// with images, reads that take long, prompts of jobs, and short and long prompts of callers without a credential.
	thumbnailTurns, jpegTurns, verifyTurns, listTurns, jsonTurns, imageTurns, readTurns *ratelimit.Turns
	promptTurns, shortTurns, publicTurns                                                *ratelimit.Turns
}

func newService(c Config) *service {
	return &service{
		Config: c, jpegTurns: ratelimit.NewTurns(maxTurns, 1),
		thumbnailTurns: ratelimit.NewTurns(maxTurns, 1).AtMost(1).Long(longThumbnail),
		verifyTurns:    ratelimit.NewTurns(maxTurns, 1).AtMost(1),
		listTurns:      ratelimit.NewListTurns(), jsonTurns: ratelimit.NewTurns(2*maxTurns, maxTurns),
		imageTurns: ratelimit.NewTurns(imageResponses, firstImageResponses).AtMost(ownImageResponses),
		readTurns:  ratelimit.NewSlowReads(), promptTurns: ratelimit.NewSlowReads(),
		// Even together, these leave processors to callers with a credential.
		shortTurns: ratelimit.NewTurns(1, 0).AtMost(1), publicTurns: ratelimit.NewTurns(1, 0).AtMost(1),
	}
}

// Group is a set of endpoints that are deployed together. It returns the set's routes.
type Group func(*service) []route

func AllGroups() []Group {
	return []Group{Jobs, Content, Credentials, Events, Generate, Tokens, Keys, Budgets, Audit, Models, Files, FileContent, Uploads,
		Realtime, RealtimePage, Webhooks, OpenAPI, Root, Health}
}

// New returns a handler for the groups. It must not refer to any group itself, so that a program
// links only the groups that it uses.
func New(c Config, groups ...Group) http.Handler {
	if c.MaxUpload == 0 {
		c.MaxUpload = DefaultMaxUpload
	}
	if c.ImageWait == 0 {
		c.ImageWait = DefaultImageWait
	}
	if c.AfterWait == nil {
		c.AfterWait = func(wait time.Duration, over func()) func() bool { return time.AfterFunc(wait, over).Stop }
	}
	if c.Stopping == nil {
		c.Stopping = context.Background()
	}
	if c.Draining == nil {
		c.Draining = c.Stopping
	}
	s := newService(c)
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
		// The mux would redirect to the cleaned path, but the contract requires 404.
		clean := path.Clean(r.URL.Path)
		if !strings.HasPrefix(r.URL.Path, "/") || r.URL.Path != clean && r.URL.Path != clean+"/" {
			s.notFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *service) notFound(w http.ResponseWriter, r *http.Request) {
	detail := "Not Found"
	if slices.ContainsFunc(catalog.Routes(), func(route catalog.Route) bool { return r.URL.Path == "/v1"+route.Path() }) {
		detail = "Not Found. The text gateway has another address, which cutroom dev prints."
	}
	s.writeDetail(w, r, http.StatusNotFound, detail)
}

// authenticate identifies the caller by the x-api-key header, or by a client token in the query if
// the route accepts one. Errors: fault.Unauthorized.
func (s *service) authenticate(w http.ResponseWriter, r *http.Request, route *route) (credential.Principal, error) {
	secret := r.Header.Get("x-api-key")
	if isOpenAI(r) {
		if secret = bearer(r); secret == "" {
			return credential.Principal{}, fault.New(fault.Unauthorized,
				"An API key is required in the Authorization header, after \"Bearer\".")
		}
	}
	if secret == "" && route.queryToken {
		if secret = readQuery(r.URL.RawQuery)["api_key"]; secret != "" {
			// The URL contains the token, so browsers must not send it as a referrer.
			w.Header().Set("Referrer-Policy", "no-referrer")
		}
		if credential.CheckSecret(secret) == nil {
			// URLs end up in logs and browser histories, so permanent keys are not accepted in them.
			return credential.Principal{}, fault.New(fault.Unauthorized,
				"api_key in the query must be a client token. Send a permanent key in the x-api-key header.")
		}
	}
	who, err := s.Authenticator.Authenticate(r.Context(), secret)
	if err != nil {
		return credential.Principal{}, err
	}
	httpserver.SetAccount(r.Context(), who.Account())
	return who, nil
}

// Health is the group of GET /healthz and its alias /health. They return 200 once the service is ready.
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
				return err // the message is meant for clients
			}
			// It is normal for a starting service not to be ready, so this is only a warning.
			s.Logger.WarnContext(r.Context(), "the service is not ready", "error", err)
			return fault.New(fault.Unavailable, "The service is not accepting requests at the moment.")
		}
	}
	s.writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// Package awsapp assembles the components that the media service's AWS functions and containers share. Settings are
// read from the environment. All code linked into a function slows its start, so each program adds its other
// components itself.
package awsapp

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.opentelemetry.io/otel/trace"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/cursor"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

type Parts struct {
	*setting.Environment
	Config  api.Config
	AWS     aws.Config
	Records *dynamodb.Client
	Keys    *dynamo.Keys
	Tracer  trace.Tracer
	// Mode is how a Lambda function sends its responses.
	Mode lambdahttp.Mode
	// broken is an error that prevents the assembly but is not an invalid setting.
	broken error
}

// Serve runs a Lambda function that serves groups of routes. The function configure sets the components that they need.
func Serve(configure func(*Parts), groups ...api.Group) {
	serve(lambdahttp.Buffered, nil, configure, groups)
}

// Stream is like Serve, but the function streams its responses, unless the environment says otherwise.
func Stream(configure func(*Parts), groups ...api.Group) {
	mode, err := lambdahttp.ResponseMode(os.Getenv)
	serve(mode, err, configure, groups)
}

func serve(mode lambdahttp.Mode, err error, configure func(*Parts), groups []api.Group) {
	lambdahttp.Main(func() (http.Handler, lambdahttp.Mode, error) {
		config, configErr := awsconfig.FromEnvironment(os.Getenv)
		if err := cmp.Or(err, configErr); err != nil {
			return nil, 0, err
		}
		p := New(setting.NewFunction(os.Getenv), config, nil, lambdahttp.NewLogger(os.Stdout))
		p.Mode = mode
		configure(p)
		surface, err := p.Surface(groups...)
		if err != nil {
			return nil, 0, err
		}
		return httpserver.Handler(surface), mode, nil
	})
}

// New is for programs whose callers have credentials. tracer may be nil. AWS calls are traced as
// configured in config.
func New(env *setting.Environment, config aws.Config, tracer trace.Tracer, logger *slog.Logger) *Parts {
	p := &Parts{Environment: env, AWS: config, Records: dynamo.NewClient(config),
		Tracer: tracer}
	p.Keys = dynamo.NewKeys(p.Records, p.Required("CUTROOM_CREDENTIALS_TABLE"), p.Required("CUTROOM_USAGE_TABLE"))
	usage := p.Required("CUTROOM_USAGE_TABLE")
	p.Config = api.Config{
		Catalog: p.Catalog(), Origins: p.Origins(), MaxUpload: p.Size("CUTROOM_MAX_UPLOAD"), Logger: logger,
		Authenticator: credential.NewAuthenticator(p.Keys, p.Tiers(), time.Now),
		Limiter:       dynamo.NewRates(p.Records, usage, time.Now, rand.Text),
		Idempotency:   &idempotency.Service{Store: dynamo.NewIdempotencyKeys(p.Records, usage), Now: time.Now},
	}
	return p
}

// Runs returns the store of job records. It also counts jobs in their accounts' usage.
func (p *Parts) Runs() *dynamo.Runs {
	return dynamo.NewRuns(p.Records, p.Required("CUTROOM_JOBS_TABLE")).
		CountIn(dynamo.NewUsage(p.Records, p.Required("CUTROOM_USAGE_TABLE")))
}

func (p *Parts) Bucket() *s3blob.Store { return s3blob.New(p.AWS, p.Required("CUTROOM_BUCKET")) }

// Signer signs blob URLs. CUTROOM_PUBLIC_S3_URL overrides the S3 address that clients use.
func (p *Parts) Signer(bucket *s3blob.Store) *s3blob.Signer {
	return s3blob.NewSigner(bucket, time.Now).At(p.URL("CUTROOM_PUBLIC_S3_URL"))
}

// cursors is needed only to list files.
func (p *Parts) Files(bucket *s3blob.Store, cursors file.Cursors) *file.Service {
	return file.NewService(file.Config{
		Store: dynamo.NewFiles(p.Records, p.Required("CUTROOM_FILES_TABLE")), Blobs: bucket, Signed: bucket,
		Detect: sniff.Any, SpreadBlobs: true, IDs: file.NewIDs(time.Now, rand.Reader), Cursors: cursors, Now: time.Now,
	})
}

// ReadFiles lets the program read files but not store them.
func (p *Parts) ReadFiles() {
	p.Config.Files = file.NewService(file.Config{
		Store: dynamo.NewFiles(p.Records, p.Required("CUTROOM_FILES_TABLE")), Now: time.Now,
	})
}

// ReadJobs lets the program read jobs but not accept them.
func (p *Parts) ReadJobs() {
	p.Config.Jobs = job.NewService(job.Config{Store: dynamo.NewJobs(p.Runs(), nil, nil, time.Now), Now: time.Now,
		Random: rand.Reader})
}

const defaultWorkers = 4

// ManageBudgets lets the program list and set budgets, and set the receivers of budget warnings.
func (p *Parts) ManageBudgets() {
	p.Config.WebhookTargets = p.WebhookTargets()
	if _, manager := p.budgetManager(); manager != nil {
		p.Config.Budgets = manager
	}
}

func (p *Parts) budgetManager() (*dynamo.Budgets, *budget.Manager) {
	table := p.Required("CUTROOM_USAGE_TABLE")
	clock, err := boottime.Open()
	if err != nil || p.Err() != nil {
		p.broken = err
		return nil, nil
	}
	budgets := dynamo.NewBudgets(p.Records, table, clock, rand.Text)
	return budgets, budget.NewManager(budget.ManagerConfig{
		Store: budgets, Machine: clock, Now: time.Now, NewID: rand.Text, Logger: p.Config.Logger,
	})
}

// AcceptJobs lets the program accept and cancel jobs. Each new job wakes the workers. CUTROOM_WORKERS is the
// number of jobs per lane that run concurrently. cursors is needed only to list jobs.
func (p *Parts) AcceptJobs(machine Machine, lengths dynamo.Lengths, cursors cursor.Codec) {
	workers := p.Number("CUTROOM_WORKERS", 1, 10_000, defaultWorkers)
	budgets, manager := p.budgetManager()
	if manager == nil {
		return
	}
	jobs := dynamo.NewJobs(p.Runs().HoldIn(budgets), wakingMachine{machine, p.warmUp()}, lengths, time.Now)
	p.Config.Jobs = job.NewService(job.Config{
		Store: jobs, Queues: jobs, RunTimes: jobs, Now: time.Now, Random: rand.Reader, SpreadBlobs: true,
		Workers: map[job.Lane]int{job.VideoLane: workers, job.ImageLane: workers},
		Cursors: cursors, Orchestrator: machine, Logger: p.Config.Logger,
		Estimates: dynamo.NewEstimates(p.Records, p.Required("CUTROOM_JOBS_TABLE")),
		// Jobs reserve amounts directly in the records, so there are no allocations to return.
		Budgets: manager, MaxLength: p.Config.Catalog.Limits.VideoDuration,
	})
}

type Machine interface {
	dynamo.Dispatcher
	job.Orchestrator
}

// VideoWait limits how long the deprecated routes wait for a video in AWS (docs/contract/jobs.md).
const VideoWait = 270 * time.Second

func (p *Parts) Queues() map[job.Lane]string {
	return map[job.Lane]string{
		job.VideoLane: p.Required("CUTROOM_VIDEO_QUEUE"), job.ImageLane: p.Required("CUTROOM_IMAGE_QUEUE"),
	}
}

// Errors: the first missing or invalid setting, or a failure to read the machine's clock.
func (p *Parts) Surface(groups ...api.Group) (httpserver.Config, error) {
	if err := cmp.Or(p.Err(), p.broken); err != nil {
		return httpserver.Config{}, err
	}
	return httpserver.Config{
		Handler: api.New(p.Config, groups...), Logger: p.Config.Logger, Tracer: p.Tracer,
		OnPanic: api.InternalError(p.Config.Origins),
	}, nil
}

// Package mediafunction puts together what the Lambda functions of the media
// service have in common, from the settings in their environment. A function adds
// what it alone needs, so that its program holds no more than that.
package mediafunction

import (
	"crypto/rand"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/api"
	"cutroom/shared/awsconfig"
	"cutroom/shared/credential"
	"cutroom/shared/dynamo"
	"cutroom/shared/file"
	"cutroom/shared/httpserver"
	"cutroom/shared/job"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/s3"
	"cutroom/shared/setting"
)

// Function is a function that is being put together.
type Function struct {
	*setting.Environment
	// Config is what its endpoints are made of.
	Config api.Config
	// AWS is what its clients are made with, Records the client of its tables.
	AWS     aws.Config
	Records *dynamodb.Client
	// Keys are the credentials of its callers.
	Keys *dynamo.Keys
}

// New begins a function whose callers have credentials.
//
// Errors: the environment is none of a function. What is wrong with a setting is
// told by Handler.
func New() (*Function, error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	f := &Function{Environment: setting.NewEnvironment(os.Getenv), AWS: config, Records: dynamo.NewClient(config)}
	f.Keys = dynamo.NewKeys(f.Records, f.Required("CUTROOM_CREDENTIALS_TABLE"))
	f.Config = api.Config{
		Catalog: f.Catalog(), Origins: f.Origins(), MaxUpload: f.Size("CUTROOM_MAX_UPLOAD"), Logger: lambdahttp.NewLogger(os.Stdout),
		Authenticator: credential.NewAuthenticator(f.Keys, f.Tiers(), time.Now),
		Limiter:       dynamo.NewRates(f.Records, f.Required("CUTROOM_USAGE_TABLE"), time.Now, rand.Text),
	}
	return f, nil
}

// Runs gives the records of jobs.
func (f *Function) Runs() *dynamo.Runs {
	return dynamo.NewRuns(f.Records, f.Required("CUTROOM_JOBS_TABLE"))
}

// Bucket gives the blobs.
func (f *Function) Bucket() *s3.Store { return s3.New(f.AWS, f.Required("CUTROOM_BUCKET")) }

// Files gives the stored files, whose bytes are in the bucket; cursors are for
// those that list them.
func (f *Function) Files(bucket *s3.Store, cursors file.Cursors) *file.Service {
	return file.NewService(file.Config{
		Store: dynamo.NewFiles(f.Records, f.Required("CUTROOM_FILES_TABLE")), Blobs: bucket, Signed: bucket,
		IDs: file.NewIDs(time.Now, rand.Reader), Cursors: cursors, Now: time.Now,
	})
}

// ReadJobs lets the function read jobs; it can accept none.
func (f *Function) ReadJobs() {
	f.Config.Jobs = job.NewService(job.Config{Store: dynamo.NewJobs(f.Runs(), nil, nil, time.Now), Now: time.Now, Random: rand.Reader})
}

// defaultWorkers is how many jobs of a lane run at once when all workers are up,
// where CUTROOM_WORKERS says nothing.
const defaultWorkers = 4

// AcceptJobs lets the function accept jobs as well, which are handed over by the
// dispatcher. How many jobs of a lane the workers run at once is the deploy's to
// say, in CUTROOM_WORKERS.
func (f *Function) AcceptJobs(dispatcher dynamo.Dispatcher, lengths dynamo.Lengths) {
	workers := f.Number("CUTROOM_WORKERS", 1, 10_000, defaultWorkers)
	f.Config.Jobs = job.NewService(job.Config{
		Store: dynamo.NewJobs(f.Runs(), dispatcher, lengths, time.Now), Now: time.Now, Random: rand.Reader,
		Workers: map[job.Lane]int{job.VideoLane: workers, job.ImageLane: workers},
	})
}

// Queues gives the URLs of the lanes' queues.
func (f *Function) Queues() map[job.Lane]string {
	return map[job.Lane]string{
		job.VideoLane: f.Required("CUTROOM_VIDEO_QUEUE"), job.ImageLane: f.Required("CUTROOM_IMAGE_QUEUE"),
	}
}

// Handler serves the groups of endpoints.
//
// Errors: the first setting that is missing or wrong.
func (f *Function) Handler(groups ...api.Group) (http.Handler, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return httpserver.Handler(httpserver.Config{
		Handler: api.New(f.Config, groups...), Logger: f.Config.Logger, Failed: api.InternalError(f.Config.Origins),
	}), nil
}

// Package gatewayapp assembles the shared components of the inference gateway's AWS functions. It is separate from
// awsapp because the media service's functions need no models.
package gatewayapp

import (
	"crypto/rand"
	"io"
	"log"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/gateway"
)

type Parts struct {
	*setting.Environment
	Gateway gateway.Config
	AWS     aws.Config
	Records *dynamodb.Client
	Keys    *credential.Authenticator
	Logger  *slog.Logger
}

// New returns an error only outside a Lambda function. Invalid settings are recorded in the result's Environment.
func New() (*Parts, error) {
	// net/http logs unexpected responses, which may contain a completion. Nothing else uses this logger.
	log.SetOutput(io.Discard)
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	p := &Parts{
		Environment: setting.NewFunction(os.Getenv), AWS: config, Records: dynamo.NewClient(config),
		Logger: lambdahttp.NewLogger(os.Stdout),
	}
	known, table := p.Catalog(), p.Required("CUTROOM_USAGE_TABLE")
	keys := dynamo.NewKeys(p.Records, p.Required("CUTROOM_CREDENTIALS_TABLE"), table)
	p.Keys = credential.NewAuthenticator(keys, p.Tiers(), time.Now)
	p.Gateway = gateway.Config{
		Catalog:       func() *catalog.Catalog { return known },
		Authenticator: p.Keys, Origins: p.Origins(), Now: time.Now, Logger: p.Logger,
		Spending:  gateway.Spending{Limiter: dynamo.NewRates(p.Records, table, time.Now, rand.Text)},
		Upstreams: gateway.Upstreams{Random: mathrand.Float64},
	}
	return p, nil
}

func (p *Parts) Bucket() *s3blob.Store { return s3blob.New(p.AWS, p.Required("CUTROOM_BUCKET")) }

// detect returns a file's type, as sniff.Any does. It is a parameter so that only some functions link sniff.
func (p *Parts) Files(bucket *s3blob.Store, detect func(head []byte) (mime string, known bool)) *file.Service {
	config := filesOf(p.fileRecords(), bucket)
	config.Signed, config.Detect = bucket, detect
	return file.NewService(config)
}

func (p *Parts) Results(bucket *s3blob.Store) *file.Service {
	return file.NewService(filesOf(p.fileRecords(), bucket))
}

func (p *Parts) fileRecords() *dynamo.Files {
	return dynamo.NewFiles(p.Records, p.Required("CUTROOM_FILES_TABLE"))
}

func filesOf(records *dynamo.Files, bucket *s3blob.Store) file.Config {
	return file.Config{
		Store: records, Blobs: bucket, SpreadBlobs: true, IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now,
	}
}

func (p *Parts) Storage() batch.Storage {
	return batch.Storage{Reservations: p.fileRecords(), Now: time.Now}
}

func (p *Parts) Batches() *dynamo.Batches {
	return dynamo.NewBatches(p.Records, p.Required("CUTROOM_USAGE_TABLE"))
}

func (p *Parts) Handler(groups ...gateway.Group) (http.Handler, error) {
	if err := p.Err(); err != nil {
		return nil, err
	}
	// API Gateway closes a connection that has been silent for 300 s, although the call continues and is billed.
	p.Gateway.LongestSilence = 280 * time.Second
	return httpserver.Handler(httpserver.Config{
		Handler: gateway.New(p.Gateway, groups...), Logger: p.Logger, OnPanic: gateway.PanicHandler(p.Gateway.Origins),
	}), nil
}

// Function arrived makes the files known whose bytes have come by a signed URL. It
// is started by the bucket, for objects that such URLs are for.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

func main() { lambdaevent.Main(arrived) }

func arrived() (func(context.Context, events.S3Event) (any, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	bucket := s3blob.New(config, env.Required("CUTROOM_BUCKET"))
	files := file.NewService(file.Config{
		Store: dynamo.NewFiles(dynamo.NewClient(config), env.Required("CUTROOM_FILES_TABLE")), Blobs: bucket, Signed: bucket,
		IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now,
	})
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, event events.S3Event) (any, error) {
		var failures []error
		for _, record := range event.Records {
			// The key is escaped as in a query; this is the plain one.
			err := files.Received(ctx, record.S3.Object.URLDecodedKey)
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Limited) {
				logger.InfoContext(ctx, "an upload is of no file, or there was no room for it", "size", record.S3.Object.Size)
				continue
			}
			failures = append(failures, err)
		}
		// Lambda brings the event again.
		return nil, errors.Join(failures...)
	}, env.Err()
}

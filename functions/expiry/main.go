// Function expiry removes the bytes of files whose records have gone: expired,
// deleted, or promised and never sent. It is started by the stream of the files'
// table. No job needs the bytes any more: an accepted job has inputs of its own.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/setting"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

func main() { lambdaevent.Main(expiry) }

func expiry() (func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	bucket := s3blob.New(config, env.Required("CUTROOM_BUCKET"))
	files := dynamo.NewFiles(dynamo.NewClient(config), env.Required("CUTROOM_FILES_TABLE"))
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, event events.DynamoDBEvent) (answer events.DynamoDBEventResponse, _ error) {
		for _, record := range event.Records {
			f, ended := dynamo.RemovedFile(record.Change.OldImage)
			if !ended || record.EventName != string(events.DynamoDBOperationTypeRemove) {
				continue
			}
			err := bucket.Delete(ctx, f.Blob)
			if err == nil {
				err = files.Free(ctx, f)
			}
			if err != nil {
				logger.ErrorContext(ctx, "remove an ended file", "file", f.ID, "error", err)
				// The stream goes on from here; what came before is done.
				answer.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: record.Change.SequenceNumber}}
				return answer, nil
			}
		}
		return answer, nil
	}, env.Err()
}

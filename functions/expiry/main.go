// Function expiry deletes the bytes and thumbnails of files that have lost their record: expired
// files, deleted files, and announced files that never arrived. The files table's stream invokes
// it. No job needs the bytes, because an accepted job has its own copies.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/eventapp"
	"cutroom/shared/domain/file"
)

func main() { eventapp.Main(expiry) }

func expiry(p *eventapp.Parts) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	bucket := s3blob.New(p.AWS, p.Required("CUTROOM_BUCKET"))
	files := dynamo.NewFiles(dynamo.NewClient(p.AWS), p.Required("CUTROOM_FILES_TABLE"))
	return func(ctx context.Context, event events.DynamoDBEvent) (answer events.DynamoDBEventResponse, _ error) {
		for i, record := range event.Records {
			f, ended := dynamo.RemovedFile(record.Change.OldImage)
			if !ended || record.EventName != string(events.DynamoDBOperationTypeRemove) {
				continue
			}
			err := file.DeleteBytes(ctx, bucket, f)
			if err == nil {
				err = files.Free(ctx, f)
			}
			if err != nil {
				p.Logger.ErrorContext(ctx, "cannot remove the bytes of a file", "file", f.ID, "error", err)
				if i == 0 {
					return answer, err // unlike a failed record, Lambda counts it as an error, which the alarm watches
				}
				// The stream retries from this record. Earlier records are done.
				answer.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: record.Change.SequenceNumber}}
				return answer, nil
			}
		}
		return answer, nil
	}
}

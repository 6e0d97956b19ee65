// Function arrived completes files whose bytes have arrived through a signed URL. The bucket's
// upload notifications invoke it.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/eventapp"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/sniff"
)

func main() { eventapp.Main(arrived) }

func arrived(p *eventapp.Parts) func(context.Context, events.S3Event) (any, error) {
	bucket := s3blob.New(p.AWS, p.Required("CUTROOM_BUCKET"))
	files := file.NewService(file.Config{
		Store: dynamo.NewFiles(dynamo.NewClient(p.AWS), p.Required("CUTROOM_FILES_TABLE")),
		Blobs: bucket, Signed: bucket, Detect: sniff.Any,
		IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now,
	})
	return func(ctx context.Context, event events.S3Event) (any, error) {
		var failures []error
		for _, record := range event.Records {
			// The event's key is URL-encoded; this is the decoded key.
			err := files.Received(ctx, record.S3.Object.URLDecodedKey)
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Limited) {
				p.Logger.InfoContext(ctx, "an upload has no pending file, or exceeds the account's storage",
					"size", record.S3.Object.Size)
				continue
			}
			failures = append(failures, err)
		}
		// After an error, Lambda sends the event again.
		return nil, errors.Join(failures...)
	}
}

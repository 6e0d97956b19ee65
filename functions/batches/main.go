// Function batches serves files and batches at the inference address: /v1/files and /v1/batches.
// The steps function processes the batches.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"time"

	"cutroom/shared/adapter/lambdainvoke"
	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/app/gatewayapp"
	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/gateway"
)

func main() { lambdahttp.Main(batches) }

func batches() (http.Handler, lambdahttp.Mode, error) {
	mode, err := lambdahttp.ResponseMode(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	p, err := gatewayapp.New()
	if err != nil {
		return nil, 0, err
	}
	bucket := p.Bucket()
	files := p.Files(bucket, sniff.Any)
	p.Gateway.Batches = &gateway.Batches{
		Service: batch.NewService(batch.Config{
			Store: p.Batches(), Files: files, Blobs: bucket, IDs: file.NewIDs(time.Now, rand.Reader), Now: time.Now,
			Storage: p.Storage(),
			Wake:    wake(lambdainvoke.NewFunction(p.AWS, p.Required("CUTROOM_STEPS_FUNCTION"), time.Now), p.Logger),
		}),
		Files: files, Blobs: bucket, Detect: sniff.Any, MaxUpload: cmp.Or(p.Size("CUTROOM_MAX_UPLOAD"), file.MaxSignedSize),
		Downloads: s3blob.NewSigner(bucket, time.Now).At(p.URL("CUTROOM_PUBLIC_S3_URL")), RedirectAbove: mode.MostSent(),
	}
	handler, err := p.Handler(gateway.FilesAndBatches)
	return handler, mode, err
}

// wake starts the function that processes batches. If that fails, the function starts on its schedule.
func wake(steps *lambdainvoke.Function, logger *slog.Logger) func(context.Context, batch.Batch) {
	return func(ctx context.Context, b batch.Batch) {
		if err := steps.Start(ctx); err != nil {
			logger.ErrorContext(ctx, "cannot start work on a batch", "batch", b.ID, "account", b.Account, "error", err)
		}
	}
}

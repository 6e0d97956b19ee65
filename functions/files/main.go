// Function files stores, lists and deletes files: /v1/files.
package main

import (
	"net/http"
	"time"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/file"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/s3"
	"cutroom/shared/secretsmanager"
)

func main() { lambdahttp.Main(files) }

func files() (http.Handler, lambdahttp.Form, error) {
	f, err := awsmedia.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	bucket := f.Bucket()
	secret := secretsmanager.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN"))
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.NewCursorsFrom(secret.Value))
	f.Config.Signer = s3.NewSigner(bucket, time.Now)
	handler, err := f.Handler(api.Files)
	return handler, lambdahttp.Buffered, err
}

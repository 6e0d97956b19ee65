// Function files stores, lists and deletes files: /v1/files.
package main

import (
	"net/http"

	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/file"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { lambdahttp.Main(files) }

func files() (http.Handler, lambdahttp.Mode, error) {
	f, err := awsapp.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	bucket := f.Bucket()
	secret := secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN"))
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.NewCursorsFrom(secret.Value))
	f.Config.Signer = f.Signer(bucket)
	handler, err := f.Handler(api.Files)
	return handler, lambdahttp.Buffered, err
}

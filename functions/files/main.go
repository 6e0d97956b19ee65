// Function files stores, lists and deletes files: /v1/files.
package main

import (
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/file"
	"cutroom/shared/service/api"
)

func main() { awsapp.Serve(files, api.Files) }

func files(f *awsapp.Parts) {
	bucket := f.Bucket()
	secret := secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN"))
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.NewCursorsFrom(secret.Value))
	f.Config.Signer = f.Signer(bucket)
}

// Function credentials verifies the Content Credentials of results and of stored files: GET /v1/jobs/{id}/credentials
// and /v1/uploads/{file_id}/credentials. It is separate from the content function, which may read a secret and starts
// faster. It loads a library that reads untrusted files, in a process sandboxed as much as Lambda allows.
package main

import (
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/app/c2pa/verifying"
	"cutroom/shared/service/api"
)

const (
	// maxFile is half the size of the function's disk, in bytes. Fetching and reading a file of this size takes
	// seconds.
	maxFile = 256 << 20
	// requestTime is below API Gateway's timeout of 29 s.
	requestTime = 24 * time.Second
	// fileTime is the timeout for a small file. A file that takes longer is hostile.
	fileTime = 10 * time.Second
	// readerMemory leaves half of the function's memory to this program.
	readerMemory = 1 << 30
)

func main() { awsapp.Serve(credentials, api.Credentials) }

func credentials(f *awsapp.Parts) {
	f.ReadJobs()
	f.ReadFiles()
	f.Config.Blobs = f.Bucket()
	f.Config.Verifier = verifying.NewReader(verifying.Config{
		Library: f.Optional("CUTROOM_C2PA_LIBRARY"), Time: fileTime, Memory: readerMemory, Logger: f.Config.Logger,
		Signers: dynamo.NewSigners(f.Records, f.Required("CUTROOM_JOBS_TABLE")).Certificates,
	})
	f.Config.MaxVerified, f.Config.VerifyTime = maxFile, requestTime
}

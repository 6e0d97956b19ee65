// Function tokens issues and verifies client tokens: POST /v1/client/tokens, POST /v1/verify and
// GET /.well-known/jwks.json. It also manages accounts' permanent keys and their budgets: /v1/keys
// and below, /v1/budgets, and /v1/audit.
package main

import (
	"crypto/rand"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/credential"
	"cutroom/shared/service/api"
)

func main() { awsapp.Serve(tokens, api.Tokens, api.Keys, api.Budgets, api.Audit) }

func tokens(f *awsapp.Parts) {
	f.Config.Minter = &credential.Minter{
		Store: f.Keys, Random: rand.Reader, Now: time.Now, Secret: secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN")).Value,
	}
	f.Config.Keys = &credential.KeyService{Store: f.Keys, Random: rand.Reader, Now: time.Now}
	f.Config.AuditLog = dynamo.NewAudit(f.Records, f.Required("CUTROOM_USAGE_TABLE"))
	f.ManageBudgets()
}

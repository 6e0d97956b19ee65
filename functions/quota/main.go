// Function quota reports how many realtime sessions an account is using: GET /v1/realtime/quota.
package main

import (
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/service/api"
)

func main() { awsapp.Serve(quota, api.Realtime) }

func quota(f *awsapp.Parts) {
	f.Config.Sessions = dynamo.NewSessions(f.Records, f.Required("CUTROOM_SESSIONS_TABLE"))
}

// Function quota reports how many realtime sessions an account is using: GET /v1/realtime/quota.
package main

import (
	"net/http"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { lambdahttp.Main(quota) }

func quota() (http.Handler, lambdahttp.Mode, error) {
	f, err := awsapp.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	f.Config.Sessions = dynamo.NewSessions(f.Records, f.Required("CUTROOM_SESSIONS_TABLE"))
	handler, err := f.Handler(api.Realtime)
	return handler, lambdahttp.Buffered, err
}

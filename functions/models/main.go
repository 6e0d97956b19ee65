// Function models resolves model names, describes the service and reports which prompts its engine
// understands: /v1/engine, /v1/looks, /v1/understand, /openapi.json, /docs and /healthz. These
// routes need no credential, so the function has no AWS client.
package main

import (
	"net/http"
	"os"

	"cutroom/shared/app/engineconfig"
	"cutroom/shared/app/setting"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { lambdahttp.Main(models) }

func models() (http.Handler, lambdahttp.Mode, error) {
	env := setting.NewFunction(os.Getenv)
	config := api.Config{
		Catalog: env.Catalog(), Origins: env.Origins(), MaxUpload: env.Size("CUTROOM_MAX_UPLOAD"),
		InfoRoutes: api.InfoRoutes{
			Engine:       api.EngineFacts{Name: engineconfig.Parse(env.Optional("CUTROOM_ENGINE")).Engine()},
			InferenceURL: env.Optional("CUTROOM_PUBLIC_INFERENCE_URL"),
		},
		Logger: lambdahttp.NewLogger(os.Stdout),
	}
	if err := env.Err(); err != nil {
		return nil, 0, err
	}
	return httpserver.Handler(httpserver.Config{
		Handler: api.New(config, api.Models, api.OpenAPI, api.Root, api.Health), Logger: config.Logger,
		OnPanic: api.InternalError(config.Origins),
	}), lambdahttp.Buffered, nil
}

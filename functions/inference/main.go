// Function inference is the text inference gateway: /v1/chat/completions,
// /v1/completions, /v1/models and /v1/usage.
package main

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"cutroom/shared/awsconfig"
	"cutroom/shared/cloudwatch"
	"cutroom/shared/credential"
	"cutroom/shared/dynamo"
	"cutroom/shared/gateway"
	"cutroom/shared/httpserver"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/model"
	"cutroom/shared/modelserver"
	"cutroom/shared/secretsmanager"
	"cutroom/shared/setting"
	"cutroom/shared/tokenizer"
	"cutroom/shared/usage"
)

func main() { lambdahttp.Main(inference) }

func inference() (http.Handler, lambdahttp.Form, error) {
	form, err := lambdahttp.StreamingUnless(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	config, tracer, err := awsconfig.Traced(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	env, client := setting.NewEnvironment(os.Getenv), dynamo.NewClient(config)
	logger, tokens, catalog := lambdahttp.NewLogger(os.Stdout), tokenizer.New(), env.Catalog()
	table := env.Required("CUTROOM_USAGE_TABLE")
	used := dynamo.NewUsage(client, table)
	keys := dynamo.NewKeys(client, env.Required("CUTROOM_CREDENTIALS_TABLE"))
	c := gateway.Config{
		Catalog: func() *model.Catalog { return catalog }, Authenticator: credential.NewAuthenticator(keys, env.Tiers(), time.Now),
		Limiter: dynamo.NewRates(client, table, time.Now, rand.Text), Meter: usage.NewDirect(used, rand.Text), Usage: used, Tokenizer: tokens,
		Secrets:  secretsmanager.NewUpstreams(config, gateway.LocalSecrets{}),
		Embedded: modelserver.New(modelserver.Config{Tokenizer: tokens, Now: time.Now, NewID: rand.Text}),
		Observer: cloudwatch.New(os.Stdout, time.Now, logger), Origins: env.Origins(),
		Now: time.Now, Random: mathrand.Float64, Tracer: tracer, Logger: logger,
	}
	if err := env.Err(); err != nil {
		return nil, 0, err
	}
	return httpserver.Handler(httpserver.Config{Handler: gateway.New(c), Logger: logger, Tracer: tracer, Failed: gateway.Panicked(c.Origins)}), form, nil
}

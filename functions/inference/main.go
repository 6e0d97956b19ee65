// Function inference is the text inference gateway: /v1/chat/completions,
// /v1/completions, /v1/responses, /v1/messages, /v1/messages/count_tokens,
// /v1/embeddings, /v1/rerank, /v1/score, /v1/models and /v1/usage.
package main

import (
	"context"
	"crypto/rand"
	"io"
	"log"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/adapter/cloudwatch"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/gateway"
	"cutroom/shared/service/gateway/demomodel"
	"cutroom/shared/service/gateway/tokenizer"
	"cutroom/shared/service/gateway/upstream"
)

func main() {
	// net/http logs unexpected responses of a server, which may contain a completion.
	// Nothing else uses this log.
	log.SetOutput(io.Discard)
	lambdahttp.Main(inference)
}

func inference() (http.Handler, lambdahttp.Mode, error) {
	mode, err := lambdahttp.ResponseMode(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	config, tracer, err := awsconfig.Traced(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	env, client := setting.NewEnvironment(os.Getenv), dynamo.NewClient(config)
	logger, tokens, known := lambdahttp.NewLogger(os.Stdout), tokenizer.New(), env.Catalog()
	table := env.Required("CUTROOM_USAGE_TABLE")
	used := dynamo.NewUsage(client, table)
	keys := dynamo.NewKeys(client, env.Required("CUTROOM_CREDENTIALS_TABLE"), table)
	budgets, err := keeper(client, table, logger)
	if err != nil {
		return nil, 0, err
	}
	c := gateway.Config{
		Catalog:       func() *catalog.Catalog { return known },
		Authenticator: credential.NewAuthenticator(keys, env.Tiers(), time.Now),
		Limiter:       dynamo.NewRates(client, table, time.Now, rand.Text), Meter: usage.NewDirect(used, rand.Text),
		Budgets: budgets, Usage: used, Tokenizer: tokens,
		Secrets:  secrets.NewUpstreams(config, upstream.LocalSecrets{}),
		Embedded: demomodel.New(demomodel.Config{Tokenizer: tokens, Now: time.Now, NewID: rand.Text}),
		Observer: cloudwatch.New(os.Stdout, time.Now, logger), Origins: env.Origins(),
		Now: time.Now, Random: mathrand.Float64, Tracer: tracer, Logger: logger,
	}
	if err := env.Err(); err != nil {
		return nil, 0, err
	}
	return httpserver.Handler(httpserver.Config{
		Handler: gateway.New(c), Logger: logger, Tracer: tracer, OnPanic: gateway.PanicHandler(c.Origins),
	}), mode, nil
}

// keeper returns the keeper of budgets of this process, which renews what it holds while a
// call is under way and the process runs.
func keeper(client *dynamodb.Client, table string, logger *slog.Logger) (*budget.Keeper, error) {
	machine, err := boottime.Open()
	if err != nil {
		return nil, err
	}
	k := budget.NewKeeper(budget.KeeperConfig{
		Store: dynamo.NewBudgets(client, table, machine, rand.Text), Machine: machine, Now: time.Now, NewID: rand.Text,
		MayFreeze: true, Logger: logger,
	})
	go k.Run(context.Background()) // until the process ends
	return k, nil
}

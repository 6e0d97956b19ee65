// Package modelapp lets a function of the inference gateway call models. It is separate from
// gatewayapp because the tokenizer and the demo model add 3 MB to a program and slow its start, and
// the function for files and batches does not call models.
package modelapp

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/gatewayapp"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/service/gateway/demomodel"
	"cutroom/shared/service/gateway/tokenizer"
	"cutroom/shared/service/gateway/upstream"
)

func New() (*gatewayapp.Parts, error) {
	p, err := gatewayapp.New()
	if err != nil {
		return nil, err
	}
	table := p.Required("CUTROOM_USAGE_TABLE")
	budgets, err := budgetManager(p.Records, table, p.Logger)
	if err != nil {
		return nil, err
	}
	tokens, used := tokenizer.New(), dynamo.NewUsage(p.Records, table)
	p.Gateway.Meter, p.Gateway.Usage, p.Gateway.Budgets = usage.NewDirect(used, rand.Text), used, budgets
	p.Gateway.Tokenizer, p.Gateway.Responses = tokens, dynamo.NewResponses(p.Records, table)
	p.Gateway.Secrets = secrets.NewUpstreams(p.AWS, upstream.LocalSecrets{})
	p.Gateway.Embedded = demomodel.New(demomodel.Config{Tokenizer: tokens, Now: time.Now, NewID: rand.Text})
	return p, nil
}

// budgetManager returns a manager that renews its allocations while a call is running.
func budgetManager(client *dynamodb.Client, table string, logger *slog.Logger) (*budget.Manager, error) {
	machine, err := boottime.Open()
	if err != nil {
		return nil, err
	}
	k := budget.NewManager(budget.ManagerConfig{
		Store: dynamo.NewBudgets(client, table, machine, rand.Text), Machine: machine, Now: time.Now, NewID: rand.Text,
		MayFreeze: true, Logger: logger,
	})
	go k.Run(context.Background()) // until the process exits
	return k, nil
}

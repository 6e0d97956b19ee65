package dynamo_test

import (
	"crypto/rand"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/batch/batchtest"
	"cutroom/shared/domain/credential/credentialtest"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file/filetest"
	"cutroom/shared/domain/ratelimit/ratelimittest"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/session/sessiontest"
	"cutroom/shared/domain/usage"
	"cutroom/shared/domain/usage/usagetest"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func client(cloud *awstest.Cloud) *dynamodb.Client { return dynamo.NewClient(cloud.Config()) }

func TestKeysConform(t *testing.T) {
	cloud := local.Cloud(t)
	credentialtest.Run(t, func(t *testing.T) credentialtest.Harness {
		log := cloud.MakeTable(t, "usage")
		return credentialtest.Harness{
			Store: dynamo.NewKeys(client(cloud), cloud.MakeTable(t, "credentials"), log),
			Log:   dynamo.NewAudit(client(cloud), log),
		}
	})
}

func TestBatchesConform(t *testing.T) {
	cloud := local.Cloud(t)
	batchtest.Run(t, func(t *testing.T) batchtest.Harness {
		table := cloud.MakeTable(t, "usage")
		return batchtest.Harness{
			Batches: dynamo.NewBatches(client(cloud), table), Usage: dynamo.NewUsage(client(cloud), table),
			Files: dynamo.NewFiles(client(cloud), cloud.MakeTable(t, "files")),
		}
	})
}

func TestFilesConform(t *testing.T) {
	cloud := local.Cloud(t)
	filetest.Run(t, func(t *testing.T) filetest.Harness {
		return filetest.Harness{Store: dynamo.NewFiles(client(cloud), cloud.MakeTable(t, "files"))}
	})
}

func TestSessionsConform(t *testing.T) {
	cloud := local.Cloud(t)
	sessiontest.Run(t, func(t *testing.T) sessiontest.Harness {
		clock := &storeClock{now: time.Now()}
		config := cloud.Config()
		config.HTTPClient = &http.Client{Transport: clock}
		store := dynamo.NewSessions(dynamo.NewClient(config), cloud.MakeTable(t, "sessions"))
		return sessiontest.Harness{Store: store, Pass: clock.pass}
	})
}

// Version 0.1.0 also counted slots in other items. Those slots are ignored.
func TestSlotsOfOtherItemsAreNotCounted(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	records, table := client(cloud), cloud.MakeTable(t, "sessions")
	_, err := records.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"id":         &types.AttributeValueMemberS{Value: "account/acme"},
		"slot/a":     &types.AttributeValueMemberS{Value: "epoch"},
		"open_slots": &types.AttributeValueMemberN{Value: "300"},
		"slot_parts": &types.AttributeValueMemberN{Value: "4"},
	}})
	conformance.OK(t, err)
	store := dynamo.NewSessions(records, table)
	conformance.OK(t, store.Begin(ctx, "epoch", ""))
	for _, id := range []string{"b", "c"} {
		conformance.OK(t, store.Take(ctx, session.Slot{ID: id, Account: "acme", Epoch: "epoch"}, 3))
	}
	conformance.Fails(t, store.Take(ctx, session.Slot{ID: "d", Account: "acme", Epoch: "epoch"}, 3), fault.Limited)
}

type storeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *storeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *storeClock) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		response.Header.Set("Date", c.now.UTC().Format(http.TimeFormat))
	}
	return response, err
}

func TestUsageConforms(t *testing.T) {
	cloud := local.Cloud(t)
	usagetest.Run(t, func(t *testing.T) usage.Store {
		return dynamo.NewUsage(client(cloud), cloud.MakeTable(t, "usage"))
	})
}

func TestRatesConform(t *testing.T) {
	cloud := local.Cloud(t)
	ratelimittest.Run(t, func(t *testing.T) ratelimittest.Harness {
		now := time.Now()
		return ratelimittest.Harness{
			Limiter: dynamo.NewRates(client(cloud), cloud.MakeTable(t, "usage"), func() time.Time { return now }, rand.Text),
			Pass:    func(d time.Duration) { now = now.Add(d) },
		}
	})
}

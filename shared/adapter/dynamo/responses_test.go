package dynamo_test

import (
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/response/responsetest"
	"cutroom/shared/testkit/awstest"
)

func TestResponsesConform(t *testing.T) {
	cloud := local.Cloud(t)
	responsetest.Run(t, dynamo.NewResponses(client(cloud), cloud.MakeTable(t, "usage")))
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store, ctx, now := dynamo.NewResponses(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage")), t.Context(), time.Now()
	asDocumented(t, proxy, "Responses", calls{
		{"Keep", func() error { return store.Keep(ctx, "acme", "a", []byte("x"), now) }},
		{"Find", func() error { _, err := store.Find(ctx, "acme", "a", now); return err }},
		{"Delete", func() error { return store.Delete(ctx, "acme", "a") }},
	})
}

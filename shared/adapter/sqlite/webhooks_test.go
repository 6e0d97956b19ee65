package sqlite_test

import (
	"testing"

	"cutroom/shared/domain/webhook/webhooktest"
)

func TestWebhooksConform(t *testing.T) {
	webhooktest.Run(t, func(t *testing.T) webhooktest.Harness {
		db := open(t)
		return webhooktest.Harness{
			Store: db.Webhooks(), Jobs: db.Jobs(), Budgets: db.Budgets(&machine{boot: "first"}), Queue: db.Webhooks(),
		}
	})
}

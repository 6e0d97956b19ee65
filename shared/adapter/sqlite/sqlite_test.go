package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/batch/batchtest"
	"cutroom/shared/domain/credential/credentialtest"
	"cutroom/shared/domain/file/filetest"
	"cutroom/shared/domain/job/jobtest"
	"cutroom/shared/domain/webhook/webhooktest"
	"cutroom/shared/service/worker/workertest"
	"cutroom/shared/testkit/sqlitetest"
)

func open(t *testing.T) *sqlite.DB {
	t.Helper()
	return sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
}

func openAt(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func TestJobsConform(t *testing.T) {
	jobtest.Run(t, func(t *testing.T) jobtest.Harness {
		db := open(t)
		budgets := db.Budgets(&machine{boot: "first"})
		return jobtest.Harness{
			Store: db.Jobs().HoldIn(budgets), Runs: db.Jobs(), Retention: db.Jobs(), Usage: db.Usage(), Estimates: db.Estimates(),
			Budgets: budgets, Queues: db.Jobs(),
		}
	})
}

func TestQueueConforms(t *testing.T) {
	workertest.Run(t, func(t *testing.T) workertest.Harness {
		db := open(t)
		return workertest.Harness{Queue: db.Queue(), Store: db.Jobs(), Runs: db.Jobs(), Fair: true}
	})
}

func TestKeysConform(t *testing.T) {
	credentialtest.Run(t, func(t *testing.T) credentialtest.Harness {
		db := open(t)
		return credentialtest.Harness{Store: db.Keys(), Log: db.Audit(), Retention: db.Keys()}
	})
}

func TestBatchesConform(t *testing.T) {
	batchtest.Run(t, func(t *testing.T) batchtest.Harness {
		db := open(t)
		return batchtest.Harness{Batches: db.Batches(), Usage: db.Usage(), Files: db.Files()}
	})
}

func TestFilesConform(t *testing.T) {
	filetest.Run(t, func(t *testing.T) filetest.Harness {
		files := open(t).Files()
		return filetest.Harness{Store: files, Retention: files}
	})
}

func TestWebhooksConform(t *testing.T) {
	webhooktest.Run(t, func(t *testing.T) webhooktest.Harness {
		db := open(t)
		return webhooktest.Harness{
			Store: db.Webhooks(), Jobs: db.Jobs(), Budgets: db.Budgets(&machine{boot: "first"}), Queue: db.Webhooks(),
		}
	})
}

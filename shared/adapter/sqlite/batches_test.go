package sqlite_test

import (
	"testing"

	"cutroom/shared/domain/batch/batchtest"
)

func TestBatchesConform(t *testing.T) {
	batchtest.Run(t, func(t *testing.T) batchtest.Harness {
		db := open(t)
		return batchtest.Harness{Batches: db.Batches(), Usage: db.Usage(), Files: db.Files()}
	})
}

package sqlite_test

import (
	"testing"

	"cutroom/shared/idempotency"
	"cutroom/shared/idempotency/idempotencytest"
)

func TestIdempotencyKeys(t *testing.T) {
	idempotencytest.Run(t, func(t *testing.T) idempotency.Store { return open(t).IdempotencyKeys() })
}

package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/job"
)

type Estimates struct{ db *DB }

var _ job.EstimateStore = Estimates{}

func (db *DB) Estimates() Estimates { return Estimates{db} }

func (e Estimates) Estimates(ctx context.Context) (job.Estimates, error) {
	var body string
	err := e.db.reader.QueryRowContext(ctx, "select body from estimates").Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("read estimates", err)
	}
	var estimates job.Estimates
	if err := json.Unmarshal([]byte(body), &estimates); err != nil {
		return nil, fmt.Errorf("sqlite: estimates: %w", err)
	}
	return estimates, nil
}

func (e Estimates) PublishEstimates(ctx context.Context, estimates job.Estimates, _ time.Time) error {
	body, err := encode(estimates)
	if err != nil {
		return fmt.Errorf("sqlite: publish estimates: %w", err)
	}
	return e.db.write(ctx, "publish estimates", func(ctx context.Context, tx *transaction) error {
		if len(estimates) == 0 {
			_, err := tx.ExecContext(ctx, "delete from estimates")
			return err
		}
		_, err := tx.ExecContext(ctx, "insert or replace into estimates (only, body) values (1, ?)", body)
		return err
	})
}

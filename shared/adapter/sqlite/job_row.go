package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

const recordColumns = `job.id, account, key, model, lane, seed, status, progress, runs, nonce,
	created_at, deadline, started_at, completed_at, result, failure, webhook, trace, estimate, holds`

const (
	selectJob = "select " + recordColumns + ", job_request.body from job join job_request on job_request.job = job.id "
	jobByID   = selectJob + "where job.id = ?"
)

func find(ctx context.Context, q querier, id string) (job.Job, error) {
	j, err := scanJob(q.QueryRowContext(ctx, jobByID, id))
	if errors.Is(err, sql.ErrNoRows) {
		return job.Job{}, job.ErrNotFound
	}
	return j, err
}

func scanJob(r row) (job.Job, error) {
	j, _, err := scanSizedJob(r)
	return j, err
}

// scanSizedJob is like scanJob, but also returns the size of the request in bytes.
func scanSizedJob(r row) (job.Job, int, error) {
	var (
		j                      job.Job
		createdAt, deadline    int64
		estimate               int64
		startedAt, completedAt sql.NullInt64
		result, failure, holds sql.NullString
		request                []byte
	)
	err := r.Scan(&j.ID, &j.Account, &j.Key, &j.Model, &j.Lane, &j.Seed, &j.Status, &j.Progress, &j.Runs, &j.Nonce,
		&createdAt, &deadline, &startedAt, &completedAt, &result, &failure, &j.Webhook, &j.Trace,
		&estimate, &holds, &request)
	if err != nil {
		return job.Job{}, 0, err
	}
	j.CreatedAt, j.Deadline = time.UnixMilli(createdAt).UTC(), time.UnixMilli(deadline).UTC()
	j.StartedAt, j.CompletedAt = timeOf(startedAt), timeOf(completedAt)
	j.Estimate = time.Duration(estimate) * time.Millisecond
	if err := json.Unmarshal(request, &j.Request); err != nil {
		return job.Job{}, 0, fmt.Errorf("request of job %s: %w", j.ID, err)
	}
	if held, err := decodeOptional[[]budget.Hold](holds); err != nil {
		return job.Job{}, 0, fmt.Errorf("holds of job %s: %w", j.ID, err)
	} else if held != nil {
		j.Holds = *held
	}
	if j.Result, err = decodeOptional[job.Result](result); err != nil {
		return job.Job{}, 0, fmt.Errorf("result of job %s: %w", j.ID, err)
	}
	if j.Failure, err = decodeOptional[job.Failure](failure); err != nil {
		return job.Job{}, 0, fmt.Errorf("failure of job %s: %w", j.ID, err)
	}
	return j, len(request), nil
}

func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func encodeOptional[T any](value *T) (sql.NullString, error) {
	if value == nil {
		return sql.NullString{}, nil
	}
	text, err := encode(value)
	return sql.NullString{String: text, Valid: true}, err
}

func decodeOptional[T any](stored sql.NullString) (*T, error) {
	if !stored.Valid {
		return nil, nil
	}
	value := new(T)
	return value, json.Unmarshal([]byte(stored.String), value)
}

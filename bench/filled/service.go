package filled

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Service describes a service's records other than files, in realistic proportions. For each number there is a usage
// row and an ended job with its request, its idempotency key, and its webhook with one delivery attempt. Every 100th
// number has a key and an audit log entry, and every 1000th a batch with ten chunks. The records are spread over a
// thousand accounts.
type Service struct {
	// Numbers From+1 through Count are written.
	From, Count int
	// Now is the creation time of the last record. The others were created in the six days before.
	Now time.Time
}

func (s Service) span() (from, count int) { return s.From, s.Count }

// The statements' parameters are the first and last record number, the time, a prompt, and a chunk's lines.
var statements = []string{
	`insert into job (id, account, key, model, lane, seed, status, progress, runs, nonce, created_at, deadline, started_at,
			completed_at, result, message, webhook)
		select 'job_' || printf('%026d', n), 'account' || (n % 1000), 'key_0123456789ab', 'gen-pro-v2v', 'video', n, 'completed', 1,
			1, hex(randomblob(8)), at, at + 600000, at + 1000, at + 20000,
			json_object('blob', 'jobs/job_' || printf('%026d', n) || '/result', 'mime', 'video/mp4', 'size', 1000000,
				'sha256', lower(hex(randomblob(32)))), '', 'https://example.com/hook'
		from numbered`,
	`insert into job_request (job, body)
		select 'job_' || printf('%026d', n), json_object('Prompt', ?4, 'Inputs', json_object('data', json_object('Blob',
			'jobs/job_' || printf('%026d', n) || '/data', 'MIME', 'video/mp4', 'Size', 1000000)))
		from numbered`,
	`insert into idempotency (account, key, fingerprint, resource, settled, answer, claimed_at)
		select 'account' || (n % 1000), lower(hex(randomblob(16))), lower(hex(randomblob(32))), 'job_' || printf('%026d', n), 1,
			randomblob(100), ?3 - n % 80000000 from numbered`,
	`insert into webhook (id, job, account) select 'job_' || printf('%026d', n), 'job_' || printf('%026d', n),
			'account' || (n % 1000) from numbered`,
	`insert into webhook_attempt (id, number, at, duration, status, error) select 'job_' || printf('%026d', n), 1, at + 20000,
			120, 204, '' from numbered`,
	`insert into usage (account, day, model, key, requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
			estimated, session_seconds)
		select 'account' || (n % 1000), date(?3 / 1000 - (n / 1000 % 700) * 86400, 'unixepoch'), 'chat', 'key_' || n, 100, 10000, 0,
			10000, 0, 0, 0 from numbered`,
	`insert into api_key (hash, id, account, tier, label, created_at)
		select randomblob(32), 'key_' || n, 'account' || (n % 1000), 'dev', 'of a service', at from numbered where n % 100 = 0`,
	`insert into audit (account, id, at, by, action, subject, before, after, request_id)
		select 'account' || (n % 1000), 'audit_' || printf('%026d', n), at, 'operator', 'key.create', 'key_' || n, '',
			json_object('label', 'of a service'), hex(randomblob(16)) from numbered where n % 100 = 0`,
	`insert into batch (id, account, status, answered, failed, expires_at, ended_at, kept, record)
		select 'batch_' || n, 'account' || (n % 1000), 'completed', 1000, 0, ?3 + 86400000, at + 60000, 0, json_object() from numbered
		where n % 1000 = 0`,
	`insert into batch_chunk (batch, number, blob, failures, lines)
		select 'batch_' || n, c.value, 'batches/batch_' || n || '/chunk-' || c.value, 0,
			?5
		from numbered, json_each('[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]') as c where n % 1000 = 0`,
}

func (s Service) write(ctx context.Context, db *sql.DB, from, to int) error {
	prompt := strings.Repeat("a storm over the sea at night, ", 12)
	for _, statement := range statements {
		_, err := db.ExecContext(ctx, `with recursive number (n) as
				(select ?1 + 1 union all select n + 1 from number where n < ?2),
				numbered (n, at) as (select n, ?3 - 518400000 + n * 977 % 518000000 from number) `+statement,
			from, to, s.Now.UnixMilli(), prompt, "["+strings.Repeat("1234,", 99)+"1234]")
		if err != nil {
			return fmt.Errorf("%.40s: %w", statement, err)
		}
	}
	return nil
}

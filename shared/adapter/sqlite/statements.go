package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// statements runs queries that are known beforehand and asked again and again:
// each is prepared once for a connection, as parsing one takes longer than
// finding a row by its key.
type statements struct {
	pool *sql.DB

	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

var _ querier = (*statements)(nil)

// QueryRowContext is as sql.DB's.
func (s *statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statement, err := s.prepare(ctx, query)
	if err != nil {
		// A row holds an error; only the pool can make one.
		return s.pool.QueryRowContext(ctx, query, args...)
	}
	return statement.QueryRowContext(ctx, args...)
}

// prepare gives the statement of a query. Closing the pool closes it.
func (s *statements) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	statement, ok := s.prepared[query]
	s.mu.Unlock()
	if ok {
		return statement, nil
	}
	statement, err := s.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.prepared[query]; ok {
		return other, statement.Close()
	}
	s.prepared[query] = statement
	return statement, nil
}

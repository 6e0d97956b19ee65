package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// statements prepares frequent queries once per connection, because parsing a query takes longer
// than finding a row by its key.
type statements struct {
	pool *sql.DB

	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

var _ querier = (*statements)(nil)

func newStatements(pool *sql.DB) *statements {
	return &statements{pool: pool, prepared: map[string]*sql.Stmt{}}
}

func (s *statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statement, err := s.prepare(ctx, query)
	if err != nil {
		// Only the pool can return a row that has an error.
		return s.pool.QueryRowContext(ctx, query, args...)
	}
	return statement.QueryRowContext(ctx, args...)
}

func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := s.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (s *statements) find(query string) (*sql.Stmt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	statement, ok := s.prepared[query]
	return statement, ok
}

// Prepared statements are closed with the pool.
func (s *statements) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if statement, ok := s.find(query); ok {
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

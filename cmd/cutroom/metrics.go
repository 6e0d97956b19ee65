package main

import (
	"context"
	"time"

	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/adapter/sqlite"
)

func stateOf(kept *sqlite.DB, sessions *sqlite.Sessions,
	now func() time.Time) func(context.Context) (prometheus.State, error) {
	return func(ctx context.Context) (prometheus.State, error) {
		var state prometheus.State
		jobs, err := kept.Jobs().Open(ctx)
		if err != nil {
			return state, err
		}
		for _, open := range jobs {
			state.Jobs = append(state.Jobs, prometheus.OpenJobs{
				Lane: open.Lane, Status: open.Status, Count: open.Count, Age: max(now().Sub(open.Oldest), 0),
			})
		}
		if state.StoredBytes, err = kept.Files().StoredBytes(ctx); err != nil {
			return state, err
		}
		if state.Sessions, err = sessions.Open(ctx); err != nil {
			return state, err
		}
		state.Waiting, err = sessions.Waiting(ctx)
		return state, err
	}
}

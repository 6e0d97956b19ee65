package prometheus

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cutroom/shared/domain/job"
)

const stateTime = 5 * time.Second // the timeout for reading the records for a scrape

type State struct {
	// Jobs may omit combinations of lane and status that have no jobs.
	Jobs        []OpenJobs
	StoredBytes int64
	// Sessions is the number of open realtime sessions. Waiting is the number of clients waiting for a session.
	Sessions int
	Waiting  int
}

type OpenJobs struct {
	Lane   job.Lane
	Status job.Status
	Count  int
	Age    time.Duration
}

func (m *Metrics) WatchState(read func(context.Context) (State, error)) {
	m.registry.MustRegister(&state{read})
}

type state struct {
	read func(context.Context) (State, error)
}

var (
	jobsOpen = prometheus.NewDesc("cutroom_jobs_open", "Open jobs, by lane and status.",
		[]string{"lane", "status"}, nil)
	jobsAge = prometheus.NewDesc("cutroom_jobs_oldest_age_seconds",
		"Age of the oldest open job, by lane and status, or 0 without open jobs. A job must end within 600 s.",
		[]string{"lane", "status"}, nil)
	filesBytes   = prometheus.NewDesc("cutroom_files_stored_bytes", "Bytes of stored files, across all accounts.", nil, nil)
	sessionsOpen = prometheus.NewDesc("cutroom_sessions_open", "Open realtime sessions.", nil, nil)
	waitingOpen  = prometheus.NewDesc("cutroom_sessions_waiting", "Clients waiting for a realtime session.", nil, nil)
)

func (s *state) Describe(out chan<- *prometheus.Desc) {
	describe(out, jobsOpen, jobsAge, filesBytes, sessionsOpen, waitingOpen)
}

// If the records cannot be read, Collect makes the scrape fail, because old numbers would hide the failure.
func (s *state) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), stateTime)
	defer cancel()
	now, err := s.read(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(jobsOpen, err)
		return
	}
	for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
		for _, status := range []job.Status{job.Pending, job.Processing} {
			var open OpenJobs
			for _, j := range now.Jobs {
				if j.Lane == lane && j.Status == status {
					open = j
				}
			}
			gauge(out, jobsOpen, float64(open.Count), string(lane), string(status))
			gauge(out, jobsAge, open.Age.Seconds(), string(lane), string(status))
		}
	}
	gauge(out, filesBytes, float64(now.StoredBytes))
	gauge(out, sessionsOpen, float64(now.Sessions))
	gauge(out, waitingOpen, float64(now.Waiting))
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cutroom/shared/testkit/servertest"
)

// ledger records the server's responses to the load, to compare them later with the server's state.
type ledger struct {
	mu sync.Mutex
	// jobs holds the accepted jobs. The value is true if a job may fail because of its input.
	jobs  map[string]bool
	files map[string][sha256.Size]byte
	// calls is the number of requests in ended batches.
	calls  int
	counts map[string]int
}

func newLedger() *ledger {
	return &ledger{jobs: map[string]bool{}, files: map[string][sha256.Size]byte{}, counts: map[string]int{}}
}

func (l *ledger) anyJob() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.jobs {
		return id
	}
	return ""
}

// accepted records an accepted job. nonsense means that its input cannot be edited.
func (l *ledger) accepted(id string, nonsense bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.jobs[id]; known {
		l.counts["WRONG: a duplicate job id"]++
	}
	l.jobs[id] = nonsense
}

// stays records a file that the load will not delete.
func (l *ledger) stays(id string, content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[id] = sha256.Sum256(content)
}

func (l *ledger) called(calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls += calls
}

// did records an action. wrong records an event that should not have happened.
func (l *ledger) did(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
}

func (l *ledger) wrong(format string, values ...any) {
	l.did("WRONG: " + fmt.Sprintf(format, values...))
}

func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(l.counts)) {
		fmt.Fprintf(&text, "%7d  %s\n", l.counts[what], what)
	}
	return text.String()
}

// check waits until every job has ended and downloads the results. It returns an error if something
// was lost, exists twice, or failed unexpectedly.
func (l *ledger) check(ctx context.Context, server *servertest.Server) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	client := server.Client()
	states := map[string]int{}
	for id, nonsense := range l.jobs {
		job, err := client.Await(ctx, id, nil)
		if err != nil {
			return fmt.Errorf("read an accepted job: %w", err)
		}
		states[job.Status]++
		if job.Status != "completed" && (!nonsense || job.Error == nil || job.Error.Code != "invalid_input") {
			return fmt.Errorf("the valid job %s is %s: %+v", id, job.Status, job.Error)
		}
		if job.Status != "completed" {
			continue
		}
		if answer, err := client.Content(ctx, id); err != nil || len(answer.Body) == 0 {
			return fmt.Errorf("the result of %s: %d bytes, %w", id, len(answer.Body), err)
		}
	}
	fmt.Printf("jobs     %v of %d accepted\n", states, len(l.jobs))
	if states["completed"] == 0 {
		return errors.New("no job was completed")
	}
	if err := checkBudget(ctx, client, states["completed"]); err != nil {
		return err
	}
	listed, err := list(ctx, client)
	if err != nil {
		return err
	}
	for id := range l.jobs {
		if listed[id] != 1 {
			return fmt.Errorf("%s occurs %d times in the list of jobs", id, listed[id])
		}
	}
	if err := errors.Join(l.checkFiles(ctx, client), l.checkUsage(ctx, server, states["completed"]),
		checkSessions(ctx, client)); err != nil {
		return err
	}
	for what, count := range l.counts {
		if strings.HasPrefix(what, "WRONG") {
			return fmt.Errorf("%d times: %s", count, what)
		}
	}
	return nil
}

// checkBudget checks that the account's job budget counts exactly the completed jobs. Failed jobs must not count.
func checkBudget(ctx context.Context, client *servertest.Client, completed int) error {
	answer, err := client.Get(ctx, "/v1/budgets")
	var set struct {
		Budgets []struct {
			Unit string
			Used json.Number
		}
	}
	if err := readJSON(answer, err, &set); err != nil || len(set.Budgets) != 1 {
		return fmt.Errorf("read the budgets: %w: %s", err, answer.Body)
	}
	if used := set.Budgets[0].Used.String(); used != fmt.Sprint(completed) {
		return fmt.Errorf("the budget counted %s jobs, but %d were completed", used, completed)
	}
	return nil
}

// list returns how many times each job appears in the job list.
func list(ctx context.Context, client *servertest.Client) (map[string]int, error) {
	listed := map[string]int{}
	cursor := ""
	for {
		answer, err := client.Get(ctx, "/v1/jobs?limit=100"+cursor)
		if err != nil {
			return nil, err
		}
		var page struct {
			Jobs []struct {
				ID string `json:"job_id"`
			} `json:"jobs"`
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(answer.Body, &page); err != nil || answer.Status != 200 {
			return nil, fmt.Errorf("list the jobs: status %d, %w", answer.Status, err)
		}
		for _, job := range page.Jobs {
			listed[job.ID]++
		}
		if page.Next == "" {
			return listed, nil
		}
		cursor = "&cursor=" + page.Next
	}
}

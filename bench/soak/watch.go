package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/testkit/servertest"
)

// sample is the state of the server's process at one moment.
type sample struct {
	memory                       int
	goroutines, files, processes int
	// database is the size of the database's used pages, in MiB. Its file also has free pages.
	database int
}

func (s sample) String() string {
	return fmt.Sprintf("%4d MiB  %4d goroutines  %4d files  %2d programs  %4d MiB of records",
		s.memory, s.goroutines, s.files, s.processes, s.database)
}

// watch observes the server's process from outside.
type watch struct {
	server  *servertest.Server
	data    string
	samples []sample
}

func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now, err := w.take(ctx); err == nil {
			w.samples = append(w.samples, now)
		}
	}
}

func (w *watch) take(ctx context.Context) (s sample, err error) {
	folder := fmt.Sprintf("/proc/%d", w.server.PID())
	text, err := os.ReadFile(folder + "/statm")
	if err != nil {
		return s, err
	}
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, err := strconv.Atoi(fields[1])
		if err != nil {
			return s, err
		}
		s.memory = pages * os.Getpagesize() >> 20
	}
	open, err := os.ReadDir(folder + "/fd")
	if err != nil {
		return s, err
	}
	s.files = len(open)
	if s.processes, err = children(w.server.PID()); err != nil {
		return s, err
	}
	if s.database, err = w.inUse(ctx); err != nil {
		return s, err
	}
	client := &servertest.Client{URL: w.server.InferenceURL()}
	answer, err := client.Get(ctx, "/metrics", "Authorization", "Bearer "+metricsKey)
	if err != nil || answer.Status != 200 {
		return s, fmt.Errorf("the metrics: status %d, %w", answer.Status, err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(answer.Body)); lines.Scan(); {
		if number, found := strings.CutPrefix(lines.Text(), "go_goroutines "); found {
			s.goroutines, err = strconv.Atoi(number)
		}
	}
	return s, err
}

func (w *watch) inUse(ctx context.Context) (size int, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.data, database)+"?mode=ro&_busy_timeout=10000")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, `select (page_count - freelist_count) * page_size >> 20
		from pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&size)
	return size, err
}

func children(pid int) (n int, err error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue // the thread has exited
		}
		n += len(strings.Fields(string(text)))
	}
	return n, nil
}

// slack is the allowed growth in goroutines and files. Some idle connections to the database and
// from this program stay open, but their number is limited.
const slack = 16

// calm waits until the server is idle, that is, until it has hardly more goroutines and open files than in the
// earlier sample `before`. If before is nil, it compares with the counts from 5 seconds ago.
func (w *watch) calm(ctx context.Context, before *sample) (now sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	var last sample
	for {
		if now, err = w.take(ctx); err != nil {
			return now, err
		}
		than := last
		if before != nil {
			than = *before
		}
		if now.processes == 0 && now.goroutines <= than.goroutines+slack && now.files <= than.files+slack {
			return now, nil
		}
		last = now
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return now, fmt.Errorf("the server does not come to rest: %s, and before %s", now, than)
		}
	}
}

const database = "cutroom.db"

const (
	// recordSize is the maximum size that one job, file or other record adds to the database, in
	// KiB. pageSlack is the allowed unused space within pages, in MiB.
	recordSize, pageSlack = 8, 8
)

// sized returns an error if the database grew by more than the finished work's records need.
func (w *watch) sized(before, after sample, done *ledger) error {
	things := 0
	for _, count := range done.counts {
		things += count
	}
	if most := before.database + things*recordSize>>10 + pageSlack; after.database > most {
		return fmt.Errorf("the database grew from %d to %d MiB, for %d things", before.database, after.database, things)
	}
	return nil
}

// flat returns an error if memory grew over time. It compares the mean of the last quarter with the
// second quarter's mean, because the first quarter fills caches.
func (w *watch) flat() error {
	quarter := len(w.samples) / 4
	if quarter == 0 {
		return fmt.Errorf("too few samples: %d", len(w.samples))
	}
	second, last := mean(w.samples[quarter:2*quarter]), mean(w.samples[3*quarter:])
	fmt.Printf("memory   %d MiB in the second quarter, %d MiB in the last\n", second, last)
	if last > second+second/4+24 {
		return fmt.Errorf("memory grew from %d to %d MiB", second, last)
	}
	return nil
}

func mean(samples []sample) int {
	sum := 0
	for _, s := range samples {
		sum += s.memory
	}
	return sum / len(samples)
}

func (w *watch) String() string {
	var most sample
	for _, s := range w.samples {
		most.memory, most.goroutines = max(most.memory, s.memory), max(most.goroutines, s.goroutines)
		most.database = max(most.database, s.database)
		most.files, most.processes = max(most.files, s.files), max(most.processes, s.processes)
	}
	return fmt.Sprintf("at most  %s\n", most)
}

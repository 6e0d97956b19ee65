package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"cutroom/shared/testkit/servertest"
)

const (
	manyAccount, manyKey = "many", "ck_soak-many-files"
	// The last quarter's p99 may exceed twice the second quarter's p99 by at most readSlack, because of other load on
	// the machine.
	readSlack = 100 * time.Millisecond
)

type readTimes struct {
	mu    sync.Mutex
	begun time.Time
	reads []timedRead
}

type timedRead struct{ at, took time.Duration }

func (r *readTimes) add(begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun.IsZero() {
		r.begun = begun
	}
	r.reads = append(r.reads, timedRead{time.Since(r.begun), time.Since(begun)})
}

func (r *readTimes) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.reads = time.Time{}, nil
}

// flat returns an error if the last quarter's p99 is much higher than the second quarter's.
func (r *readTimes) flat() error {
	if len(r.reads) == 0 {
		return fmt.Errorf("no read was recorded")
	}
	length := r.reads[len(r.reads)-1].at
	second, last := r.p99(length/4, length/2), r.p99(length*3/4, length+1)
	fmt.Printf("reads    %d; p99 %s in the second quarter, %s in the last\n", len(r.reads), second, last)
	if last > 2*second+readSlack {
		return fmt.Errorf("the p99 of reads grew from %s to %s", second, last)
	}
	return nil
}

func (r *readTimes) p99(from, to time.Duration) time.Duration {
	var took []time.Duration
	for _, read := range r.reads {
		if read.at >= from && read.at < to {
			took = append(took, read.took)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100].Round(10 * time.Microsecond)
}

// read reads the first or a later page of a very long file list, or the state of a job.
func (l *load) read(ctx context.Context, random *rand.Rand) {
	client, path := &servertest.Client{URL: l.server.URL(), Key: manyKey}, "/v1/files?limit=100"
	id := l.ledger.anyJob()
	switch {
	case random.IntN(2) == 0 && id != "":
		client, path = l.server.Client(), "/v1/jobs/"+id
	case random.IntN(4) > 0:
		path += l.cursor()
	}
	begun := time.Now()
	answer, err := client.Get(ctx, path)
	if err != nil || answer.Status != 200 {
		l.ledger.wrong("a read of %s: status %d, %v", path, answer.Status, err)
		return
	}
	l.reads.add(begun)
	l.ledger.did("reads")
	var page struct {
		Files []struct{} `json:"files"`
		Next  string     `json:"next_cursor"`
	}
	if client.Key != manyKey || l.files == 0 {
		return
	}
	if err := json.Unmarshal(answer.Body, &page); err != nil || len(page.Files) != 100 && page.Next != "" {
		l.ledger.wrong("a page of %d files, %v", len(page.Files), err)
	}
	l.follow(page.Next)
}

// follow keeps a cursor for later reads.
func (l *load) follow(next string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next = next; next != "" {
		l.next = "&cursor=" + url.QueryEscape(next)
	}
}

func (l *load) cursor() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

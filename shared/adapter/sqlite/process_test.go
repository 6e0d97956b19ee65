package sqlite_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/patience"
)

// childTask names, in the environment of a child process of this test, its task;
// childFile names the file to work on.
const childTask, childFile = "SQLITE_TEST_TASK", "SQLITE_TEST_FILE"

// TestMain lets the test program be its own child.
func TestMain(m *testing.M) {
	task, ok := os.LookupEnv(childTask)
	if !ok {
		os.Exit(m.Run())
	}
	if err := runChild(task, os.Getenv(childFile)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startChild starts a child and returns its output, line by line.
func startChild(t *testing.T, task, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(program)
	child.Env = append(os.Environ(), childTask+"="+task, childFile+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	return child, bufio.NewScanner(out)
}

// runChild runs the child's task. It prints each thing once it is acknowledged.
func runChild(task, path string) error {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path, sqlite.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	switch task {
	case "work":
		return work(ctx, db)
	case "limit":
		return acceptToLimit(ctx, db)
	case "keys":
		return makeKeys(ctx, db)
	case "spend":
		return spend(db)
	case "count calls":
		return countCalls(ctx, db)
	case "accept one":
		return db.Jobs().Accept(ctx, newJob("job_from-another-process", "acme"), 0)
	}
	return fmt.Errorf("no task %q", task)
}

// work accepts, runs and ends jobs until it is killed.
func work(ctx context.Context, db *sqlite.DB) error {
	errs := make(chan error)
	for sender := range 3 {
		go func() {
			for {
				// The limit keeps the queue as short as the workers need it.
				j := newJob("job_"+rand.Text(), fmt.Sprint("account", sender))
				j.Request.Price = &catalog.MediaPrice{Per: catalog.PerEdit, Millionths: 20_000, Currency: "EUR"}
				switch err := db.Jobs().Accept(ctx, j, 10); {
				case err == nil:
					fmt.Println("accepted", j.ID)
				case !fault.Is(err, fault.Limited):
					errs <- err
					return
				}
			}
		}()
	}
	for range 2 {
		go func() {
			for {
				d, err := db.Queue().Receive(ctx, job.VideoLane, time.Minute)
				if err == nil {
					_, err = db.Jobs().Start(ctx, d.JobID(), "n1", time.Now())
				}
				if err == nil {
					fmt.Println("started", d.JobID())
					err = d.Complete(ctx, "n1", job.Result{Blob: job.ResultBlob(d.JobID(), "n1")})
				}
				if err != nil {
					errs <- err
					return
				}
				fmt.Println("completed", d.JobID())
			}
		}()
	}
	return <-errs
}

// TestWhatWasAcknowledgedSurvivesAKill kills a working process repeatedly on one
// file, and checks what is left.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	said := map[string]string{} // the last acknowledgement, by job id
	for round := range 6 {
		child, out := startChild(t, "work", path)
		for line := range 20 + 37*round {
			if !out.Scan() {
				t.Fatalf("the child ended after %d lines: %v", line, out.Err())
			}
			note(said, out.Text())
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() {
			note(said, out.Text())
		}
		child.Wait()

		db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		checkBills(t, db)
		checkSurvivors(t, db, said)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// note keeps the last acknowledgement of a job. Senders and workers print
// concurrently, so that "accepted" can come late.
func note(said map[string]string, line string) {
	what, id, ok := strings.Cut(line, " ")
	order := map[string]int{"accepted": 1, "started": 2, "completed": 3}
	if ok && order[what] > order[said[id]] {
		said[id] = what
	}
}

// checkBills compares the usage of the accounts with the jobs that are completed.
func checkBills(t *testing.T, db *sqlite.DB) {
	t.Helper()
	ended, err := db.Jobs().Ended(t.Context(), time.Now().Add(time.Hour), "", 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	var billed usage.Counts
	for sender := range 3 {
		totals, err := db.Usage().Totals(t.Context(), fmt.Sprint("account", sender), "2000-01-01", "9999-12-31")
		if err != nil {
			t.Fatal(err)
		}
		for _, total := range totals {
			billed.Add(total.Counts)
		}
	}
	if n := int64(len(ended)); billed.JobsCompleted != n || billed.Cost != n*20_000_000 {
		t.Errorf("%d jobs are completed, and the usage has %+v", n, billed)
	}
}

// checkSurvivors compares the records with what was acknowledged, and the queue
// with the records.
func checkSurvivors(t *testing.T, db *sqlite.DB, said map[string]string) {
	t.Helper()
	open, leasedJobs := map[string]bool{}, map[string]bool{}
	for id, what := range said {
		j, err := db.Jobs().Get(t.Context(), id)
		if err != nil {
			t.Fatalf("%s was %s: %v", id, what, err)
		}
		switch {
		case what == "completed" && (j.Status != job.Completed || j.Result.Blob != job.ResultBlob(id, "n1")),
			what == "started" && j.Status == job.Pending:
			t.Errorf("%s was %s, and is %s", id, what, j.Status)
		}
		if !j.Status.Terminal() {
			open[id] = true
		}
		leasedJobs[id] = j.Status == job.Processing
	}
	if err := db.Queue().RecoverLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	backlog, err := db.Jobs().Backlog(t.Context(), job.VideoLane, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	received := map[string]bool{}
	for range backlog.Jobs {
		d, err := db.Queue().Receive(t.Context(), job.VideoLane, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		received[d.JobID()] = true
		delete(open, d.JobID())
		if !leasedJobs[d.JobID()] {
			continue
		}
		// It is suspected of the crash: the next one of its kind waits until it has
		// ended.
		if _, err := db.Jobs().Start(t.Context(), d.JobID(), "n1", time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := d.Complete(t.Context(), "n1", job.Result{Blob: job.ResultBlob(d.JobID(), "n1")}); err != nil {
			t.Fatal(err)
		}
		said[d.JobID()] = "completed"
	}
	if len(received) != backlog.Jobs || len(open) > 0 {
		t.Errorf("%d of %d open jobs are in the queue; not among them: %v", len(received), backlog.Jobs, open)
	}
	receiveNone(t, db)
	if err := db.Queue().RecoverLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const sharedLimit = 40

// acceptToLimit accepts jobs until one is refused, and prints them.
func acceptToLimit(ctx context.Context, db *sqlite.DB) error {
	for {
		j := newJob("job_"+rand.Text(), "acme")
		err := db.Jobs().Accept(ctx, j, sharedLimit)
		if fault.Is(err, fault.Limited) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(j.ID)
	}
}

func TestLimitIsExactAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	const processes = 3
	accepted := make(chan string, processes*sharedLimit)
	var all sync.WaitGroup
	for range processes {
		child, out := startChild(t, "limit", path)
		all.Go(func() {
			for out.Scan() {
				accepted <- out.Text()
			}
			if err := child.Wait(); err != nil {
				t.Errorf("child: %v", err)
			}
		})
	}
	all.Wait()
	if len(accepted) != sharedLimit {
		t.Errorf("%d jobs were accepted, want %d", len(accepted), sharedLimit)
	}
}

const keysMade = 10

// makeKeys creates keys and prints their secrets.
func makeKeys(ctx context.Context, db *sqlite.DB) error {
	for range keysMade {
		secret, err := credential.NewSecret(rand.Reader)
		if err != nil {
			return err
		}
		key, err := credential.NewKey(secret, "acme", "default", "", time.Now())
		if err != nil {
			return err
		}
		if err := db.Keys().CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
			return err
		}
		fmt.Println(secret)
	}
	return nil
}

// TestKeysOfAnotherProcessWorkAtOnce creates keys in one process while another
// serves jobs, as the command line does beside the server.
func TestKeysOfAnotherProcessWorkAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	db := openAt(t, path)
	stop := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		// The server is busy, but leaves gaps for other writers.
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			if err := db.Jobs().Accept(t.Context(), newJob(fmt.Sprintf("job_%d", i), "acme"), 0); err != nil {
				t.Errorf("accept: %v", err)
				return
			}
		}
	})
	child, out := startChild(t, "keys", path)
	made := 0
	for out.Scan() {
		made++
		if _, err := db.Keys().FindKey(t.Context(), credential.HashOf(out.Text())); err != nil {
			t.Errorf("find the key that was just made: %v", err)
		}
	}
	if err := child.Wait(); err != nil {
		t.Errorf("child: %v", err)
	}
	close(stop)
	serving.Wait()
	if made != keysMade {
		t.Errorf("%d keys were made, want %d", made, keysMade)
	}
}

func TestJobOfAnotherProcessIsReceived(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cutroom.db")
	db := openAt(t, path)
	got := make(chan error, 1)
	ctx := patience.Context(t)
	go func() {
		_, err := db.Queue().Receive(ctx, job.VideoLane, time.Hour)
		got <- err
	}()
	child, out := startChild(t, "accept one", path)
	for out.Scan() {
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/budget/budgettest"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/servertest"
)

var crashSeed = flag.Uint64("crash-seed", 0, "seed of TestJobsSurviveKills; 0 means random")

const (
	// kills is the minimum number of kills. There are more if too few runs were interrupted. Every run of the test
	// kills at different times, so several short runs find as much as a long one.
	kills = 6
	// load is the maximum number of jobs waiting or running.
	load = 6
)

func TestJobsSurviveKills(t *testing.T) {
	t.Parallel()
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("to repeat: -run TestJobsSurviveKills -crash-seed %d", seed)
	c := &crash{t: t, data: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), jobs: map[string]*crashJob{}}
	settings := []string{"CUTROOM_WORKERS=2", "CUTROOM_CATALOG=" + smallPictures(t)}
	c.calibrate(settings)
	began, budgets := time.Now(), c.setBudgets()

	for kill := 0; kill < kills || c.tooLight() && kill < 10*kills; kill++ {
		server, err := program.Launch(c.data, settings...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Kill)
		if kill%3 == 2 {
			// Kill some servers while they are recovering from the previous kill.
			time.Sleep(time.Duration(c.random.IntN(400)) * time.Millisecond)
		} else {
			c.serve(server)
		}
		server.Kill()
		eventually(t, "the engine's programs are gone with the server",
			func() bool { return len(processesOn(t, c.data)) == 0 })
		c.countInterruptions()
		if t.Failed() {
			t.Fatalf("after kill %d of a server that logged\n%s", kill+1, tail(server.Log()))
		}
	}

	server := start(t, c.data, settings...)
	c.checkBlobsAreKnown(server.Client())
	c.awaitAll(server.Client())
	stop(t, server)
	// The sweep at startup deletes files that ended jobs no longer need.
	server = start(t, c.data, settings...)
	c.checkResults(server.Client())
	c.checkFolder()
	used := c.checkBills(server)
	stop(t, server)
	c.checkBudgets(budgets, began, used)
}

// smallPictures returns a catalog that has prices, and whose results are so small that many runs fit into the test.
func smallPictures(t *testing.T) string {
	t.Helper()
	small := strings.NewReplacer("1088x624", "160x90", "1280x704", "160x90", "832x480", "96x54")
	return save(t, []byte(withPrices(small.Replace(string(defaultCatalog(t))))))
}

// checkBills checks that the usage contains every job exactly once, and the cost of every completed
// job, even if the job's id never reached the client.
func (c *crash) checkBills(server *servertest.Server) sums {
	jobs, used := ofJobs(c.t, server.Client()), ofUsage(c.t, server, servertest.Key, "")
	if jobs.completed == 0 || jobs.text() != used.text() {
		c.t.Errorf("the usage has %s, and the records %s", used.text(), jobs.text())
	}
	return used
}

func (c *crash) budgets(do func(*sqlite.Budgets) error) {
	c.t.Helper()
	clock, err := boottime.Open()
	if err != nil {
		c.t.Fatal(err)
	}
	records, err := sqlite.Open(bounded(c.t), filepath.Join(c.data, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := errors.Join(do(records.Budgets(clock)), records.Close()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crash) setBudgets() (all []budget.Budget) {
	c.budgets(func(b *sqlite.Budgets) error {
		var failed error
		for _, unit := range []budget.Unit{budget.Cost, budget.Jobs} {
			large := budget.Budget{
				ID: budget.ID{Account: "dev", Period: budget.Month, Unit: unit}, Limit: 1e15,
			}
			failed = errors.Join(failed, b.Set(bounded(c.t), audit.Operator(time.Now()), large))
			all = append(all, large)
		}
		return failed
	})
	return all
}

// checkBudgets checks that the budgets' used amounts match the jobs' cost and number.
func (c *crash) checkBudgets(all []budget.Budget, since time.Time, billed sums) {
	c.budgets(func(b *sqlite.Budgets) error {
		ofCost, err := budgettest.UsedSince(bounded(c.t), b, all[0], since)
		if err != nil {
			return err
		}
		ofJobs, err := budgettest.UsedSince(bounded(c.t), b, all[1], since)
		cost := new(big.Rat).Mul(&billed.cost, big.NewRat(1e9, 1)).Num()
		if !cost.IsInt64() || ofCost != cost.Int64() || ofJobs != int64(billed.completed) {
			c.t.Errorf("%d and %d of the budgets are used, and the usage has %s", ofCost, ofJobs, billed.text())
		}
		return err
	})
}

type crash struct {
	t      *testing.T
	data   string
	random *rand.Rand
	// life is the maximum time that a server runs under load. It is long enough for some runs to
	// end, and short enough to interrupt others.
	life      time.Duration
	submitted atomic.Int64

	mu   sync.Mutex
	jobs map[string]*crashJob
}

type crashJob struct {
	valid bool
	// interruptions counts the runs that were ended by a kill. nonce identifies the last run.
	interruptions int
	nonce         string
	// ended is the job's final state. sum is the SHA-256 of the result when first downloaded.
	ended servertest.Job
	sum   string
}

func (c *crash) calibrate(settings []string) {
	server := start(c.t, c.t.TempDir(), settings...)
	begun := time.Now()
	made, err := server.Client().Submit(bounded(c.t), "gen-2.1", c.form("tiny.mp4", fixtures.tiny))
	if err == nil {
		made, err = server.Client().Await(bounded(c.t), made.ID, nil)
	}
	if err != nil || made.Status != "completed" {
		c.t.Fatalf("%+v, %v", made, err)
	}
	c.life = min(max(4*time.Since(begun), 500*time.Millisecond), 4*time.Second)
	stop(c.t, server)
}

func (c *crash) form(name string, content []byte) servertest.Form {
	return servertest.Form{servertest.File("data", name, content), servertest.Text("prompt", "film noir")}
}

func (c *crash) serve(server *servertest.Server) {
	if err := server.Ready(bounded(c.t)); err != nil {
		c.t.Fatal(err)
	}
	c.checkBlobsAreKnown(server.Client())
	ctx, end := context.WithTimeout(c.t.Context(), time.Duration(c.random.Int64N(int64(c.life))))
	defer end()
	var clients sync.WaitGroup
	defer clients.Wait()
	for range 2 {
		clients.Go(func() { c.submitJobs(ctx, server.Client()) })
		clients.Go(func() { c.uploadSlowly(ctx, server.Client()) })
	}
	clients.Go(func() { c.readJobs(ctx, server.Client()) })
	<-ctx.Done()
	server.Kill()
}

func (c *crash) submitJobs(ctx context.Context, client *servertest.Client) {
	for ctx.Err() == nil {
		if c.unended() >= load {
			clock.Wait(ctx, 20*time.Millisecond)
			continue
		}
		model, valid, form := "gen-2.1", true, c.form("tiny.mp4", fixtures.tiny)
		// Cycle through the kinds of jobs, because a slow machine submits only a few.
		switch c.submitted.Add(1) % 5 {
		case 1:
			form, valid = c.form("truncated.mp4", fixtures.truncated), false
		case 2:
			model, form = "gen-image-2", c.form("picture.png", fixtures.picture)
		case 3:
			form = c.form("long.mp4", fixtures.long)
		}
		// Only a kill may end this request, not the end of the load.
		made, err := client.Submit(bounded(c.t), model, form)
		if err != nil {
			c.mayFail(ctx, "submit", err)
			continue
		}
		c.mu.Lock()
		c.jobs[made.ID] = &crashJob{valid: valid}
		c.mu.Unlock()
	}
}

func (c *crash) uploadSlowly(ctx context.Context, client *servertest.Client) {
	const size = 256 << 20
	content := io.MultiReader(bytes.NewReader(fixtures.tiny), slowly{})
	_, err := client.Submit(bounded(c.t), "gen-2.1", servertest.Form{{Name: "data", FileName: "clip.mp4", Content: content,
		Size: size}})
	c.mayFail(ctx, "upload", err)
}

// slowly is an endless file of zeros that is read at a few megabytes per second.
type slowly struct{}

func (slowly) Read(p []byte) (int, error) {
	time.Sleep(5 * time.Millisecond)
	return zeros{}.Read(p[:min(len(p), 32<<10)])
}

func (c *crash) readJobs(ctx context.Context, client *servertest.Client) {
	for clock.Wait(ctx, 20*time.Millisecond) {
		for _, id := range c.ids(func(j *crashJob) bool { return !j.ended.Ended() }) {
			now, err := client.Job(ctx, id)
			if err != nil {
				c.mayFail(ctx, "read "+id, err)
				return
			}
			var sum string
			if now.Status == "completed" {
				result, err := client.Content(ctx, id)
				if err != nil {
					c.mayFail(ctx, "download "+id, err)
					return
				}
				sum = sha256Of(result.Body)
			}
			c.mu.Lock()
			if j := c.jobs[id]; now.Ended() {
				j.ended, j.sum = now, sum
			}
			c.mu.Unlock()
		}
	}
}

// mayFail fails the test unless a kill explains the request's error.
func (c *crash) mayFail(ctx context.Context, what string, err error) {
	var failure *servertest.StatusError
	if errors.As(err, &failure) && failure.Status == 429 {
		return
	}
	if ctx.Err() == nil || failure != nil {
		c.t.Errorf("%s: %v", what, err)
		clock.Wait(ctx, time.Second)
	}
}

// countInterruptions reads a copy of the killed server's records, so that the originals do not change.
func (c *crash) countInterruptions() {
	c.t.Helper()
	folder := c.t.TempDir()
	for _, name := range []string{"cutroom.db", "cutroom.db-wal"} {
		content, err := os.ReadFile(filepath.Join(c.data, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), content, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.t.Fatal(err)
		}
	}
	ctx := bounded(c.t)
	records, err := sqlite.Open(ctx, filepath.Join(folder, "cutroom.db"), sqlite.Options{Now: time.Now})
	if err != nil {
		c.t.Fatal(err)
	}
	defer records.Close()
	for _, id := range c.ids(nil) {
		record, err := records.Jobs().Get(ctx, id)
		if fault.Is(err, fault.NotFound) {
			c.t.Errorf("job %s was accepted and is lost", id)
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		j := c.jobs[id]
		if record.Status == job.Processing && record.Nonce != "" && record.Nonce != j.nonce {
			j.interruptions, j.nonce = j.interruptions+1, record.Nonce
		}
		// The record still counts the latest interruption as a run. The next start removes it from the count.
		known := j.interruptions
		if record.Nonce != "" {
			known--
		}
		if want := j.interruptions - min(known, job.FreeCrashes); !record.Status.Terminal() && record.Runs != want {
			c.t.Errorf("job %s has %d runs, want %d, and was interrupted %d times", id, record.Runs, want, j.interruptions)
		}
	}
}

// awaitAll checks that every job completes unless it was interrupted too often.
func (c *crash) awaitAll(client *servertest.Client) {
	outcomes := map[string]int{}
	interruptions := 0
	for _, id := range c.ids(nil) {
		ended, err := client.Await(bounded(c.t), id, nil)
		if err != nil {
			c.t.Errorf("job %s: %v", id, err)
			continue
		}
		j := c.jobs[id]
		if j.ended.Ended() && (j.ended.Status != ended.Status || j.ended.CompletedAt != ended.CompletedAt) {
			c.t.Errorf("job %s had ended as %+v and became %+v", id, j.ended, ended)
		}
		j.ended = ended
		outcome, want := ended.Status, "completed"
		if ended.Error != nil {
			outcome = ended.Error.Code
		}
		switch {
		case j.interruptions == job.MaxRuns+job.FreeCrashes:
			want = string(job.WorkerLost)
		case !j.valid:
			want = string(job.InvalidInput)
		}
		if outcome != want {
			c.t.Errorf("job %s (valid input: %t, %d interruptions) ended as %s, want %s", id, j.valid, j.interruptions, outcome,
				want)
		}
		outcomes[outcome]++
		interruptions += j.interruptions
	}
	c.t.Logf("%d interrupted runs, jobs: %v", interruptions, outcomes)
	if c.tooLight() || outcomes["completed"] < kills/4 {
		c.t.Errorf("the load was too light to prove anything")
	}
}

// tooLight reports whether the load was too light: too few runs were interrupted, or some kind of job was never
// accepted.
func (c *crash) tooLight() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	interruptions, valid := 0, 0
	for _, j := range c.jobs {
		interruptions += j.interruptions
		if j.valid {
			valid++
		}
	}
	return interruptions < kills/2 || valid < kills/4 || valid == len(c.jobs)
}

// checkResults checks that every completed job has exactly one result, which can be played and never changes.
func (c *crash) checkResults(client *servertest.Client) {
	ctx := bounded(c.t)
	for _, id := range c.ids(func(j *crashJob) bool { return j.ended.Status == "completed" }) {
		first, err := client.Content(ctx, id)
		if err != nil {
			c.t.Errorf("download %s: %v", id, err)
			continue
		}
		again, err := client.Content(ctx, id)
		if err != nil || !bytes.Equal(first.Body, again.Body) {
			c.t.Errorf("the second download of %s differs: %v", id, err)
		}
		sum := sha256Of(first.Body)
		if tag := first.Header.Get("ETag"); tag != `"`+sum+`"` {
			c.t.Errorf("the bytes of %s have the SHA-256 %s and the ETag %s", id, sum, tag)
		}
		if before := c.jobs[id].sum; before != "" && before != sum {
			c.t.Errorf("the result of %s is not the one that was downloaded before", id)
		}
		probe(c.t, first.Body)
		files := slices.DeleteFunc(filesIn(c.t, filepath.Join(c.data, "blobs", "jobs", id)), isThumbnails)
		if len(files) != 1 {
			c.t.Errorf("job %s has the files %v, want only its result and thumbnails", id, files)
		}
	}
}

func isThumbnails(path string) bool { return strings.HasPrefix(filepath.Base(path), "thumbnails-") }

func (c *crash) checkBlobsAreKnown(client *servertest.Client) {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.data, "blobs", "jobs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	for _, entry := range entries {
		if _, err := client.Job(bounded(c.t), entry.Name()); err != nil {
			c.t.Errorf("blobs of %s, which have no record: %v", entry.Name(), err)
		}
	}
}

// checkFolder checks that the blob folder contains only results and thumbnails of completed jobs,
// including jobs whose ids never reached the client.
func (c *crash) checkFolder() {
	for _, file := range filesIn(c.t, filepath.Join(c.data, "blobs")) {
		if strings.HasPrefix(file, ".") {
			continue // the folder's marker file, and blobs that were set aside
		}
		if parts := strings.Split(file, string(filepath.Separator)); len(parts) != 3 || parts[0] != "jobs" ||
			!strings.HasPrefix(parts[2], "result-") && !isThumbnails(parts[2]) {
			c.t.Errorf("left in the blob folder: %s", file)
		} else if j := c.jobs[parts[1]]; j != nil && j.ended.Status != "completed" {
			c.t.Errorf("job %s has %s and is %s", parts[1], parts[2], j.ended.Status)
		}
	}
	if left := filesIn(c.t, filepath.Join(c.data, "scratch")); len(left) > 0 {
		c.t.Errorf("left in the scratch folder: %v", left)
	}
}

func (c *crash) ids(condition func(*crashJob) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id, j := range c.jobs {
		if condition == nil || condition(j) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (c *crash) unended() int { return len(c.ids(func(j *crashJob) bool { return !j.ended.Ended() })) }

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

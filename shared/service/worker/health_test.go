package worker_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/disktest"
)

// Runs that fail while the engine is unhealthy are not counted.
func TestUnhealthyEngineLeavesJobsToOthers(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	var there atomic.Bool
	asked := make(chan struct{}, 100)
	s.start(succeed, func(c *worker.Config) {
		c.EngineHealth = func(context.Context) error {
			if there.Load() {
				return nil
			}
			asked <- struct{}{}
			return errors.New("the device is lost")
		}
	})
	first := s.submit("one", 0)
	await.Receive(t, "asked", asked)
	stopOther := s.start(succeed)
	s.wantCompleted(first)
	stopOther()
	second := s.submit("two", 0)
	there.Store(true)
	s.wantCompleted(second)
}

func TestWorkerWithOverdueJobIsUnhealthyAndUnprotected(t *testing.T) {
	t.Parallel()
	s, deaf, g := newFixture(t), make(chan struct{}), newGuard()
	var ahead atomic.Int64
	begun := make(chan struct{})
	stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		close(begun)
		<-deaf
		return succeed(ctx, spec, progress)
	}, func(c *worker.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c.Guard, c.GuardEvery = g, 50*time.Millisecond
	})
	s.submit("one", 0)
	await.Receive(t, "begun", begun)
	if s.worker.Stuck() {
		t.Error("stuck with a new job")
	}
	ahead.Store(int64(job.MaxAge + 2*time.Minute))
	if !s.worker.Stuck() {
		t.Error("not stuck with a job that is long overdue")
	}
	await.Until(t, "the stuck worker is not protected", func() bool { return !g.isBusy() })
	close(deaf)
	stop()
	if s.worker.Stuck() {
		t.Error("stuck without a job")
	}
}

type ran struct {
	mu   sync.Mutex
	runs []worker.Run
}

func (r *ran) Ran(run worker.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, run)
}

func TestObserverReceivesRuns(t *testing.T) {
	t.Parallel()
	s, observed := newFixture(t), &ran{}
	first := true
	stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		if first {
			first = false
			return errors.New("the device fell off the bus")
		}
		progress(engine.Progress{Fraction: 1, Stage: "denoise", Took: 7 * time.Second})
		return succeed(ctx, spec, progress)
	}, func(c *worker.Config) { c.Observer = observed })
	s.awaitEnd(s.submit("one", 3*time.Second))
	s.awaitEnd(s.submit("broken", 0))
	stop()
	type end struct {
		number  int
		outcome worker.Outcome
		code    job.Code
	}
	var got []end
	for _, r := range observed.runs {
		got = append(got, end{r.Number, r.Outcome, r.Code})
		if r.Lane != job.VideoLane || r.Model != "gen-2.5" || r.Took < 0 {
			t.Errorf("observed %+v", r)
		}
	}
	want := []end{{1, worker.Repeated, job.EngineError}, {2, worker.Completed, ""}, {1, worker.Failed, job.InvalidInput}}
	if !slices.Equal(got, want) {
		t.Fatalf("observed %v, want %v", got, want)
	}
	if waited := observed.runs[0].Waited; waited < 3*time.Second {
		t.Errorf("a job submitted three seconds ago waited %v", waited)
	}
	if stages := slices.Sorted(maps.Keys(observed.runs[1].Stages)); !slices.Equal(
		stages, []string{"engine", "engine.denoise", "fetch", "probe", "store"},
	) {
		t.Errorf("got the stages %v", stages)
	}
	if took := observed.runs[1].Stages["engine.denoise"]; took != 7*time.Second {
		t.Errorf("the engine's stage took %v", took)
	}
	loads := s.worker.Loads()
	if len(loads) != 1 || loads[0].Lane != job.VideoLane || loads[0].Slots != 1 || loads[0].Busy != 0 ||
		loads[0].Prefetched != 0 ||
		loads[0].BusyTime < observed.runs[1].Stages["engine"] {
		t.Errorf("got the load %+v", loads)
	}
}

func TestFullScratchDiskFailsOnlyOneJob(t *testing.T) {
	t.Parallel()
	s, stage := newFixture(t), newStage()
	blobs := watch(s)
	disk := disktest.Small(t, "size=1m")
	first := s.submit("one", 0)
	large := s.submit(string(make([]byte, 2<<20)), 0)
	last := s.submit("three", 0)
	stop := s.start(stage.run, prefetch, func(c *worker.Config) { c.Folder, c.Blobs = disk, blobs })
	await.Receive(t, "stage.begun", stage.begun)
	// The first job writes its result only after the partly fetched large input has been removed.
	for name := range blobs.opened {
		if name == job.InputBlob(large, "data") {
			break
		}
	}
	await.Until(t, "the part of the large input is removed", func() bool {
		left, err := filepath.Glob(filepath.Join(disk, large+"-*"))
		return err == nil && len(left) == 0
	})
	close(stage.let)
	s.wantFailure(large, job.EngineError, "disk is full")
	s.wantCompleted(first, last)
	s.wantClean(stop)
}

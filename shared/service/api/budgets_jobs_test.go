package api_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

func (w *world) spends(unit budget.Unit, limit int64) budget.Counter {
	w.t.Helper()
	b := budget.Budget{ID: budget.ID{Account: "studio", Period: budget.Day, Unit: unit}, Limit: limit}
	if err := w.budgets.Set(w.t.Context(), audit.Operator(time.Now()), b); err != nil {
		w.t.Fatal(err)
	}
	return b.Counter(w.now())
}

func (w *world) used(c budget.Counter, want int64) {
	w.t.Helper()
	if used, err := w.budgets.Used(w.t.Context(), []budget.Counter{c}); err != nil || used[0] != want {
		w.t.Errorf("%d of %s are used, %v, want %d", used, c.Unit, err, want)
	}
}

func (w *world) overBudget(a answer) {
	w.t.Helper()
	if a.status != 429 || a.header.Get("Retry-After") == "" || a.header.Get("X-Should-Retry") != "false" ||
		!strings.HasSuffix(strings.TrimSpace(a.body), `,"code":"insufficient_quota"}`) {
		w.t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

func TestJobsUseBudgets(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	w.stopClock() // midnight might pass during the test
	spent := w.spends(budget.Cost, 2*21_300_000)
	submit := func() answer { return w.post("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x")) }
	first, second := w.accepted(submit()), w.accepted(submit())
	w.used(spent, 2*21_300_000)
	w.overBudget(submit())
	w.overBudget(w.generate("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x")))
	w.overBudget(w.sentWith("once", "/v1/jobs/gen-image-2", studio, upload("data", picture(t)), text("prompt", "x")))
	if a := w.post("gen-2.5", studio, upload("data", clip(t))); a.status != 200 {
		t.Errorf("an edit without a price: %d %s", a.status, a.body)
	}
	w.cancel(first, studio)
	w.used(spent, 21_300_000)
	w.start(second)
	done := job.Result{Blob: job.ResultBlob(second, "nonce"), MIME: "image/png", Size: 1, SHA256: "x"}
	if err := w.records.Complete(t.Context(), second, "nonce", done, w.now()); err != nil {
		t.Fatal(err)
	}
	w.used(spent, 21_300_000)
	retried := w.sentWith("once", "/v1/jobs/gen-image-2", studio, upload("data", picture(t)), text("prompt", "x"))
	w.accepted(retried) // after a rejection, the idempotency key can be used again
	w.overBudget(submit())
	w.overBudget(w.post("gen-image-2", w.secondKey(), upload("data", picture(t)), text("prompt", "x")))
	w.accepted(w.post("gen-image-2", rival, upload("data", picture(t)), text("prompt", "x")))
}

func TestUnknownLengthReservesTheMaximum(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	w.stopClock()
	spent := w.spends(budget.Cost, 1e12)
	cut := w.accepted(w.post("gen-clip", studio, upload("data", clip(t)[:600]), text("prompt", "x")))
	want := job.Most(w.record(cut), 5*time.Minute).Cost
	if w.record(cut).Request.Length == 0 && want != 15e9 {
		t.Errorf("got a maximum of %d", want)
	}
	w.used(spent, want)
	w.cancel(cut, studio)
	w.used(spent, 0)
}

// Edits that lengthen the result reserve the result's length, even if the header does not give the size.
func TestLongerResultReservesItsLength(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	w.stopClock()
	sizeless := []byte(clip(t))
	at := bytes.Index(sizeless, []byte("tkhd")) + 4 + 76
	clear(sizeless[at : at+8])
	for _, data := range []string{clip(t), string(sizeless)} {
		usual := w.record(w.accepted(w.post("gen-clip", studio, upload("data", data), text("prompt", "x")))).Request
		looped := w.record(w.accepted(w.post("gen-clip", studio, upload("data", data), text("prompt", "loop it 20 times")))).Request
		if usual.Length == 0 || looped.Length != 20*usual.Length || looped.Clip != usual.Length {
			t.Errorf("a loop of %s reserves %s, for a clip of %s", usual.Length, looped.Length, looped.Clip)
		}
	}
}

func TestJobBudgetCountsJobs(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	made := w.spends(budget.Jobs, 1)
	w.submit(studio)
	w.overBudget(w.post("gen-2.5", studio, upload("data", clip(t))))
	w.used(made, 1)
	_, err := w.jobs.Submit(t.Context(), job.Job{ID: "job_other", Account: "studio"}, 0, 0)
	if !fault.Is(err, fault.Exhausted) {
		t.Errorf("error %v", err)
	}
}

// Each warning becomes due only once, even if jobs are rejected.
func TestJobsTriggerBudgetWarnings(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	b := budget.Budget{
		ID: budget.ID{Account: "studio", Period: budget.Day, Unit: budget.Jobs}, Limit: 5, WarnURL: "https://example.com/budgets",
	}
	if err := w.budgets.Set(t.Context(), audit.Operator(w.now()), b); err != nil {
		t.Fatal(err)
	}
	warned := func(counter budget.Counter, want ...int) {
		t.Helper()
		var got []int
		for _, percent := range []int{80, 100} {
			of := budget.Warning{State: budget.State{Budget: budget.Budget{ID: counter.ID}, Window: counter.Window}, Percent: percent}
			switch _, err := w.budgets.Warning(t.Context(), of.EventID()); {
			case err == nil:
				got = append(got, percent)
			case !fault.Is(err, fault.NotFound):
				t.Fatal(err)
			}
		}
		due, err := w.hooks.Due(t.Context(), w.now(), 10, 10)
		if err != nil || !slices.Equal(got, want) || len(due) != len(want) {
			t.Fatalf("%d warnings, want %d; due: %v, %v", got, want, due, err)
		}
	}
	counter := b.Counter(w.now())
	for i := range 5 {
		w.submit(studio)
		warned(counter, map[int][]int{3: {80}, 4: {80, 100}}[i]...)
	}
	w.overBudget(w.post("gen-2.5", studio, upload("data", clip(t))))
	warned(counter, 80, 100)
}

// A warning becomes due if a limit falls below the usage, or if a job needs more than is left.
func TestLoweredLimitTriggersWarning(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	admin := w.newAdmin("studio")
	key := w.createdKey(w.askKey(admin, `{"label": "render farm"}`))
	put := func(limit string) {
		t.Helper()
		a := w.putBudget(admin, `{"key":"`+key.ID+`","period":"day","unit":"jobs","limit":`+limit+`,"warn_url":"https://example.com/"}`)
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	due := func(want int) {
		t.Helper()
		if due, err := w.hooks.Due(t.Context(), w.now(), 10, 10); err != nil || len(due) != want {
			t.Fatalf("warnings due: %v, %v; want %d", due, err, want)
		}
	}
	put("100")
	for range 4 {
		w.submit(key.Key)
	}
	due(0)
	put("5")
	due(1)
	put("3")
	due(2)
	put("2")
	due(2)
}

package api_test

import (
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// spends sets a budget of the account studio for today.
func (w *world) spends(unit budget.Unit, limit int64) budget.Counter {
	w.t.Helper()
	b := budget.Budget{ID: budget.ID{Account: "studio", Period: budget.Day, Unit: unit}, Limit: limit}
	if err := w.budgets.Set(w.t.Context(), audit.Operator(time.Now()), b); err != nil {
		w.t.Fatal(err)
	}
	return b.Counter(w.now())
}

// used checks what is settled and reserved on a counter.
func (w *world) used(c budget.Counter, want int64) {
	w.t.Helper()
	if used, err := w.budgets.Used(w.t.Context(), []budget.Counter{c}); err != nil || used[0] != want {
		w.t.Errorf("%d of %s are used, %v, want %d", used, c.Unit, err, want)
	}
}

// overBudget checks the answer to a request that a budget has too little left for.
func (w *world) overBudget(a answer) {
	w.t.Helper()
	if a.status != 429 || a.header.Get("Retry-After") == "" || a.header.Get("X-Should-Retry") != "false" ||
		!strings.HasSuffix(strings.TrimSpace(a.body), `,"code":"insufficient_quota"}`) {
		w.t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

// What a job can cost is reserved when it is accepted, and settled when it ends: jobs and
// synchronous edits alike.
func TestJobsTakeFromBudgets(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	w.stopClock() // midnight may be near
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
	w.accepted(retried) // a key stays free after a refusal
	w.overBudget(submit())
	w.overBudget(w.post("gen-image-2", w.secondKey(), upload("data", picture(t)), text("prompt", "x")))
	w.accepted(w.post("gen-image-2", rival, upload("data", picture(t)), text("prompt", "x")))
}

// Where the header does not tell how long a clip is, the longest that there can be is
// reserved.
func TestUnknownLengthsTakeTheMost(t *testing.T) {
	w := newWorld(t, setup{catalog: priced(t)})
	w.stopClock()
	spent := w.spends(budget.Cost, 1e12)
	cut := w.accepted(w.post("gen-clip", studio, upload("data", clip(t)[:600]), text("prompt", "x")))
	want := job.Most(w.record(cut), 5*time.Minute).Cost
	if w.record(cut).Request.Length == 0 && want != 15e9 {
		t.Errorf("the most is %d", want)
	}
	w.used(spent, want)
	w.cancel(cut, studio)
	w.used(spent, 0)
}

// Jobs are counted as such where a budget is of jobs, whatever they cost.
func TestBudgetsOfJobs(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock()
	made := w.spends(budget.Jobs, 1)
	w.submit(studio)
	w.overBudget(w.post("gen-2.5", studio, upload("data", clip(t))))
	w.used(made, 1)
	_, err := w.jobs.Submit(t.Context(), job.Job{ID: "job_other", Account: "studio"}, 0)
	if !fault.Is(err, fault.Exhausted) {
		t.Errorf("error %v", err)
	}
}

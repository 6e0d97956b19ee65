package batches_test

import (
	"testing"

	"cutroom/shared/domain/batch"
	"cutroom/shared/testkit/await"
)

// restart runs batches until a call is made. The process then crashes if dies is set. Otherwise it shuts down.
func (w *world) restart(dies bool) {
	before, _ := w.calls()
	stop := w.run()
	await.Until(w, "a call", func() bool { all, _ := w.calls(); return all > before })
	w.dead.Store(dies)
	stop()
	w.runner = w.newRunner()
}

// A batch that is only interrupted by shutdowns does not fail.
func TestBatchThatCrashesTheProcessFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := w.hold("acme")
	b := w.create("acme", lines(3))
	for range 7 {
		w.restart(false)
	}
	for range 5 {
		w.restart(true)
	}
	w.run()
	b = w.reaches(b, batch.Failed)
	if len(b.Errors) != 1 || b.Errors[0].Code != "internal_error" || b.Failed != 3 {
		t.Errorf("got %+v", b)
	}
	for id, failure := range w.results("acme", b.Failures) {
		if failure.Error == nil || failure.Error.Code != "batch_failed" {
			t.Errorf("%s: %+v", id, failure)
		}
	}
	close(release)
	w.reaches(w.create("acme", lines(3)), batch.Completed)
}

package batches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/clock"
	"cutroom/shared/service/gateway"
)

const (
	// watchEvery is how often a batch in progress is checked. Every keysEvery-th check also checks its key.
	watchEvery = time.Second
	keysEvery  = 5
	// The default times for which running calls may continue after the batch ends. shortGrace applies if other
	// accounts are waiting for turns.
	grace, shortGrace = time.Minute, 3 * time.Second
	// maxFailures limits the attempts at a call that fails at the model server.
	maxFailures = 3
	fullPause   = 5 * time.Second
)

// The reasons why a batch makes no more calls.
var (
	errExpired   = errors.New("batches: the batch has expired")
	errCancelled = errors.New("batches: the batch was cancelled")
	errRevoked   = errors.New("batches: the key of the batch is no longer valid")
)

type answering struct {
	*Runner
	batch    batch.Batch
	route    catalog.Route
	who      atomic.Pointer[credential.Principal]
	recorder *recorder
	pace     *pace
	underWay chan struct{}
}

// answer makes a batch's remaining calls until its second context ends. Once all calls have been rejected for
// PauseAfter, it calls handOver.
func (r *Runner) answer(ctx, staying context.Context, handOver context.CancelCauseFunc, b batch.Batch) error {
	route, ok := gateway.BatchRoute(b.Endpoint)
	if !ok {
		return fmt.Errorf("the endpoint %q is unknown", b.Endpoint)
	}
	a := &answering{Runner: r, batch: b, route: route,
		pace: newPace(r.config.Calls), underWay: make(chan struct{}, r.config.Calls)}
	var err error
	if a.recorder, err = r.newRecorder(ctx, b); err != nil {
		return err
	}
	a.recorder.limit = a.storedBytes
	taking, stop := context.WithCancelCause(staying)
	defer stop(nil)
	if err := a.check(taking, stop, true); err != nil {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { a.watch(taking, stop, handOver) })
	err = a.makeCalls(ctx, taking)
	cause := context.Cause(taking)
	stop(nil)
	watching.Wait()
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return a.goOn(ctx, cause)
}

func (a *answering) storedBytes() int64 {
	if who := a.who.Load(); who != nil {
		return who.Tier.StoredBytes
	}
	return 0
}

func (a *answering) goOn(ctx context.Context, cause error) error {
	b := a.batch
	switch {
	case errors.Is(cause, errHandedOver):
		return nil // the batch continues later
	case errors.Is(cause, errCancelled):
		return nil // already recorded
	case errors.Is(cause, errRevoked):
		b.Status, b.CancellingAt = batch.Cancelling, a.now()
		b.Errors = []batch.Error{{Code: "key_revoked", Message: "The API key that created the batch is no longer valid."}}
	case errors.Is(cause, errExpired):
		b.Status, b.Outcome, b.FinalizingAt = batch.Finalizing, batch.Expired, a.now()
	default:
		b.Status, b.Outcome, b.FinalizingAt = batch.Finalizing, batch.Completed, a.now()
	}
	return a.change(ctx, batch.InProgress, b)
}

// makeCalls makes the calls until its second context ends, and then waits until all results are stored.
func (a *answering) makeCalls(ctx, taking context.Context) error {
	// Even at shutdown, cancel calls with a cause, which determines whether they are billed.
	doing, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	defer context.AfterFunc(ctx, func() { cut(a.causeAtStop(ctx, taking)) })()
	defer context.AfterFunc(taking, func() { a.cutLater(doing, taking, cut) })()
	// Make no calls while results cannot be stored.
	making, stop := context.WithCancel(taking)
	defer stop()
	results := make(chan result)
	kept := make(chan error, 1)
	go func() {
		err := a.recorder.run(ctx, results)
		stop()
		for range results { // if results cannot be stored, their calls are repeated later
		}
		kept <- err
	}()
	err := a.feed(doing, making, results)
	close(results)
	return errors.Join(err, <-kept)
}

func (a *answering) cutLater(doing, taking context.Context, cut context.CancelCauseFunc) {
	ends := endOf(taking) != ""
	most := a.config.Grace
	if ends {
		most = min(most, grace)
	}
	for waited := time.Duration(0); waited < most; waited += watchEvery {
		if ends && waited >= shortGrace && a.turns.OthersWait(a.batch.Account) {
			break
		}
		if !clock.Wait(doing, watchEvery) {
			return
		}
	}
	cut(causeOfCut(taking))
}

// endOf returns the outcome of a batch that makes no more calls, or "" if it continues later.
func endOf(taking context.Context) (outcome batch.Status) {
	switch cause := context.Cause(taking); {
	case errors.Is(cause, errExpired):
		return batch.Expired
	case errors.Is(cause, errCancelled), errors.Is(cause, errRevoked):
		return batch.Cancelled
	}
	return ""
}

func causeOfCut(taking context.Context) error {
	if endOf(taking) != "" {
		return gateway.ErrGivenUp
	}
	return context.Canceled
}

// causeAtStop is like causeOfCut, but for a shutdown. It reads the batch again, because it may have just been
// cancelled.
func (a *answering) causeAtStop(ctx, taking context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if b, err := a.config.Store.Get(ctx, a.batch.Account, a.batch.ID); err == nil && b.Status != batch.InProgress {
		return gateway.ErrGivenUp
	}
	return causeOfCut(taking)
}

// feed makes each of the input's calls in its own goroutine and waits for all of them.
func (a *answering) feed(doing, taking context.Context, results chan<- result) (err error) {
	in, err := a.openInput(doing, a.batch)
	if err != nil {
		return err
	}
	defer in.close()
	taking, stop := context.WithCancel(taking)
	defer stop()
	unread := make(chan error, cap(a.underWay))
	var calls sync.WaitGroup
	defer func() {
		calls.Wait()
		close(unread)
		err = errors.Join(err, <-unread)
	}()
	for {
		at, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the input: %w", err)
		}
		if a.recorder.has(at.call) {
			continue
		}
		select {
		case a.underWay <- struct{}{}:
		case <-taking.Done():
			return nil
		}
		calls.Go(func() {
			made, ok, err := a.call(doing, taking, at)
			if ok {
				if made.answer.Cut { // endOf returns "" for a shutdown right after a cancellation
					made.refusal = unanswered(cmp.Or(endOf(taking), batch.Cancelled))
				}
				results <- made
			}
			if err != nil {
				stop()
				unread <- err // each call sends at most one error, and no call starts after it
			}
			<-a.underWay
		})
	}
}

// call makes one call, and repeats it while it is temporarily rejected. ok is false if the call was
// cut off and will be made later. A waiting call does not keep its line in memory.
func (a *answering) call(doing, taking context.Context, at place) (made result, ok bool, err error) {
	for failures := 0; ; {
		made, ok, err = a.tryCall(doing, taking, at)
		if !ok || err != nil {
			return made, false, err
		}
		switch answer := made.answer; {
		case answer.Cut && doing.Err() != nil:
			a.pace.end()
			return made, errors.Is(context.Cause(doing), gateway.ErrGivenUp), nil
		case answer.Cut:
			a.pace.cut()
		case answer.Status == http.StatusTooManyRequests, answer.Status >= 500 && answer.RetryAfter > 0:
			a.pace.refused(answer.RetryAfter)
		case answer.Status >= 500:
			a.pace.end()
			if failures++; failures == maxFailures {
				return made, true, nil
			}
			if !clock.Wait(taking, firstRetry<<failures) {
				return made, false, nil
			}
		default:
			a.pace.took()
			return made, true, nil
		}
	}
}

// tryCall makes a call when the pace permits. While the account's storage is full, it returns a 429 instead. ok
// is false if no more calls may be made. Otherwise, the caller must report the call's end to the pace.
func (a *answering) tryCall(doing, taking context.Context, at place) (made result, ok bool, err error) {
	if !a.pace.begin(taking) {
		return made, false, nil
	}
	fits, err := a.recorder.space.fits(taking, a.storedBytes())
	if err == nil && !fits {
		return result{answer: &gateway.BatchResponse{Status: http.StatusTooManyRequests, RetryAfter: fullPause}}, true, nil
	}
	if err == nil {
		err = a.withLine(taking, a.calling, a.batch, at, func(line []byte) {
			if !a.turns.Take(taking, a.batch.Account) {
				return
			}
			defer a.turns.Release(a.batch.Account)
			one := parsed(line)
			answer := a.config.Gateway.BatchCall(doing, *a.who.Load(), a.route, one.body)
			made, ok = result{number: at.call, customID: one.customID, answer: &answer}, true
		})
	}
	if !ok {
		a.pace.end()
	}
	if taking.Err() != nil {
		err = nil // the error is the context's, not the blob's
	}
	return made, ok, err
}

// watch stops new calls when the batch expires or is cancelled, or when its key becomes invalid.
func (a *answering) watch(taking context.Context, stop, handOver context.CancelCauseFunc) {
	ticker := time.NewTicker(a.config.Watch)
	defer ticker.Stop()
	for n := 1; ; n++ {
		woken := a.woken()
		select {
		case <-taking.Done():
			return
		case <-woken:
		case <-ticker.C:
		}
		if err := a.check(taking, stop, n%keysEvery == 0); err != nil && taking.Err() == nil {
			a.config.Logger.Error("cannot read a batch", "batch", a.batch.ID, "error", err)
		}
		if a.config.PauseAfter > 0 && a.pace.refusedFor() >= a.config.PauseAfter {
			handOver(errHandedOver)
		}
	}
}

func (a *answering) check(ctx context.Context, stop context.CancelCauseFunc, atKey bool) error {
	b, err := a.config.Store.Get(ctx, a.batch.Account, a.batch.ID)
	switch {
	case err != nil:
		return err
	case b.Status != batch.InProgress:
		stop(errCancelled)
		return nil
	case a.config.Settled() && !a.config.Now().Before(b.ExpiresAt):
		stop(errExpired)
		return nil
	case !atKey:
		return nil
	}
	who, err := a.config.Keys.Holder(ctx, a.batch.Account, a.batch.Key)
	if fault.Is(err, fault.Unauthorized) {
		stop(errRevoked)
		return nil
	}
	if err == nil {
		a.who.Store(&who)
	}
	return err
}

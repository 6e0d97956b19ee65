package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/client"
)

const skipped = "skipped"

// batch edits several inputs concurrently and prints the outcome of each. It continues after a
// failure unless all other inputs would also fail.
//
// Errors: [*BatchError]; the error that stopped the batch early.
func (e *editor) batch(ctx context.Context, edit client.Edit, inputs []string, atOnce int) error {
	if err := os.MkdirAll(e.order.Output, 0o777); err != nil {
		return err
	}
	outputs, err := e.outputs(ctx, edit, inputs)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	display := e.invocation.newDisplay(false)
	results := make([]result, len(inputs))
	var printing sync.Mutex
	var running errgroup.Group
	running.SetLimit(atOnce)
	for i, input := range inputs {
		running.Go(func() error {
			if ctx.Err() != nil {
				results[i] = result{Input: input, Model: outputs[i].model, Status: skipped, Error: "not begun"}
				return nil
			}
			tracker := display.track(filepath.Base(input))
			done, err := e.item(ctx, edit, input, outputs[i], tracker)
			tracker.end(err)
			if err != nil {
				done.Error = explain(err)
			}
			switch ExitCode(err) {
			case denied, unreachable: // all other inputs would fail in the same way
				stop(err)
			}
			printing.Lock()
			defer printing.Unlock()
			results[i] = done
			if e.invocation.JSON {
				return e.invocation.Print(done)
			}
			return nil
		})
	}
	printed := running.Wait()
	display.end()
	if err := errors.Join(printed, e.summary(results)); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return failures(results)
}

// failures returns a [*BatchError] if any result failed, and ErrUnchanged if any result is unchanged.
func failures(results []result) (err error) {
	count := 0
	for _, done := range results {
		if done.Error != "" {
			count++
		}
		err = cmp.Or(err, checkChanged(done.Changed, done.Notice))
	}
	if count == 0 {
		return err
	}
	return &BatchError{count, len(results)}
}

type target struct{ model, path string }

// outputs returns the model and the result path of each input. Inputs with the same base name get different paths.
func (e *editor) outputs(ctx context.Context, edit client.Edit, inputs []string) ([]target, error) {
	models := map[bool]string{}
	outputs := make([]target, len(inputs))
	taken := map[string]bool{}
	for i, input := range inputs {
		image := isImage(input)
		if models[image] == "" {
			resolved, err := e.resolve(ctx, edit, input)
			if err != nil {
				return nil, err
			}
			models[image] = resolved.Model
		}
		name := resultName(filepath.Base(input), models[image])
		if taken[name] {
			ending := filepath.Ext(name)
			whole := strings.TrimSuffix(resultName(filepath.Base(input)+ending, models[image]), ending)
			for n := 1; taken[name]; n++ {
				name = whole + ending
				if n > 1 {
					name = fmt.Sprintf("%s.%d%s", whole, n, ending)
				}
			}
		}
		taken[name] = true
		outputs[i] = target{models[image], filepath.Join(e.order.Output, name)}
	}
	return outputs, nil
}

func (e *editor) item(ctx context.Context, edit client.Edit, input string, to target,
	tracker *tracker) (result, error) {
	done := result{Input: input, Model: to.model, Status: client.Failed}
	if e.free(to.path) != nil {
		done.Status, done.Output = skipped, to.path
		return done, nil
	}
	data, err := source(input)
	if err != nil {
		return done, err
	}
	edit.Model, edit.Data = to.model, &data
	return e.edit(ctx, edit, input, to.path, tracker)
}

// summary prints the table of a batch. If all results have the same notice, it prints the notice only once.
func (e *editor) summary(results []result) error {
	if e.invocation.JSON {
		return nil // each result was printed when its edit ended
	}
	list := e.invocation.newList("INPUT", "STATUS", "JOB", "RESULT")
	for _, done := range results {
		status := done.Status
		if checkChanged(done.Changed, "") != nil {
			status = "unchanged"
		}
		if err := list.add(done, done.Input, status, cmp.Or(done.JobID, "-"),
			cmp.Or(done.Error, done.Output)); err != nil {
			return err
		}
	}
	if err := list.end(); err != nil {
		return err
	}
	reported := map[string]bool{}
	for _, done := range results {
		if key := done.Engine + strings.Join(done.Understood, ",") + done.Notice; !reported[key] {
			reported[key] = true
			e.report(done)
		}
	}
	e.reportCost(results)
	return nil
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"cutroom/shared/client"
	"cutroom/shared/domain/catalog"
)

// editor does edits from the upload to the result on disk.
type editor struct {
	session *Session
	client  *client.Client
	order   order
}

// result is what came of an edit.
type result struct {
	Input string `json:"input,omitempty"`
	// Output is where the result is, "" where there is none.
	Output string `json:"output,omitempty"`
	Status string `json:"status"`
	JobID  string `json:"job_id,omitempty"`
	Model  string `json:"model"`
	Seed   uint32 `json:"seed"`
	Error  string `json:"error,omitempty"`
}

// single does one edit and prints what came of it.
func (e *editor) single(ctx context.Context, edit client.Edit, input string) error {
	edit, err := e.resolve(ctx, edit, input)
	if err != nil {
		return err
	}
	output := e.order.Output
	if info, err := os.Stat(output); err == nil && info.IsDir() {
		output = filepath.Join(output, filepath.Base(e.beside(input, edit.Model)))
	}
	if output == "" {
		output = e.beside(input, edit.Model)
	}
	if !e.order.Detach {
		if err := e.free(output); err != nil {
			return err
		}
	}
	display := e.session.newDisplay(true)
	tracker := display.track(first(filepath.Base(output), edit.Model))
	done, err := e.edit(ctx, edit, input, output, tracker)
	tracker.end(err)
	display.end()
	if err != nil {
		return err
	}
	switch {
	case e.session.JSON && output == "-" && !e.order.Detach:
		return nil // stdout has the result
	case e.session.JSON:
		return e.session.Print(done)
	case e.order.Detach:
		return e.session.printLine(done.JobID)
	case output != "-":
		return e.session.printPath(output)
	}
	return nil
}

// resolve chooses the model where none is named, and returns its canonical id,
// which results are named after.
func (e *editor) resolve(ctx context.Context, edit client.Edit, input string) (client.Edit, error) {
	if edit.Model == "" {
		kind := catalog.Edit
		if isImage(input) {
			kind = catalog.Image
		}
		var err error
		if edit.Model, err = e.session.latest(kind); err != nil {
			return edit, err
		}
	}
	id, err := e.client.ResolveModel(ctx, edit.Model)
	if err != nil {
		return edit, err
	}
	if !modelForm.MatchString(id) {
		return edit, fmt.Errorf("the server says that the model %s is %q, which is no model's id", edit.Model, id)
	}
	edit.Model = id
	return edit, nil
}

// modelForm is what a canonical id looks like (docs/contract/media.md#models). What
// a result is called must not lead to another folder than the one it was asked for
// in, whatever a server answers.
var modelForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)

// beside is where a result goes by itself.
func (e *editor) beside(input, model string) string {
	if isFileID(input) || input == "" {
		return resultName(first(input, model), model) // nowhere is beside it
	}
	return filepath.Join(filepath.Dir(input), resultName(filepath.Base(input), model))
}

// resultName is what a result is called: by what was edited, and by the model.
func resultName(input, model string) string {
	kind := ".mp4"
	if isImage(input) {
		kind = ".png"
	}
	stem := strings.TrimSuffix(input, filepath.Ext(input))
	if input == model || isFileID(input) {
		stem = input // no file's name: a dot in it is part of it
	}
	if stem == model {
		return stem + kind
	}
	return stem + "." + model + kind
}

// free reports a result that is there already, and must not be replaced.
func (e *editor) free(output string) error {
	if output == "-" || e.order.Force {
		return nil
	}
	if _, err := os.Lstat(output); err == nil {
		return fmt.Errorf("%s: %w", output, fs.ErrExist)
	}
	return nil
}

// edit does one edit.
//
// Errors: those of the client; [*JobError]; [*InterruptedError]; of the disk.
func (e *editor) edit(ctx context.Context, edit client.Edit, input, output string, tracker *tracker) (result, error) {
	done := result{Input: input, Model: edit.Model, Status: client.Failed}
	job, err := e.client.CreateJob(ctx, edit, tracker.uploading)
	if err != nil {
		return done, err
	}
	done.JobID, done.Status = job.ID, job.Status
	if e.order.Detach {
		return done, nil
	}
	if tracker.display.bars == nil {
		e.session.note("%s is the job %s", first(input, edit.Model), job.ID)
	}
	return e.await(ctx, done, output, tracker)
}

// await waits for a job and fetches its result.
func (e *editor) await(ctx context.Context, done result, output string, tracker *tracker) (result, error) {
	job, err := e.client.AwaitJob(ctx, done.JobID, tracker.editing)
	if errors.Is(err, context.Canceled) {
		return done, &InterruptedError{JobID: done.JobID}
	}
	if err != nil {
		return done, err
	}
	done.Status, done.Model, done.Seed = job.Status, job.Model, job.Seed
	if job.Status == client.Failed {
		return done, &JobError{job}
	}
	if err := e.fetch(ctx, job.ID, output, tracker); err != nil || output == "-" {
		return done, err
	}
	done.Output = output
	return done, nil
}

// fetch writes a job's result to a path, or to stdout.
//
// Errors: those of the client; of the disk; [*InterruptedError].
func (e *editor) fetch(ctx context.Context, id, output string, tracker *tracker) error {
	if output == "-" {
		return e.client.CopyContent(ctx, id, e.session.Out, tracker.downloading)
	}
	return downloadError(id, output, e.client.Download(ctx, id, output, tracker.downloading))
}

// download shows how far something is fetched to the place that was ordered, and
// prints where it is; told is what --json tells.
func (e *editor) download(told any, fetch func(*tracker) error) error {
	output := e.order.Output
	if err := e.free(output); err != nil {
		return err
	}
	display := e.session.newDisplay(true)
	tracker := display.track(filepath.Base(output))
	err := fetch(tracker)
	tracker.end(err)
	display.end()
	switch {
	case err != nil || output == "-": // stdout has the result
		return err
	case e.session.JSON:
		return e.session.Print(told)
	}
	return e.session.printPath(output)
}

// downloadError says how to go on after a download that broke off.
func downloadError(id, output string, err error) error {
	var refusal *client.Error
	var trouble *fs.PathError
	if errors.Is(err, context.Canceled) {
		return &InterruptedError{id, output}
	}
	if err == nil || errors.As(err, &refusal) || errors.As(err, &trouble) {
		return err
	}
	return fmt.Errorf("%w; \"cutroom jobs download %s -o %s\" goes on from there", err, id, output)
}

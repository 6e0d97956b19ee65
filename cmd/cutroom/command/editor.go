package command

import (
	"cmp"
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

type editor struct {
	invocation *Invocation
	client     *client.Client
	order      order
	// makesVideo means that the result is a video, even if the input is an image.
	makesVideo bool
}

type result struct {
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
	Status string `json:"status"`
	JobID  string `json:"job_id,omitempty"`
	Model  string `json:"model"`
	Seed   uint32 `json:"seed"`
	Error  string `json:"error,omitempty"`
	// Changed, Engine, Understood and Notice are copied from the job.
	Changed    *bool    `json:"changed,omitempty"`
	Engine     string   `json:"engine,omitempty"`
	Understood []string `json:"understood,omitzero"`
	Notice     string   `json:"notice,omitempty"`
	// Planned is nil if unknown.
	Planned *client.Planned `json:"planned,omitempty"`
	// Cost is an estimate, or nil if unknown. Bill is the actual cost of a completed edit.
	Cost *client.Cost `json:"estimated_cost,omitempty"`
	Bill *client.Cost `json:"cost,omitempty"`
}

func (e *editor) single(ctx context.Context, edit client.Edit, input string) error {
	edit, err := e.resolve(ctx, edit, input)
	if err != nil {
		return err
	}
	output, own, name := e.order.Output, kindOf(input), defaultOutput(input, edit)
	if e.makesVideo {
		own, name = ".mp4", strings.TrimSuffix(name, kindOf(input))+".mp4"
	}
	if info, err := os.Stat(output); err == nil && info.IsDir() {
		output = filepath.Join(output, filepath.Base(name))
	}
	if output == "" {
		output = name
	}
	if !e.order.Detach {
		if isFileID(input) && !e.makesVideo {
			own = ""
		}
		if err := checkFormat(output, own); err != nil {
			return err
		}
		if err := e.free(output); err != nil {
			return err
		}
	}
	display := e.invocation.newDisplay(true)
	tracker := display.track(cmp.Or(filepath.Base(output), edit.Model))
	done, err := e.edit(ctx, edit, input, output, tracker)
	tracker.end(err)
	display.end()
	if err != nil {
		return err
	}
	e.report(done)
	e.reportCost([]result{done})
	switch {
	case e.invocation.JSON && output == "-" && !e.order.Detach:
		// the result went to stdout
	case e.invocation.JSON:
		err = e.invocation.Print(done)
	case e.order.Detach:
		err = e.invocation.printLine(done.JobID)
	case output != "-":
		err = e.invocation.printPath(output)
	}
	return cmp.Or(err, checkChanged(done.Changed, done.Notice))
}

// checkChanged returns ErrUnchanged with the reason if a result is known to be unchanged.
func checkChanged(changed *bool, why string) error {
	if changed == nil || *changed {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnchanged, cmp.Or(strings.TrimPrefix(why, "Nothing was changed: "), "the engine gives no reason"))
}

// resolve sets the model to its canonical id. If no model is named, it chooses a model.
func (e *editor) resolve(ctx context.Context, edit client.Edit, input string) (client.Edit, error) {
	if edit.Model == "" {
		kind := catalog.Edit
		if isImage(input) {
			kind = catalog.Image
		}
		var err error
		if edit.Model, err = e.invocation.latest(kind); err != nil {
			return edit, err
		}
	}
	id, err := e.client.ResolveModel(ctx, edit.Model)
	if err != nil {
		return edit, err
	}
	if !modelForm.MatchString(id) {
		return edit, fmt.Errorf("the server returned the invalid id %[2]q for the model %[1]s", edit.Model, id)
	}
	edit.Model = id
	return edit, nil
}

// modelForm matches canonical ids (docs/contract/media.md#models). They become part of file names,
// so an id from a server must not be able to point to another folder.
var modelForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)

// defaultOutput returns the default path of a result: in the input's folder, with the name that the service would
// use. With an empty prompt, that name would be the same as the input's.
func defaultOutput(input string, edit client.Edit) string {
	folder, prompt := "", edit.Fields["prompt"]
	if input != "" && !isFileID(input) {
		folder = filepath.Dir(input)
	}
	if prompt == "" {
		return filepath.Join(folder, resultName(cmp.Or(filepath.Base(input), edit.Model), edit.Model))
	}
	source := ""
	if input != "" {
		source = filepath.Base(input)
	}
	return filepath.Join(folder, named(edit.Model, source, prompt)+kindOf(input))
}

func kindOf(input string) string {
	if isImage(input) {
		return ".png"
	}
	return ".mp4"
}

func resultName(input, model string) string {
	kind := kindOf(input)
	stem := strings.TrimSuffix(input, filepath.Ext(input))
	if input == model || isFileID(input) {
		stem = input // not a file name, so the part after a dot is not an extension
	}
	if stem == model {
		return stem + kind
	}
	return stem + "." + model + kind
}

func (e *editor) free(output string) error {
	if output == "-" || e.order.Force {
		return nil
	}
	if _, err := os.Lstat(output); err == nil {
		return fmt.Errorf("%s: %w", output, fs.ErrExist)
	}
	return nil
}

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
		e.invocation.note("%s is the job %s", cmp.Or(input, edit.Model), job.ID)
	}
	return e.await(ctx, done, output, tracker)
}

func (e *editor) await(ctx context.Context, done result, output string, tracker *tracker) (result, error) {
	job, err := e.client.AwaitJob(ctx, done.JobID, tracker.editing)
	if errors.Is(err, context.Canceled) {
		return done, &InterruptedError{JobID: done.JobID}
	}
	if err != nil {
		return done, err
	}
	done.Status, done.Model, done.Seed = job.Status, job.Model, job.Seed
	done.Changed, done.Engine, done.Understood, done.Notice = job.Changed, job.Engine, job.Understood, job.Notice
	done.Planned, done.Cost, done.Bill = job.Planned, job.Cost, job.Bill
	if done.Planned == nil && job.Result != nil && job.Result.Width > 0 {
		done.Planned = &client.Planned{Width: job.Result.Width, Height: job.Result.Height}
	}
	if job.Status == client.Failed {
		return done, &JobError{job}
	}
	if err := e.fetch(ctx, job.ID, output, tracker); err != nil || output == "-" {
		return done, err
	}
	done.Output = output
	return done, nil
}

// report prints the result's size, the parts of the prompt that the engine followed, and its notice.
func (e *editor) report(done result) {
	if done.Planned != nil {
		e.invocation.note("the result is %s", done.Planned)
	}
	if len(done.Understood) > 0 {
		e.invocation.note("the %s engine followed: %s", done.Engine, strings.Join(done.Understood, ", "))
	}
	if done.Notice != "" && checkChanged(done.Changed, "") == nil { // otherwise, the error has the notice
		e.invocation.note("%s", done.Notice)
	}
}

// reportCost prints the total cost of edits to stderr if it is known.
func (e *editor) reportCost(results []result) {
	sum, currency := 0.0, ""
	for _, done := range results {
		if done.Cost != nil {
			sum, currency = sum+done.Cost.Amount, done.Cost.Currency
		}
	}
	if currency != "" {
		e.invocation.note("the cost is about %.6g %s at the service's prices", sum, currency)
	}
}

// fetch writes a job's result to a path, in the format given by its extension, or to stdout.
func (e *editor) fetch(ctx context.Context, id, output string, tracker *tracker) error {
	if output == "-" {
		return e.client.CopyContent(ctx, id, e.invocation.Out, tracker.downloading)
	}
	fetch := func(path string) error { return e.client.Download(ctx, id, path, tracker.downloading) }
	if arguments, ok := converted[strings.ToLower(filepath.Ext(output))]; ok {
		return downloadError(id, output, convert(ctx, id, output, arguments, fetch))
	}
	return downloadError(id, output, fetch(output))
}

// download downloads to the path of -o and prints that path. With --json, it prints the given document instead.
func (e *editor) download(document any, fetch func(*tracker) error) error {
	output := e.order.Output
	if err := e.free(output); err != nil {
		return err
	}
	display := e.invocation.newDisplay(true)
	tracker := display.track(filepath.Base(output))
	err := fetch(tracker)
	tracker.end(err)
	display.end()
	switch {
	case err != nil || output == "-": // the result went to stdout
		return err
	case e.invocation.JSON:
		return e.invocation.Print(document)
	}
	return e.invocation.printPath(output)
}

// downloadError explains how to resume an interrupted download.
func downloadError(id, output string, err error) error {
	var failure *client.Error
	var trouble *fs.PathError
	if errors.Is(err, context.Canceled) {
		return &InterruptedError{id, output}
	}
	if err == nil || errors.As(err, &failure) || errors.As(err, &trouble) {
		return err
	}
	return fmt.Errorf("%w; \"cutroom jobs download %s -o %s\" resumes the download", err, id, output)
}

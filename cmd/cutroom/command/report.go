package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"cutroom/shared/client"
)

// The exit codes (docs/cli.md, "Exit codes").
const (
	ok = iota
	failed
	usage
	denied
	notFound
	limited
	jobFailed
	unreachable
	damaged
	unchanged
	interrupted = 130
)

// UsageError is the error for an invalid command line. Its message says how to correct it.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// KeyError is the error for a server for which no key is known.
type KeyError struct{ URL string }

func (e *KeyError) Error() string {
	if IsLocal(e.URL) {
		return fmt.Sprintf("there is no key for %s: run this where \"cutroom dev\" was started, which keeps a key in "+
			".cutroom, or set CUTROOM_DATA to its data folder, or CUTROOM_API_KEY", e.URL)
	}
	return fmt.Sprintf("there is no key for %s: run \"cutroom login\", or set CUTROOM_API_KEY", e.URL)
}

type JobError struct{ Job client.Job }

func (e *JobError) Error() string {
	if e.Job.Cancelled() {
		return fmt.Sprintf("the job %s was cancelled", e.Job.ID)
	}
	if e.Job.Error == nil {
		return fmt.Sprintf("the job %s failed", e.Job.ID)
	}
	return fmt.Sprintf("the job %s failed (%s): %s", e.Job.ID, e.Job.Error.Code, e.Job.Error.Message)
}

var ErrUnchanged = errors.New("the result is unchanged")

// InterruptedError is the error for a command that was interrupted while waiting for a job or
// downloading its result to Output.
type InterruptedError struct{ JobID, Output string }

func (e *InterruptedError) Error() string {
	if e.Output != "" {
		return fmt.Sprintf("interrupted; \"cutroom jobs download %s -o %s\" resumes the download", e.JobID, e.Output)
	}
	return fmt.Sprintf(
		"the job continues; \"cutroom jobs watch %[1]s\" waits for it, \"cutroom jobs cancel %[1]s\" cancels it", e.JobID)
}

// DamageError is the error for a damaged database. A retry cannot succeed.
type DamageError struct{ Err error }

func (e *DamageError) Error() string { return e.Err.Error() }

func (e *DamageError) Unwrap() error { return e.Err }

// BatchError is the error for a batch with failed items. Each failure was already reported.
type BatchError struct{ Failed, All int }

func (e *BatchError) Error() string {
	return fmt.Sprintf("%d of %d failed; repeat the command to retry them; it skips existing results", e.Failed, e.All)
}

func ExitCode(err error) int {
	var (
		misused     *UsageError
		parse       *kong.ParseError
		key         *KeyError
		failure     *client.Error
		broken      *client.ConnectionError
		job         *JobError
		interrupt   *InterruptedError
		damage      *DamageError
		isMisuse    = errors.As(err, &misused) || errors.As(err, &parse)
		isInterrupt = errors.As(err, &interrupt) || errors.Is(err, context.Canceled)
	)
	switch {
	case err == nil:
		return ok
	case isMisuse:
		return usage
	case isInterrupt:
		return interrupted
	case errors.As(err, &key):
		return denied
	case errors.As(err, &job):
		return jobFailed
	case errors.Is(err, ErrUnchanged):
		return unchanged
	case errors.As(err, &failure):
		switch failure.Status {
		case http.StatusUnauthorized, http.StatusForbidden:
			return denied
		case http.StatusNotFound:
			return notFound
		case http.StatusTooManyRequests:
			return limited
		}
	case errors.As(err, &broken):
		return unreachable
	case errors.As(err, &damage):
		return damaged
	}
	return failed
}

func advice(err error) string {
	var failure *client.Error
	var broken *client.ConnectionError
	var parse *kong.ParseError
	switch {
	case errors.As(err, &failure):
		switch {
		case failure.Status == http.StatusUnauthorized:
			return "run \"cutroom login\" with a valid key, or set CUTROOM_API_KEY"
		case failure.Status == http.StatusForbidden:
			return "use a permanent key with permission for this"
		case failure.Status == http.StatusTooManyRequests && failure.RetryAfter > 0:
			return fmt.Sprintf("try again in %s", failure.RetryAfter)
		case failure.Status == http.StatusTooManyRequests:
			return "try again later"
		case failure.Status >= 500 && failure.RequestID != "":
			return "try again; the request's id in the server's log is " + failure.RequestID
		}
	case errors.As(err, &broken):
		return "is the server running? Start one with \"cutroom dev\", or set CUTROOM_URL and CUTROOM_INFERENCE_URL; " +
			"\"cutroom doctor\" finds the cause"
	case errors.As(err, &parse):
		return "see \"" + commandOf(parse) + " --help\""
	}
	return ""
}

var aliases = regexp.MustCompile(` \([^)]*\)`)

// commandOf returns the command that the parser recognized before it failed.
func commandOf(err *kong.ParseError) string {
	for _, step := range slices.Backward(err.Context.Path) {
		if step.Command != nil {
			// Remove a command's aliases, which are in parentheses in its path.
			return aliases.ReplaceAllString(step.Command.FullPath(), "")
		}
	}
	return err.Context.Model.Name
}

type errorView struct {
	Message   string              `json:"message"`
	ExitCode  int                 `json:"exit_code"`
	Status    int                 `json:"status,omitempty"`
	Code      string              `json:"code,omitempty"`
	Fields    []client.FieldError `json:"fields,omitempty"`
	RequestID string              `json:"request_id,omitempty"`
	JobID     string              `json:"job_id,omitempty"`
}

// Report prints an error on one line to stderr and returns the exit code.
func (s *Invocation) Report(err error) int {
	code := ExitCode(err)
	message := explain(err)
	if next := advice(err); next != "" {
		message = strings.TrimSuffix(message, ".") + "; " + next
	}
	message = printable(message)
	if !s.JSON {
		fmt.Fprintln(s.Err, "cutroom:", message)
		return code
	}
	view := errorView{Message: message, ExitCode: code}
	var failure *client.Error
	var job *JobError
	var interrupt *InterruptedError
	switch {
	case errors.As(err, &failure):
		view.Status, view.Code, view.Fields, view.RequestID = failure.Status, failure.Code, failure.Fields, failure.RequestID
	case errors.As(err, &job):
		view.JobID = job.Job.ID
		if job.Job.Error != nil {
			view.Code = job.Job.Error.Code
		}
	case errors.As(err, &interrupt):
		view.JobID = interrupt.JobID
	}
	_ = printJSON(s.Err, map[string]errorView{"error": view}) // if stderr fails, there is nowhere left to report it
	return code
}

// explain rephrases an error for users of this program.
func explain(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	if errors.Is(err, fs.ErrExist) {
		return err.Error() + " (--force replaces it)"
	}
	var failure *client.Error
	if errors.As(err, &failure) && len(failure.Fields) > 0 {
		return explainFields(failure.Fields)
	}
	var trouble *fs.PathError
	if errors.As(err, &trouble) {
		// Shorten only the file error. The text around it names the setting or option that contains the file name.
		return strings.Replace(err.Error(), trouble.Error(), explainPath(trouble), 1)
	}
	return err.Error()
}

// explainFields describes a request's invalid fields with this program's flag names.
func explainFields(fields []client.FieldError) string {
	said := make([]string, len(fields))
	for i, field := range fields {
		said[i] = field.String()
		if len(field.Loc) < 2 {
			continue
		}
		switch message, _ := strings.CutPrefix(field.Msg, "Value error, "); field.Loc[1] {
		case "data":
			said[i] = "the input cannot be edited: " + message
		case "reference_image", "reference_image.0":
			said[i] = "--ref: " + message
		}
	}
	return strings.Join(said, "; ")
}

func explainPath(err *fs.PathError) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the file or folder %s does not exist", err.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s: permission denied for this user", err.Path)
	}
	return fmt.Sprintf("%s: %v", err.Path, err.Err)
}

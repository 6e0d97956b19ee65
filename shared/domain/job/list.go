package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/cursor"
)

// Filter says which of an account's jobs are listed; its zero value lists all.
type Filter struct {
	// Status is the state of the jobs, empty for any.
	Status Status
	// Model is the canonical id of their model, empty for any.
	Model string
	// Search is words that the jobs mention, empty for any (see Job.Mentions).
	Search string
}

// Matches reports whether the filter lists the job.
func (f Filter) Matches(j Job) bool {
	return (f.Status == "" || j.Status == f.Status) && (f.Model == "" || j.Model == f.Model) && j.Mentions(f.Search)
}

// Mentions reports whether each word of a search is a part of the job's prompt, of
// its id or of the name of one of its inputs, in any case
// (docs/contract/media.md#list-of-jobs).
func (j Job) Mentions(search string) bool {
	words := strings.Fields(strings.ToLower(search))
	if len(words) == 0 {
		return true
	}
	var told strings.Builder
	told.WriteString(j.ID + "\n" + j.Request.Prompt)
	for _, input := range j.Request.Inputs {
		told.WriteString("\n" + input.Name)
	}
	text := strings.ToLower(told.String())
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// NewCursors returns the codec of the cursors of job pages, sealed with the
// secret.
func NewCursors(secret []byte) cursor.Codec { return cursor.New("jobs", secret) }

// NewCursorsFrom returns the codec of the cursors of job pages, with a secret
// that is requested whenever it is needed; see cursor.NewFrom.
func NewCursorsFrom(secret func(context.Context) ([]byte, error)) cursor.Codec {
	return cursor.NewFrom("jobs", secret)
}

// Cursors returns the codec of List's cursors.
func (s *Service) Cursors() cursor.Codec { return s.config.Cursors }

// maxWalks bounds how often List queries the store for one page. Each query may
// pass over many jobs that are not listed; a page that is still short after
// that is returned as it is.
const maxWalks = 3

// List returns a page of an account's jobs, newest first, and the cursor of the
// next page, empty on the last one. A page may be short, even empty, while more
// follow. Jobs past their deadline are returned as timed out, and those past
// their record's age are left out, as by Get.
//
// Errors: fault.Invalid if the cursor is not one of the account's.
func (s *Service) List(
	ctx context.Context, account string, filter Filter, cursor string, limit int,
) ([]Job, string, error) {
	after := ""
	if cursor != "" {
		var err error
		if after, err = s.config.Cursors.Read(ctx, account, cursor); err != nil {
			return nil, "", err
		}
	}
	now := s.config.Now()
	var page []Job
	// One more than requested shows whether another page follows.
	for range maxWalks {
		jobs, next, err := s.config.Store.List(ctx, account, filter, after, limit+1-len(page), now)
		if err != nil {
			return nil, "", fmt.Errorf("job: list: %w", err)
		}
		page = append(page, slices.DeleteFunc(jobs, func(j Job) bool { return s.forgotten(j, now) })...)
		if after = next; next == "" || len(page) > limit {
			break
		}
	}
	if len(page) > limit {
		page = page[:limit]
		after = page[limit-1].ID
	}
	if after == "" {
		return page, "", nil
	}
	next, err := s.config.Cursors.Make(ctx, account, after)
	return page, next, err
}

// forgotten reports whether a job's record is past its age.
func (s *Service) forgotten(j Job, now time.Time) bool {
	return j.Status.Terminal() && now.Sub(j.CompletedAt) >= s.config.RecordAge
}

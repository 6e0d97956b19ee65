package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/cursor"
)

type Filter struct {
	Status Status
	Model  string // canonical id, or empty for any
	// Search contains words that a job must mention (see Job.Mentions). "" matches all jobs.
	Search string
	Lane   Lane // empty for any
	// OldestFirst lists the lowest id first, and after a page higher ids.
	OldestFirst bool
}

func (f Filter) Matches(j Job) bool {
	return (f.Status == "" || j.Status == f.Status) && (f.Model == "" || j.Model == f.Model) &&
		(f.Lane == "" || j.Lane == f.Lane) && j.Mentions(f.Search)
}

// Mentions reports whether each word of the search occurs in the job's prompt, id or input names
// (docs/contract/media.md#list-of-jobs).
func (j Job) Mentions(search string) bool {
	words := strings.Fields(strings.ToLower(search))
	if len(words) == 0 {
		return true
	}
	var mentioned strings.Builder
	mentioned.WriteString(j.ID + "\n" + j.Request.Prompt)
	for _, input := range j.Request.Inputs {
		mentioned.WriteString("\n" + input.Name)
	}
	text := strings.ToLower(mentioned.String())
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func NewCursors(secret []byte) cursor.Codec { return cursor.New("jobs", secret) }

func NewCursorsFrom(secret func(context.Context) ([]byte, error)) cursor.Codec {
	return cursor.NewFrom("jobs", secret)
}

func (s *Service) Cursors() cursor.Codec { return s.config.Cursors }

// maxWalks limits the store queries per page. A query may skip many jobs that do not match, so a page may be short.
const maxWalks = 3

// List returns a page of an account's jobs, newest first if the filter does not say otherwise, and the cursor of the
// next page, which is empty on the last page. A page may be short or even empty although more pages follow. Jobs with
// expired records are omitted.
//
// Errors: fault.Invalid if the cursor belongs to another account.
func (s *Service) List(ctx context.Context, account string, filter Filter, cursor string,
	limit int) ([]Job, string, error) {
	after := ""
	if cursor != "" {
		var err error
		if after, err = s.config.Cursors.Read(ctx, account, cursor); err != nil {
			return nil, "", err
		}
	}
	now := s.config.Now()
	var page []Job
	// One extra job shows whether there is another page.
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

func (s *Service) forgotten(j Job, now time.Time) bool {
	return j.Status.Terminal() && now.Sub(j.CompletedAt) >= s.config.RecordAge
}

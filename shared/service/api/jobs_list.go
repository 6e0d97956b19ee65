package api

import (
	"net/http"
	"slices"
	"unicode/utf8"

	"cutroom/shared/domain/job"
)

// NextCursor is null on the last page.
type jobPageBody struct {
	Jobs       []jobBody `json:"jobs"`
	NextCursor *string   `json:"next_cursor"`
}

// listJobs lists jobs newest first, in pages like the list of files.
func (s *service) listJobs(w http.ResponseWriter, r *http.Request, c call) error {
	account := c.who.Account()
	limit, after, found, err := readPage(r, account, s.Jobs.Cursors())
	if err != nil {
		return err
	}
	filter, wrong := s.jobFilter(r.URL.RawQuery)
	if found = append(found, wrong...); len(found) > 0 {
		return found
	}
	var jobs []job.Job
	var next string
	list := func() error {
		jobs, next, err = s.Jobs.List(r.Context(), account, filter, after, limit)
		return err
	}
	if filter.Search != "" {
		err = s.readTurns.Slowly(r.Context(), account, 2, list) // for a short page, it may read a thousand long records
	} else {
		err = list()
	}
	if err != nil {
		return err
	}
	page := jobPageBody{Jobs: make([]jobBody, 0, len(jobs))}
	for _, j := range jobs {
		if s.checkModel(c.who, j.Model) != nil {
			continue // the key may not use this model
		}
		body := s.jobBody(j)
		body.askedBody = body.excerpt()
		page.Jobs = append(page.Jobs, body)
	}
	if next != "" {
		page.NextCursor = &next
	}
	s.writeJSON(w, r, http.StatusOK, page)
	return nil
}

// See docs/contract/media.md#list-of-jobs.
const maxSearch = 200

// jobFilter treats empty values as absent.
func (s *service) jobFilter(query string) (filter job.Filter, found problems) {
	values := readQuery(query)
	if text := values["status"]; text != "" {
		filter.Status = job.Status(text)
		statuses := []string{string(job.Pending), string(job.Processing), string(job.Completed), string(job.Failed)}
		if !slices.Contains(statuses, text) {
			found = append(found, notAmong("status", text, statuses).in("query"))
		}
	}
	if filter.Search = values["q"]; utf8.RuneCountInString(filter.Search) > maxSearch {
		found = append(found, tooLong("q", filter.Search, maxSearch).in("query"))
	}
	if name := values["model"]; name != "" {
		if m, known := s.Catalog.Find(name); known {
			filter.Model = m.ID
		} else {
			found = append(found, valueProblem("model", name, "There is no such model.").in("query"))
		}
	}
	return filter, found
}

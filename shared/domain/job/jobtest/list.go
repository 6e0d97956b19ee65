package jobtest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var listTests = []test{
	{"of an account without jobs is empty", func(s *suite) {
		s.acceptFor(job.VideoLane, "zoo")
		s.listed("nothing", job.Filter{}, 10)
	}},
	{"returns an account's jobs, newest first, and no other account's", func(s *suite) {
		first, second := s.accept(), s.acceptFor(job.ImageLane, "acme")
		s.acceptFor(job.VideoLane, "zoo")
		third := s.accept()
		s.listed("all", job.Filter{}, 10, third.ID, second.ID, first.ID)
	}},
	{"returns jobs as they are recorded", func(s *suite) {
		pending, processing, completed, failed := s.accept(), s.accept(), s.accept(), s.accept()
		s.start(processing.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Progress(s.ctx, processing.ID, "n1", 0.25))
		s.start(completed.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, completed.ID, "n1", result, s.at(2)))
		conformance.OK(s, s.Runs.Fail(s.ctx, failed.ID, "", broken, s.at(2)))
		jobs, next := s.list(job.Filter{}, "", 10, s.at(3))
		s.same("next", next, "")
		var want []job.Job
		for _, j := range []job.Job{failed, completed, processing, pending} {
			want = append(want, s.get(j.ID))
		}
		s.same("jobs", jobs, want)
	}},
	{"returns pages that continue after the last job", func(s *suite) {
		var ids []string
		for range 7 {
			ids = append([]string{s.accept().ID}, ids...)
		}
		for size := 1; size <= 8; size++ {
			s.listed(fmt.Sprint("pages of ", size), job.Filter{}, size, ids...)
		}
		slices.Reverse(ids)
		for size := 1; size <= 8; size++ {
			s.listed(fmt.Sprint("oldest first by ", size), job.Filter{OldestFirst: true}, size, ids...)
		}
	}},
	{"filters by lane in both orders", func(s *suite) {
		first := s.accept()
		s.acceptFor(job.ImageLane, "acme")
		second := s.accept()
		for size := 1; size <= 4; size++ {
			s.listed("videos", job.Filter{Lane: job.VideoLane}, size, second.ID, first.ID)
			s.listed("videos, oldest first", job.Filter{Lane: job.VideoLane, OldestFirst: true}, size, first.ID, second.ID)
		}
	}},
	{"continues from an id that no job has", func(s *suite) {
		first := s.accept()
		gap := s.new(job.VideoLane, "acme") // takes up an id without being accepted
		s.accept()
		jobs, _ := s.list(job.Filter{}, gap.ID, 10, s.now)
		s.same("jobs", idsOf(jobs), []string{first.ID})
	}},
	{"neither repeats nor skips a job while others are accepted and end", func(s *suite) {
		var want, got []string
		for range 9 {
			want = append([]string{s.accept().ID}, want...)
		}
		for after, rounds := "", 0; ; rounds++ {
			jobs, next := s.list(job.Filter{}, after, 2, s.now)
			got = append(got, idsOf(jobs)...)
			if next == "" {
				break
			}
			if rounds > 20 {
				s.Fatal("the pages do not end")
			}
			after = next
			s.accept()
			conformance.OK(s, s.Runs.Fail(s.ctx, want[rounds], "", broken, s.at(1)))
		}
		s.same("jobs", got, want)
	}},
	{"filters by status and model", func(s *suite) {
		pending, processing, completed, failed := s.accept(), s.accept(), s.accept(), s.accept()
		other := s.new(job.VideoLane, "acme")
		other.Model = "gen-clip"
		conformance.OK(s, s.Store.Accept(s.ctx, other, 0))
		s.start(processing.ID, "n1", s.at(1))
		s.start(completed.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, completed.ID, "n1", result, s.at(2)))
		conformance.OK(s, s.Runs.Fail(s.ctx, failed.ID, "", broken, s.at(2)))
		for _, size := range []int{1, 10} {
			for _, c := range []struct {
				filter job.Filter
				want   []string
			}{
				{job.Filter{Status: job.Pending}, []string{other.ID, pending.ID}},
				{job.Filter{Status: job.Processing}, []string{processing.ID}},
				{job.Filter{Status: job.Completed}, []string{completed.ID}},
				{job.Filter{Status: job.Failed}, []string{failed.ID}},
				{job.Filter{Model: "gen-clip"}, []string{other.ID}},
				{job.Filter{Model: "gen-2.5", Status: job.Pending}, []string{pending.ID}},
				{job.Filter{Model: "gen-clip", Status: job.Failed}, nil},
			} {
				s.listed(fmt.Sprintf("%+v by %d", c.filter, size), c.filter, size, c.want...)
			}
		}
	}},
	{"searches prompts, input names and ids, ignoring case", func(s *suite) {
		asked := func(prompt, name string) job.Job {
			j := s.new(job.VideoLane, "acme")
			j.Request.Prompt = prompt
			j.Request.Inputs = map[string]job.Input{"data": {Blob: "jobs/a/data", Name: name, MIME: "video/mp4", Size: 1}}
			conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
			return j
		}
		beach, forest, unnamed := asked("Watercolor ÉTUDE", "Beach.mov"), asked("film noir", "forest 50%.mp4"), asked("", "")
		other := s.new(job.VideoLane, "zoo")
		other.Request.Prompt = "watercolor"
		conformance.OK(s, s.Store.Accept(s.ctx, other, 0))
		s.start(beach.ID, "n1", s.at(1))
		for search, want := range map[string][]string{
			"":                       {unnamed.ID, forest.ID, beach.ID},
			" \t":                    {unnamed.ID, forest.ID, beach.ID},
			"WATERcolor":             {beach.ID},
			"étude":                  {beach.ID},
			"beach  water":           {beach.ID},
			"beach noir":             nil,
			"mp4":                    {forest.ID},
			"%":                      {forest.ID},
			"_":                      {unnamed.ID, forest.ID, beach.ID},
			forest.ID:                {forest.ID},
			"' or ''='":              nil,
			"video/mp4":              nil,
			strings.Repeat("x", 200): nil,
		} {
			for _, size := range []int{1, 2, 10} {
				s.listed(fmt.Sprintf("%q by %d", search, size), job.Filter{Search: search}, size, want...)
			}
		}
		s.listed("with a status", job.Filter{Search: "o", Status: job.Processing}, 10, beach.ID)
	}},
	{"returns overdue jobs as timed out, whether or not that is recorded", func(s *suite) {
		pending, processing := s.accept(), s.accept()
		s.start(processing.ID, "n1", s.at(1))
		fresh := s.new(job.VideoLane, "acme")
		fresh.CreatedAt, fresh.Deadline = s.now.Add(time.Minute), pending.Deadline.Add(time.Minute)
		conformance.OK(s, s.Store.Accept(s.ctx, fresh, 0))
		jobs, _ := s.list(job.Filter{Status: job.Failed}, "", 10, pending.Deadline)
		s.same("jobs", idsOf(jobs), []string{processing.ID, pending.ID})
		timeout := job.TimeoutFailure()
		for _, j := range jobs {
			s.same("failure", j.Failure, &timeout)
			s.same("end", j.CompletedAt, pending.Deadline)
		}
		for _, status := range []job.Status{job.Pending, job.Processing} {
			jobs, _ := s.list(job.Filter{Status: status}, "", 10, pending.Deadline)
			want := []string(nil)
			if status == job.Pending {
				want = []string{fresh.ID}
			}
			s.same(string(status), idsOf(jobs), want)
		}
	}},
	{"through the service omits jobs with an expired record and uses the service's cursors", func(s *suite) {
		ended, kept := s.accept(), s.accept()
		conformance.OK(s, s.Runs.Fail(s.ctx, ended.ID, "", broken, s.at(1)))
		conformance.OK(s, s.Runs.Fail(s.ctx, kept.ID, "", broken, s.at(2)))
		service := job.NewService(job.Config{
			Store: s.Store, Random: rand.Reader, Cursors: job.NewCursors([]byte("secret")),
			Now: func() time.Time { return s.at(1).Add(job.DefaultRecordAge) },
		})
		page, next, err := service.List(s.ctx, "acme", job.Filter{}, "", 10)
		conformance.OK(s, err)
		s.same("jobs", idsOf(page), []string{kept.ID})
		s.same("next", next, "")

		page, next, err = service.List(s.ctx, "acme", job.Filter{}, "", 1)
		conformance.OK(s, err)
		s.same("a page of one", idsOf(page), []string{kept.ID})
		s.same("its next", next, "")
		newest := s.accept()
		page, next, err = service.List(s.ctx, "acme", job.Filter{}, "", 1)
		conformance.OK(s, err)
		s.same("the newest", idsOf(page), []string{newest.ID})
		page, next, err = service.List(s.ctx, "acme", job.Filter{}, next, 1)
		conformance.OK(s, err)
		s.same("the one before", idsOf(page), []string{kept.ID})
		s.same("the end", next, "")
	}},
}

func (s *suite) list(filter job.Filter, after string, limit int, now time.Time) (jobs []job.Job, next string) {
	s.Helper()
	jobs, next, err := s.Store.List(s.ctx, "acme", filter, after, limit, now)
	conformance.OK(s, err)
	if len(jobs) > limit {
		s.Fatalf("there are %d jobs, more than %d", len(jobs), limit)
	}
	return jobs, next
}

// listed reads all jobs of "acme" that match the filter, page by page, and checks their ids.
func (s *suite) listed(what string, filter job.Filter, size int, want ...string) {
	s.Helper()
	var got []string
	for after, pages := "", 0; ; pages++ {
		jobs, next := s.list(filter, after, size, s.now)
		got = append(got, idsOf(jobs)...)
		if next == "" {
			break
		}
		if pages > 100 {
			s.Fatalf("%s: the pages do not end", what)
		}
		after = next
	}
	s.same(what, got, want)
}

func idsOf(jobs []job.Job) []string {
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

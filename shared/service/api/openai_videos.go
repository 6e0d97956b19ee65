package api

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
)

// createVideo submits a job, which edits another video's result if the path names that video.
func (s *service) createVideo(w http.ResponseWriter, r *http.Request, c call) error {
	o := &openAIRequest{service: s, c: &c, route: catalog.Videos, edits: r.URL.Path == "/v1/videos/edits"}
	if id := r.PathValue("id"); id != "" {
		source, err := s.video(r.Context(), c, id)
		if err != nil {
			return err
		}
		o.source = &source
	}
	full := s.Jobs.CheckCapacity(r.Context(), job.VideoLane, c.who.Account(), c.who.Tier.PendingJobs, 0)
	if err := s.unlessRepeated(r, c, full); err != nil {
		return err
	}
	accepted, err := s.submitAll(w, r, &c, o.read)
	if err != nil {
		return err
	}
	j := accepted[0]
	if j.Model == "" { // a retry has only the id
		if j, err = s.Jobs.Get(r.Context(), j.Account, j.ID); err != nil {
			return err
		}
	}
	s.writeJSON(w, r, http.StatusOK, s.videoBody(j))
	return nil
}

// videoBody is OpenAI's video object. Times are in seconds since 1970.
type videoBody struct {
	ID          string          `json:"id"`
	Object      string          `json:"object"`
	Model       string          `json:"model"`
	Status      string          `json:"status"`
	Progress    int             `json:"progress"`
	CreatedAt   int64           `json:"created_at"`
	CompletedAt *int64          `json:"completed_at"`
	ExpiresAt   *int64          `json:"expires_at"`
	Prompt      string          `json:"prompt"`
	Seconds     *string         `json:"seconds"`
	Size        *string         `json:"size"`
	RemixedFrom *string         `json:"remixed_from_video_id"`
	Error       *videoErrorBody `json:"error"`
}

type videoErrorBody struct {
	Code    job.Code `json:"code"`
	Message string   `json:"message"`
}

var videoStatus = map[job.Status]string{
	job.Pending: "queued", job.Processing: "in_progress", job.Completed: "completed", job.Failed: "failed",
}

func (s *service) videoBody(j job.Job) videoBody {
	body := videoBody{
		ID: j.ID, Object: "video", Model: j.Model, Status: videoStatus[j.Status], Progress: int(j.Progress * 100),
		CreatedAt: j.CreatedAt.Unix(), Prompt: j.Request.Prompt,
	}
	size, length := catalog.Size{}, j.Request.Length
	if m, known := s.Catalog.Find(j.Model); known && length == 0 {
		length = m.Duration
	}
	if plan := j.Request.Planned; plan != nil {
		size = catalog.Size{Width: plan.Width, Height: plan.Height}
	}
	if j.Status.Terminal() {
		ended := j.CompletedAt.Unix()
		body.CompletedAt = &ended
	}
	if j.Result != nil {
		resultAge, _ := s.Jobs.Ages()
		expires := j.ResultExpiry(resultAge).Unix()
		body.Progress, body.ExpiresAt = 100, &expires
		length = cmp.Or(j.Result.Duration, length)
		size = cmp.Or(catalog.Size{Width: j.Result.Width, Height: j.Result.Height}, size)
	}
	if size.Width > 0 {
		body.Size = new(size.String())
	}
	if length > 0 {
		body.Seconds = new(strconv.FormatFloat(math.Round(length.Seconds()*100)/100, 'f', -1, 64))
	}
	if from := j.Request.Inputs[catalog.DataField].Reference; from != "" && !file.IsReference(from) {
		body.RemixedFrom = &from
	}
	if j.Failure != nil {
		body.Error = &videoErrorBody{j.Failure.Code, j.Failure.Message}
	}
	return body
}

// video returns an account's job that makes a video.
func (s *service) video(ctx context.Context, c call, id string) (job.Job, error) {
	j, err := s.Jobs.Get(ctx, c.who.Account(), id)
	if err == nil && j.Lane != job.VideoLane {
		err = job.ErrNotFound
	}
	if err != nil {
		return job.Job{}, err
	}
	return j, s.checkModel(c.who, j.Model)
}

func (s *service) showVideo(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.video(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, s.videoBody(j))
	return nil
}

func (s *service) showVideoContent(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.video(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	switch variant := cmp.Or(readQuery(r.URL.RawQuery)["variant"], "video"); variant {
	case "video":
		return s.sendResultOf(w, r, j)
	case "thumbnail":
		return s.sendThumbnailOf(w, r, j, "result", "poster")
	default:
		return problems{notAmong("variant", variant, []string{"video", "thumbnail"}).in("query")}
	}
}

// deleteVideo cancels a job that has not ended, because OpenAI has no other route to cancel it.
func (s *service) deleteVideo(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.video(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !j.Status.Terminal() {
		if j, err = s.cancel(r.Context(), j, job.CancelledFailure()); err != nil {
			return err
		}
	}
	if err := s.Jobs.Purge(r.Context(), j, s.Blobs); err != nil {
		return err
	}
	s.writeJSON(w, r, http.StatusOK, map[string]any{"id": j.ID, "object": "video.deleted", "deleted": true})
	return nil
}

// A video list reads at most videoPages pages of videoPage jobs each.
const videoPage, videoPages = 200, 20

type videoPageBody struct {
	Object  string      `json:"object"`
	Data    []videoBody `json:"data"`
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
	HasMore bool        `json:"has_more"`
}

func (s *service) listVideos(w http.ResponseWriter, r *http.Request, c call) error {
	query := readQuery(r.URL.RawQuery)
	limit, _, found := pageQuery(r.URL.RawQuery)
	order := cmp.Or(query["order"], "desc")
	if orders := []string{"asc", "desc"}; !slices.Contains(orders, order) {
		found = append(found, notAmong("order", order, orders).in("query"))
	}
	if len(found) > 0 {
		return found
	}
	var jobs []job.Job
	var more bool
	err := s.readTurns.Slowly(r.Context(), c.who.Account(), 2, func() (err error) { // reading a thousand long records takes a third of a second
		jobs, more, err = s.videosOf(r, c, query["after"], limit, order == "asc")
		return err
	})
	if err != nil {
		return err
	}
	page := videoPageBody{Object: "list", Data: make([]videoBody, 0, len(jobs)), HasMore: more}
	for _, j := range jobs {
		page.Data = append(page.Data, s.videoBody(j))
	}
	if n := len(jobs); n > 0 {
		page.FirstID, page.LastID = &jobs[0].ID, &jobs[n-1].ID
	}
	s.writeJSON(w, r, http.StatusOK, page)
	return nil
}

// videosOf returns a page of videos with shortened prompts. It starts after the video with the given id, or at the first
// video if that id is empty. more means that others follow.
func (s *service) videosOf(r *http.Request, c call, after string, limit int, oldestFirst bool) (jobs []job.Job, more bool, err error) {
	ctx, account, cursor := r.Context(), c.who.Account(), ""
	if after != "" {
		if cursor, err = s.Jobs.Cursors().Make(ctx, account, after); err != nil {
			return nil, false, err
		}
	}
	size := min(limit+1, videoPage) // often the first page suffices
	for range videoPages {
		page, next, err := s.Jobs.List(ctx, account, job.Filter{Lane: job.VideoLane, OldestFirst: oldestFirst}, cursor, size)
		size = videoPage
		if err != nil {
			return nil, false, err
		}
		for _, j := range page {
			if s.checkModel(c.who, j.Model) == nil {
				j.Request.Prompt = listed(j.Request.Prompt)
				jobs = append(jobs, j)
			}
			if len(jobs) > limit {
				return jobs[:limit], true, nil
			}
		}
		if cursor = next; next == "" {
			return jobs, false, nil
		}
	}
	return jobs, true, nil
}

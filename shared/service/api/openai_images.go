package api

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// editImages serves the edits, and the generations of models that need no image. It waits for the images.
func (s *service) editImages(w http.ResponseWriter, r *http.Request, c call) error {
	c.wait = s.ImageWait
	ctx, account := r.Context(), c.who.Account()
	if err := s.unlessRepeated(r, c, s.Jobs.CheckCapacity(ctx, job.ImageLane, account, c.who.Tier.PendingJobs, c.wait)); err != nil {
		return err
	}
	if m, ok := s.Catalog.First(catalog.Image); ok {
		if err := s.unlessRepeated(r, c, s.checkWarm(ctx, m)); err != nil {
			return err
		}
	}
	o := &openAIRequest{service: s, c: &c, route: catalog.Route(strings.TrimPrefix(r.URL.Path, "/v1/"))}
	accepted, err := s.submitAll(w, r, &c, o.reader(r))
	if err != nil {
		return err
	}
	var ids []string
	for _, j := range accepted {
		ids = append(ids, j.ID)
	}
	w.Header().Set("X-Job-Id", strings.Join(ids, ", "))
	for i := range accepted {
		j, err := s.await(ctx, accepted[i], c.model, s.repeatable(r))
		if err == nil && j.Status == job.Failed {
			err = failureOf(j)
		}
		if err == nil {
			err = s.Jobs.CheckResult(j) // the job may be from an earlier request
		}
		if err != nil {
			if !s.repeatable(r) {
				s.cancelAll(ctx, accepted[i+1:])
			}
			return err
		}
		accepted[i] = j
	}
	return s.sendImages(w, r, accepted, o.urls)
}

// sendImages streams the images from the blob store, so that it holds none of them in memory.
func (s *service) sendImages(w http.ResponseWriter, r *http.Request, jobs []job.Job, urls bool) error {
	type piece struct {
		text  string
		image io.ReadCloser
	}
	var pieces []piece
	defer func() {
		for _, p := range pieces {
			if p.image != nil {
				p.image.Close()
			}
		}
	}()
	length := 0
	add := func(text string) {
		pieces, length = append(pieces, piece{text: text}), length+len(text)
	}
	add(fmt.Sprintf(`{"created":%d,"data":[`, jobs[0].CompletedAt.Unix()))
	for i, j := range jobs {
		if i > 0 {
			add(",")
		}
		revised := ""
		if j.Result.EnhancedPrompt != "" {
			text, err := encodeJSON(j.Result.EnhancedPrompt)
			if err != nil {
				return err
			}
			revised = `,"revised_prompt":` + string(text)
		}
		if urls {
			resultAge, _ := s.Jobs.Ages()
			link, err := s.shareURL(r, j, j.CompletedAt.Add(resultAge))
			if err != nil {
				return err
			}
			text, err := encodeJSON(link)
			if err != nil {
				return err
			}
			add(`{"url":` + string(text) + revised + "}")
			continue
		}
		add(`{"b64_json":"`)
		image, err := s.Blobs.Open(r.Context(), j.Result.Blob, 0, j.Result.Size)
		if err != nil {
			return fmt.Errorf("open an image: %w", err)
		}
		pieces, length = append(pieces, piece{image: image}), length+base64.StdEncoding.EncodedLen(int(j.Result.Size))
		add(`"` + revised + "}")
	}
	size := catalog.Size{Width: jobs[0].Result.Width, Height: jobs[0].Result.Height}
	add(fmt.Sprintf(`],"output_format":%q,"size":%q}`, strings.TrimPrefix(jobs[0].Result.MIME, "image/"), size.String()))

	header := w.Header()
	describeOutcome(header, jobs[0])
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(http.StatusOK)
	for _, p := range pieces {
		if p.image == nil {
			_, _ = io.WriteString(w, p.text) // fails if the client has disconnected
			continue
		}
		encoder := base64.NewEncoder(base64.StdEncoding, w)
		_, err := io.Copy(encoder, p.image)
		if err == nil {
			err = encoder.Close()
		}
		if err != nil {
			if r.Context().Err() == nil {
				s.log(r, fmt.Errorf("send an image: %w", err))
			}
			return nil // the client gets fewer bytes than Content-Length promised
		}
	}
	return nil
}

package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// editImages serves edits, and generations if the model needs no image. It waits for the images.
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
	accepted, err := s.submitAll(w, r, &c, o.read)
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
	return s.sendImages(w, r, accepted, o.imageFormat)
}

// imageFormat says how a response contains images: as links, as JPEGs (with a quality in percent), or else as PNGs.
type imageFormat struct {
	urls, jpeg bool
	quality    int
}

// maxJPEG is the maximum size, in pixels, of the images of a model that offers JPEGs, which are converted in memory.
const maxJPEG = 16 << 20

// imageBody is OpenAI's image object without b64_json.
type imageBody struct {
	URL           string  `json:"url,omitempty"`
	RevisedPrompt *string `json:"revised_prompt"`
}

// sendImages streams the images from the blob store, so that it holds none of them in memory.
func (s *service) sendImages(w http.ResponseWriter, r *http.Request, jobs []job.Job, format imageFormat) (err error) {
	resultAge, _ := s.Jobs.Ages()
	data, images := make([]imageBody, len(jobs)), make([]io.ReadCloser, len(jobs))
	for i, j := range jobs {
		if j.Result.EnhancedPrompt != "" {
			data[i].RevisedPrompt = &j.Result.EnhancedPrompt
		}
		if format.urls {
			data[i].URL, err = s.shareURL(r, j, j.CompletedAt.Add(resultAge))
		} else if images[i], err = s.Blobs.Open(r.Context(), j.Result.Blob, 0, j.Result.Size); err == nil {
			defer images[i].Close()
		}
		if err != nil {
			return fmt.Errorf("open an image: %w", err)
		}
	}
	header, first := w.Header(), jobs[0].Result
	describeOutcome(header, jobs[0])
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	name := "png"
	if format.jpeg {
		name = "jpeg"
	}
	fmt.Fprintf(w, `{"created":%d,"output_format":%q,"size":"%dx%d","data":[`, jobs[0].CompletedAt.Unix(), name,
		first.Width, first.Height)
	separator := ""
	for i, image := range images {
		text, err := encodeJSON(data[i])
		fmt.Fprint(w, separator, "{")
		if image != nil && err == nil {
			fmt.Fprint(w, `"b64_json":"`)
			encoder := base64.NewEncoder(base64.StdEncoding, w)
			if err = s.writeImage(r.Context(), encoder, image, jobs[i].Account, format); err == nil {
				err = encoder.Close()
			}
			fmt.Fprint(w, `",`)
		}
		if err != nil {
			if r.Context().Err() == nil {
				s.log(r, fmt.Errorf("send an image: %w", err))
			}
			return nil // the client gets incomplete JSON
		}
		_, _ = w.Write(text[1:])
		separator = ","
	}
	fmt.Fprint(w, "]}")
	return nil
}

func (s *service) writeImage(ctx context.Context, w io.Writer, image io.Reader, account string, format imageFormat) error {
	if !format.jpeg {
		_, err := io.Copy(w, image)
		return err
	}
	if !s.thumbnailTurns.Take(ctx, account) {
		return ctx.Err()
	}
	defer s.thumbnailTurns.Release(account)
	picture, err := png.Decode(image)
	if err != nil {
		return err
	}
	return jpeg.Encode(w, picture, &jpeg.Options{Quality: format.quality})
}

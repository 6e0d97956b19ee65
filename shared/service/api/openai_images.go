package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"os"
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
// stream means that the response has one event per image.
type imageFormat struct {
	urls, jpeg, stream bool
	quality            int
}

// maxJPEG is the maximum size, in pixels, of the images of a model that offers JPEGs, which are converted in memory.
const maxJPEG = 16 << 20

// imageResponses limits concurrent responses with images, because each has open files. firstImageResponses of them are
// reserved for accounts without one, and an account may have ownImageResponses. Other responses wait, because their
// images are already made.
const imageResponses, firstImageResponses, ownImageResponses = 512, 256, 16

// imageBody is OpenAI's image object without b64_json.
type imageBody struct {
	URL           string  `json:"url,omitempty"`
	RevisedPrompt *string `json:"revised_prompt"`
}

// sendImages streams the images from the blob store, so that it holds none of them in memory.
func (s *service) sendImages(w http.ResponseWriter, r *http.Request, jobs []job.Job, format imageFormat) (err error) {
	if !format.urls {
		if !s.imageTurns.Take(r.Context(), jobs[0].Account) {
			return r.Context().Err()
		}
		defer s.imageTurns.Release(jobs[0].Account)
	}
	data, images := make([]imageBody, len(jobs)), make([]io.ReadCloser, len(jobs))
	for i, j := range jobs {
		if j.Result.EnhancedPrompt != "" {
			data[i].RevisedPrompt = &j.Result.EnhancedPrompt
		}
		if format.urls {
			resultAge, _ := s.Jobs.Ages()
			data[i].URL, err = s.shareURL(r, j, j.ResultExpiry(resultAge))
		} else if images[i], err = s.Blobs.Open(r.Context(), j.Result.Blob, 0, j.Result.Size); err == nil {
			defer images[i].Close()
		}
		if err == nil && format.jpeg {
			if images[i], err = s.convert(r.Context(), images[i], j.Account, format.quality); err == nil {
				defer images[i].Close()
			}
		}
		if err != nil {
			return fmt.Errorf("open an image: %w", err)
		}
	}
	header, first := w.Header(), jobs[0].Result
	describeOutcome(header, jobs[0])
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	name := "png"
	if format.jpeg {
		name = "jpeg"
	}
	created := jobs[0].CompletedAt.Unix()
	about := fmt.Sprintf(`"output_format":%q,"size":"%dx%d"`, name, first.Width, first.Height)
	start, before, between, end := fmt.Sprintf(`{"created":%d,%s,"data":[`, created, about), "{", ",", "]}"
	if format.stream {
		event := "image_edit.completed"
		if strings.HasSuffix(r.URL.Path, "/generations") {
			event = "image_generation.completed"
		}
		header.Set("Content-Type", "text/event-stream")
		start, between, end = "", "\n\n", "\n\n"
		// The types of client libraries require a usage.
		before = fmt.Sprintf("event: %s\ndata: "+`{"type":%[1]q,"created_at":%d,%s,"background":"auto","quality":"auto","usage":{"input_tokens":0,`+
			`"input_tokens_details":{"image_tokens":0,"text_tokens":0},"output_tokens":0,"total_tokens":0},`, event, created, about)
	}
	w.WriteHeader(http.StatusOK)
	fmt.Fprint(w, start)
	for i, image := range images {
		if i > 0 {
			fmt.Fprint(w, between)
		}
		text, err := encodeJSON(data[i])
		fmt.Fprint(w, before)
		if image != nil && err == nil {
			fmt.Fprint(w, `"b64_json":"`)
			encoder := base64.NewEncoder(base64.StdEncoding, w)
			if _, err = io.Copy(encoder, image); err == nil {
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
	}
	fmt.Fprint(w, end)
	return nil
}

// convert stores a JPEG in an unnamed file, so that slow clients use neither memory nor turns.
func (s *service) convert(ctx context.Context, image io.Reader, account string, quality int) (io.ReadCloser, error) {
	if !takeTurn(ctx, s.jpegTurns, account) {
		return nil, cmp.Or(ctx.Err(), thumbnailLater(nil, "Other images are being converted. Try again."))
	}
	defer s.jpegTurns.Release(account)
	file, err := unnamed(s.Scratch)
	if err != nil {
		return nil, err
	}
	picture, err := png.Decode(image)
	if err == nil {
		err = jpeg.Encode(file, picture, &jpeg.Options{Quality: quality})
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// unnamed creates a temporary file without a name. Closing the file deletes it.
func unnamed(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "unnamed-")
	if err == nil {
		if err = os.Remove(file.Name()); err != nil {
			file.Close()
		}
	}
	return file, err
}

package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

const (
	// Thumbnails may be stored shortly after a job's end is recorded. Within freshTime of the end,
	// requests wait up to thumbnailWait for them.
	freshTime     = 10 * time.Second
	thumbnailWait = 3 * time.Second
	thumbnailPoll = 100 * time.Millisecond
)

var errNoThumbnail = fault.New(fault.NotFound, "There is no such thumbnail.")

// See docs/contract/jobs.md#thumbnails.
func (s *service) showThumbnail(w http.ResponseWriter, r *http.Request, c call) error {
	j, err := s.namedJob(r, c)
	if err != nil {
		return err
	}
	of, size, err := readPicture(r)
	if err != nil {
		return err
	}
	return s.sendThumbnailOf(w, r, j, of, size)
}

func (s *service) sendThumbnailOf(w http.ResponseWriter, r *http.Request, j job.Job, of, size string) error {
	if err := s.Jobs.CheckResult(j); err != nil {
		return err
	}
	pictures, err := s.thumbnails(r.Context(), j)
	if err != nil {
		return err
	}
	source := blobRange{j.ThumbnailsBlob(), job.ThumbnailsStart, int64(len(pictures.Result))}
	switch {
	case of == "input":
		source.start, source.length = source.start+source.length, int64(len(pictures.Input))
	case size == "poster" && len(pictures.Poster) > 0:
		source.start += source.length + int64(len(pictures.Input))
		source.length, of = int64(len(pictures.Poster)), size
	}
	if source.length == 0 {
		return errNoThumbnail
	}
	// A run makes its pictures only once, so the result's hash identifies them.
	tag := fmt.Sprintf(`"%s-%s"`, j.Result.SHA256, of)
	return s.sendPicture(w, r, source, forAnHour, tag, disposition("inline", j.ResultName()+"-"+of, j.ID+"-"+of, ".jpg"))
}

func readPicture(r *http.Request) (of, size string, err error) {
	query := readQuery(r.URL.RawQuery)
	of, size = cmp.Or(query["of"], "result"), "thumbnail"
	if sent, is := query["size"]; is {
		size = sent
	}
	var wrong problems
	if known := []string{"result", "input"}; !slices.Contains(known, of) {
		wrong = append(wrong, notAmong("of", of, known).in("query"))
	}
	if known := []string{"thumbnail", "poster"}; !slices.Contains(known, size) {
		wrong = append(wrong, notAmong("size", size, known).in("query"))
	}
	if len(wrong) > 0 {
		return "", "", wrong
	}
	return of, size, nil
}

const forAnHour = "private, max-age=3600"

type blobRange struct {
	blob          string
	start, length int64
}

// sendPicture reads the picture while it sends it, so that slow clients do not use memory. The tag includes its quotes.
func (s *service) sendPicture(w http.ResponseWriter, r *http.Request, source blobRange, cache, tag, disposition string) error {
	header := w.Header()
	header.Set("Content-Type", "image/jpeg")
	header.Set("Content-Disposition", disposition)
	header.Set("ETag", tag)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", cache)
	if hasTag(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	picture, err := s.Blobs.Open(r.Context(), source.blob, source.start, source.length)
	if err != nil {
		return fmt.Errorf("open a picture: %w", err)
	}
	defer picture.Close()
	// Ignore ranges, because thumbnails are small.
	header.Set("Content-Length", strconv.FormatInt(source.length, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, picture) // fails if the client has disconnected
	}
	return nil
}

func hasTag(values []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == tag || part == "*" {
			return true
		}
	}
	return false
}

// thumbnails waits for the pictures if the job has just completed. Errors: fault.NotFound if the
// job has no thumbnails.
func (s *service) thumbnails(ctx context.Context, j job.Job) (job.Thumbnails, error) {
	wait := time.Duration(0)
	if s.Jobs.Now().Sub(j.CompletedAt) < freshTime {
		wait = thumbnailWait
	}
	ctx, cancel := context.WithTimeout(ctx, max(wait, cleanTime))
	defer cancel()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	poll := time.NewTicker(thumbnailPoll)
	defer poll.Stop()
	for {
		var pictures job.Thumbnails
		err := s.listTurns.Respond(ctx, j.Account, func() (err error) { // because a blob may have a megabyte
			pictures, err = s.readThumbnails(ctx, j)
			return err
		})
		if !fault.Is(err, fault.NotFound) {
			return pictures, err
		}
		select {
		case <-poll.C:
		case <-timeout.C:
			return job.Thumbnails{}, errNoThumbnail
		case <-ctx.Done():
			return job.Thumbnails{}, ctx.Err()
		}
	}
}

func (s *service) readThumbnails(ctx context.Context, j job.Job) (job.Thumbnails, error) {
	blob, err := s.Blobs.Open(ctx, j.ThumbnailsBlob(), 0, job.MaxThumbnails)
	if err != nil {
		return job.Thumbnails{}, fmt.Errorf("open the thumbnails: %w", err)
	}
	defer blob.Close()
	content, err := io.ReadAll(blob)
	if err != nil {
		return job.Thumbnails{}, fmt.Errorf("read the thumbnails: %w", err)
	}
	return job.DecodeThumbnails(content)
}

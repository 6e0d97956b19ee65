package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

const (
	// fetchTime limits how long a file may take to arrive from a URL.
	fetchTime = 2 * time.Minute
	maxURL    = 2048
)

// limited returns a context that ends after the given time, or earlier if the Lambda function would time out before
// it responds.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	until := time.Now().Add(limit)
	if end, ends := ctx.Deadline(); ends && end.Add(-answerTime).Before(until) {
		until = end.Add(-answerTime)
	}
	return context.WithDeadline(ctx, until)
}

func isURL(head []byte) bool {
	scheme, _, _ := bytes.Cut(head[:min(len(head), len("https:"))], []byte(":"))
	return bytes.EqualFold(scheme, []byte("https")) || bytes.EqualFold(scheme, []byte("http")) ||
		bytes.EqualFold(scheme, []byte("data"))
}

// takeURL is a [takeFile] for a part with a URL.
func (in *inputs) takeURL(ctx context.Context, p filePart, take takeFile) (*job.Input, *problem, error) {
	ctx, cancel := limited(ctx, fetchTime)
	defer cancel()
	invalid := func(why string) (*job.Input, *problem, error) {
		wrong := valueProblem(p.name, nil, why)
		return nil, &wrong, nil
	}
	p.fetched = true
	source := bufio.NewReaderSize(p.content, maxURL)
	if content, ok := dataURL(source, p.name); ok {
		p.content = content
		return take(p)
	}
	url, err := io.ReadAll(io.LimitReader(source, maxURL+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(url) > maxURL:
		return invalid("The URL is longer than 2048 bytes, or is a data: URL without base64.")
	case in.noURLs:
		return invalid("A large JSON body must not contain URLs. Send the request as multipart/form-data.")
	case in.service.Fetch == nil:
		return invalid("URLs are not supported here.")
	}
	file, err := in.service.Fetch(ctx, strings.TrimSpace(string(url)))
	var refusal *fault.Error
	if errors.As(err, &refusal) && refusal.Code == fault.Invalid {
		return invalid(refusal.Message)
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	p.content = fetchedReader{file, p.name}
	return take(p)
}

// fetchedReader turns an incomplete download into a problem with the named field.
type fetchedReader struct {
	io.Reader
	name string
}

func (f fetchedReader) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = problems{valueProblem(f.name, nil, "The file at the URL did not arrive completely, or not in time.")}
	}
	return n, err
}

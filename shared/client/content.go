package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// breaks is the maximum number of consecutive connection failures without progress in a download.
const breaks = 4

// Download writes a job's result to a file. An incomplete download stays at the path that [Partial]
// returns, and a later call resumes it. Errors include disk errors.
func (c *Client) Download(ctx context.Context, id, path string, progress Progress) error {
	return c.download(ctx, resultPath(id), Partial(path, id), path, progress)
}

func (c *Client) DownloadFile(ctx context.Context, id, path string, progress Progress) error {
	return c.download(ctx, bytesPath(id), Partial(path, id), path, progress)
}

func (c *Client) download(ctx context.Context, resource, partial, path string, progress Progress) error {
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	offset, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := c.copyContent(ctx, resource, file, offset, progress); err != nil {
		var refusal *Error
		if info, statErr := file.Stat(); statErr == nil && (info.Size() == 0 || errors.As(err, &refusal)) {
			_ = os.Remove(partial) // the file cannot be resumed
		}
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

func resultPath(id string) string { return jobPath(id) + "/content" }
func bytesPath(id string) string  { return "/v1/uploads/" + url.PathEscape(id) }

// Partial returns the path of an incomplete download. It escapes the server's id, so that the id
// cannot lead to another folder.
func Partial(path, id string) string { return path + "." + url.PathEscape(id) + ".part" }

// CopyContent writes a job's result to a writer. If the connection breaks, it resumes the download.
func (c *Client) CopyContent(ctx context.Context, id string, to io.Writer, progress Progress) error {
	return c.copyContent(ctx, resultPath(id), to, 0, progress)
}

func (c *Client) CopyFile(ctx context.Context, id string, to io.Writer, progress Progress) error {
	return c.copyContent(ctx, bytesPath(id), to, 0, progress)
}

func (c *Client) copyContent(ctx context.Context, resource string, to io.Writer, offset int64,
	progress Progress) error {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	d := &download{client: c, path: resource, to: to, offset: offset, progress: progress}
	for left := breaks; ; left-- {
		before := d.offset
		err := d.rest(ctx)
		var broken *ConnectionError
		if err == nil || !errors.As(err, &broken) || left == 0 {
			return err
		}
		if d.offset > before {
			left = breaks
		}
		if c.config.Repeating != nil {
			c.config.Repeating(err, c.config.Backoff)
		}
		if err := sleep(ctx, c.config.Backoff); err != nil {
			return err
		}
	}
}

type download struct {
	client   *Client
	path     string
	to       io.Writer
	offset   int64
	progress Progress
}

func (d *download) rest(ctx context.Context) error {
	request := d.client.media(http.MethodGet, d.path, nil)
	if d.offset > 0 {
		request.header.Set("Range", fmt.Sprintf("bytes=%d-", d.offset))
	}
	// Request no compression, because a compressed body could not be resumed after a broken connection.
	request.header.Set("Accept-Encoding", "identity")
	response, err := d.client.send(ctx, request)
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Status == http.StatusRequestedRangeNotSatisfiable {
		return d.complete(ctx)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	skip := int64(0)
	if response.StatusCode == http.StatusOK {
		skip = d.offset
	} else if start, ok := rangeStart(response.Header.Get("Content-Range")); !ok || start != d.offset {
		return fmt.Errorf("the server sent the range %q instead of one that starts at %d", response.Header.Get("Content-Range"),
			d.offset)
	}
	total := response.ContentLength
	if total >= 0 && response.StatusCode == http.StatusPartialContent {
		total += d.offset
	}
	if _, err := io.CopyN(io.Discard, response.Body, skip); err != nil {
		return connectionError(ctx, request.url, err)
	}
	d.progress(d.offset, total)
	return d.copy(ctx, request.url, response.Body, total)
}

// copy wraps only connection errors in a *ConnectionError.
func (d *download) copy(ctx context.Context, address string, body io.Reader, total int64) error {
	buffer := make([]byte, 64<<10)
	for {
		n, readErr := body.Read(buffer)
		written, err := d.to.Write(buffer[:n])
		d.offset += int64(written)
		if err != nil {
			return err
		}
		if n > 0 {
			d.progress(d.offset, total)
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return connectionError(ctx, address, readErr)
		}
	}
}

// complete checks that the download is complete. It is called when the service has no bytes after the offset.
func (d *download) complete(ctx context.Context) error {
	request := d.client.media(http.MethodHead, d.path, nil)
	response, err := d.client.send(ctx, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ContentLength != d.offset {
		return fmt.Errorf("the incomplete download has %d bytes, but the complete content has %d; delete it and try again", d.offset,
			response.ContentLength)
	}
	d.progress(d.offset, d.offset)
	return nil
}

func rangeStart(header string) (start int64, ok bool) {
	first, _, found := strings.Cut(strings.TrimPrefix(header, "bytes "), "-")
	if !found {
		return 0, false
	}
	start, err := strconv.ParseInt(first, 10, 64)
	return start, err == nil
}

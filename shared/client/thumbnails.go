package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxThumbnail limits a thumbnail's size in bytes. Real thumbnails are far smaller.
const maxThumbnail = 1 << 20

// JobThumbnail returns a JPEG thumbnail of a job. The parameter `of` is "result" or "input"
// (docs/contract/jobs.md#thumbnails).
func (c *Client) JobThumbnail(ctx context.Context, id, of string) ([]byte, error) {
	return c.picture(ctx, jobPath(id)+"/thumbnail?of="+url.QueryEscape(of))
}

// FileThumbnail returns a JPEG thumbnail of a stored file (docs/contract/media.md#thumbnails-of-files).
func (c *Client) FileThumbnail(ctx context.Context, id string) ([]byte, error) {
	return c.picture(ctx, bytesPath(id)+"/thumbnail")
}

func (c *Client) picture(ctx context.Context, path string) ([]byte, error) {
	response, err := c.send(ctx, c.media(http.MethodGet, path, nil))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	picture, err := io.ReadAll(io.LimitReader(response.Body, maxThumbnail+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the thumbnail: %w", err)
	case len(picture) > maxThumbnail:
		return nil, errors.New("the server sent a thumbnail larger than 1 MiB")
	}
	return picture, nil
}

package mcpserver

import (
	"context"
	"errors"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cutroom/shared/domain/media/sniff"
)

type lookInput struct {
	JobID  string `json:"job_id,omitempty" jsonschema:"Id of a completed job (job_…)."`
	Of     string `json:"of,omitempty" jsonschema:"Which file of the job to view."`
	FileID string `json:"file_id,omitempty" jsonschema:"Id of a stored file (file_…), instead of a job."`
}

type lookOutput struct {
	Size     int    `json:"size_bytes" jsonschema:"The picture's size in bytes."`
	MIMEType string `json:"mime_type" jsonschema:"The picture's type."`
}

type shareInput struct {
	JobID     string `json:"job_id" jsonschema:"Id of a completed job (job_…)."`
	ExpiresIn int64  `json:"expires_in,omitempty" jsonschema:"Lifetime of the link, in seconds. Default: as long as the result is kept."`
}

type shareOutput struct {
	URL       string     `json:"url" jsonschema:"The link. It needs no key."`
	ExpiresAt *time.Time `json:"expires_at"`
}

type deleteJobInput struct {
	JobID string `json:"job_id" jsonschema:"Id of a job that has ended (job_…)."`
}

type deleteJobOutput struct {
	JobID   string `json:"job_id"`
	Deleted bool   `json:"deleted"`
}

const ofResult, ofInput = "result", "input"

// longestShare is the maximum lifetime of a share link, in seconds. Results are kept for a day.
const longestShare = 86400

func (t tools) addOutcomes(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name: "look",
		Description: "Look at a completed job or at a stored file: returns the picture, or the first picture of the video, " +
			"as a small JPEG.",
		InputSchema: input[lookInput](func(properties map[string]*jsonschema.Schema) {
			oneOf(properties["of"], ofResult, ofInput)
		}),
		Annotations: reads("Look at a result"),
	}, t.look)
	sharing := makes("Share a result", false)
	sharing.OpenWorldHint = nil // anyone who has the link can open it
	add(t, server, &mcp.Tool{
		Name: "share",
		Description: "Create a public link to the result of a completed job. Call it only when the user asks for a link; it " +
			"expires, or ends earlier if the job is deleted.",
		InputSchema: input[shareInput](func(properties map[string]*jsonschema.Schema) {
			within(properties["expires_in"], 1, longestShare, nil)
		}),
		Annotations: sharing,
	}, t.share)
	add(t, server, &mcp.Tool{
		Name: "delete_job",
		Description: "Permanently delete an ended job and its result. Call it only when the user asks for it. Files in " +
			"the allowed folder are kept.",
		Annotations: makes("Delete a job", true),
	}, t.deleteJob)
}

func (t tools) look(ctx context.Context, c *call, in lookInput) (lookOutput, error) {
	var picture []byte
	var err error
	switch {
	case (in.JobID == "") == (in.FileID == ""):
		return lookOutput{}, errors.New("set either job_id or file_id")
	case in.FileID != "":
		picture, err = c.FileThumbnail(ctx, in.FileID)
	case in.Of == "":
		picture, err = c.JobThumbnail(ctx, in.JobID, ofResult)
	default:
		picture, err = c.JobThumbnail(ctx, in.JobID, in.Of)
	}
	if err != nil {
		return lookOutput{}, err
	}
	kind, known := sniff.Media(picture)
	if !known || !kind.Image {
		return lookOutput{}, errors.New("the server did not send a picture")
	}
	c.shown = append(c.shown, &mcp.ImageContent{Data: picture, MIMEType: kind.MIME})
	return lookOutput{len(picture), kind.MIME}, nil
}

func (t tools) share(ctx context.Context, c *call, in shareInput) (shareOutput, error) {
	share, err := c.ShareJob(ctx, in.JobID, time.Duration(in.ExpiresIn)*time.Second)
	return shareOutput{share.URL, share.ExpiresAt}, err
}

func (t tools) deleteJob(ctx context.Context, c *call, in deleteJobInput) (deleteJobOutput, error) {
	err := c.DeleteJob(ctx, in.JobID)
	return deleteJobOutput{in.JobID, err == nil}, err
}
